"""Commands in one worker of the suite simulate runs in one process, which stays for later tests."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from testbed.campaign.jobs import simulated_run
from testbed.campaign.jobs.pool import JobPool

Pools = Callable[..., Any]


@pytest.fixture(scope="session")
def lasting_pool() -> Iterator[Pools]:
    """Yield what stands in for `JobPool`. A pool of a given size is one of its own."""
    kept: list[JobPool] = []

    @contextmanager
    def pool(module: str, setup: dict[str, Any], size: int | None) -> Iterator[JobPool]:
        if size is not None:
            with JobPool(module, setup, size) as own:
                yield own
            return
        if not kept:
            kept.append(JobPool(module, setup, 1))
        try:
            yield kept[0]
        finally:
            if kept[0].busy:  # an interrupt left its process with a job
                kept.pop().__exit__()

    yield pool
    for each in kept:
        each.__exit__()


@pytest.fixture(autouse=True)
def _simulations(lasting_pool: Pools, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulated_run, "JobPool", lasting_pool)
