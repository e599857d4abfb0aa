"""Every test that takes `kind` runs for each kind of middle; netem's half where the kernel has netem."""

import pytest

from testbed.links.selection import kernel_has_netem


@pytest.fixture(scope="session")
def netem_works() -> bool:
    return kernel_has_netem()


@pytest.fixture(params=["relay", "netem"])
def kind(request: pytest.FixtureRequest) -> str:
    if request.param == "netem" and not request.getfixturevalue("netem_works"):
        pytest.skip("this kernel has no sch_netem: user-mode Linux runs this half")
    return str(request.param)
