"""Runs every test that takes `kind` for each link emulator; for netem only if the kernel supports it."""

import pytest

from testbed.links.selection import kernel_has_netem


@pytest.fixture(scope="session")
def netem_works():
    return kernel_has_netem()


@pytest.fixture(params=["relay", "netem"])
def kind(request):
    if request.param == "netem" and not request.getfixturevalue("netem_works"):
        pytest.skip("this kernel has no sch_netem: user-mode Linux runs this half")
    return str(request.param)
