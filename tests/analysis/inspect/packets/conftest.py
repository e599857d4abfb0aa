"""One analysed run for all tests here and for those of the command; tests do not change it."""

import pytest

from experiments.records.rundir import RunDirectory
from tests.analysis.inspect.packets.small_run import around_the_cut


@pytest.fixture(scope="session")
def small_run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """Write a run around a cut."""
    return around_the_cut().write(tmp_path_factory.mktemp("runs") / "a-run")
