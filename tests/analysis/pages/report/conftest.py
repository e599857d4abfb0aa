"""Synthetic runs of several kinds, written once for all tests of the report."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from analysis.pages.report import write_report
from experiments.records.rundir import RunDirectory
from tests.analysis.pages.report.browsing import browser, opened
from tests.analysis.pages.report.report_scenario import DEFAULT, Scenario
from tests.analysis.pages.report.synthetic_run import write_run

__all__ = ["browser", "opened"]  # fixtures

HOSTILE = '</script><img src=x onerror="boom()">{{ 7*7 }} & <b>'
SCENARIOS = {
    "passed": DEFAULT,
    "narrow": Scenario(headroom_per_s=4_000, link_rate_bits_per_s=4_500_000),
    "invalid": Scenario(valid=False),
    "crashed": Scenario(crashed=True),
    "undisturbed": Scenario(fault=False, paper=None),
    "uncaptured": Scenario(captures=False),
    "crowded": Scenario(more_cuts=(("r0-r1", 22.0), ("r1-r2", 25.0), ("r0-r2", 28.0), ("r0-r3", 50.0))),
    "hostile": Scenario(
        regions=("r0", "r1", "<i>r2<b>", 'r3"onload="x'),
        experiment=HOSTILE,
        description=HOSTILE,
        problems=(HOSTILE,),
        switched_s={"<i>r2<b>": 19.98, 'r3"onload="x': 19.71},
    ),
}


@pytest.fixture(scope="session")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], RunDirectory]:
    """Return a function that makes a scenario's run with its report. Tests must not change it."""
    parent = tmp_path_factory.mktemp("reported")
    made: dict[str, RunDirectory] = {}

    def run(name: str) -> RunDirectory:
        if name not in made:
            made[name] = write_run(parent / name, SCENARIOS[name])
            write_report(made[name])
        return made[name]

    return run


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """Write a run without a report. Tests must not change it."""
    return write_run(tmp_path_factory.mktemp("written"))


@pytest.fixture
def fresh_run(written: RunDirectory, tmp_path: Path) -> RunDirectory:
    """Copy a run without a report, for a test to change."""
    return RunDirectory(Path(shutil.copytree(written.path, tmp_path / written.path.name)))
