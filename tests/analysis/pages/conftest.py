"""Synthetic runs of several kinds, written once for all tests of pages, and one browser."""

import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from analysis.pages.report import write_page
from experiments.records.rundir import RunDirectory
from tests.analysis.pages.report.browsing import browser, opened
from tests.analysis.pages.report.report_scenario import SCENARIOS
from tests.analysis.pages.report.synthetic_run import write_run

__all__ = ["browser", "opened"]  # fixtures
Made = Callable[[str], RunDirectory]


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Return a function that makes a scenario's run without figures. Tests must not change it."""
    parent = tmp_path_factory.mktemp("made")
    return cache(lambda name: write_run(parent / name, SCENARIOS[name]))


@pytest.fixture(scope="session")
def reported(made: Made) -> Made:
    """Return a function that makes a scenario's run with its page. Tests must not change it."""

    def run(name: str) -> RunDirectory:
        write_page(made(name))
        return made(name)

    return cache(run)


@pytest.fixture
def fresh_run(made: Made, tmp_path: Path) -> RunDirectory:
    """Copy a run without a page, for a test to change."""
    run, pages = made("passed").path, shutil.ignore_patterns("report.html", "figures")
    return RunDirectory(Path(shutil.copytree(run, tmp_path / run.name, ignore=pages)))
