"""Labs that tests share: a lab takes a second or two to come up and to go."""

from collections.abc import Iterator

import pytest

from tests.testbed.hosts.lab import Lab, why_no_lab


@pytest.fixture(scope="session")
def lab_works() -> None:
    """Whoever takes this is skipped where there can be no lab, with the reason."""
    reason = why_no_lab()
    if reason is not None:
        pytest.skip(reason)


@pytest.fixture(scope="session")
def pair(lab_works: None) -> Iterator[Lab]:
    """Two machines, h0 and h1. Whoever changes something puts it right again."""
    with Lab(2) as lab:
        yield lab
