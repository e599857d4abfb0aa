"""Two runs of the same experiment, one with a later recovery and another commit; and unusual runs."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from experiments.records.rundir import RunDirectory
from tests.analysis.pages.report.browsing import browser, opened
from tests.analysis.pages.report.conftest import SCENARIOS
from tests.analysis.pages.report.report_scenario import DEFAULT, Scenario
from tests.analysis.pages.report.synthetic_run import write_run

__all__ = ["browser", "opened"]  # fixtures

LATER = replace(DEFAULT, switched_s={origin: s + 1.0 for origin, s in DEFAULT.switched_s.items()})


def make(parent: Path, name: str) -> RunDirectory:
    """Make the run of that name."""
    run = write_run(parent / name, _scenario(name))
    if name == "later":
        content = json.loads(run.run_json.read_text())
        content |= {"commit": "f00dfeed" * 5, "seed": 7}
        content["experiment"]["workload"]["rate"] = "10000/s"
        run.run_json.write_text(json.dumps(content))
    if name == "on machines":
        content = json.loads(run.run_json.read_text())
        content |= {"machines": [{"name": "h0", "hosts": []}, {"name": "h1", "hosts": []}]}
        run.run_json.write_text(json.dumps(content))
    return run


def _scenario(name: str) -> Scenario:
    own = {"later": LATER, "doubtful": replace(LATER, valid=False), "on machines": DEFAULT}
    return own.get(name) or SCENARIOS[name]


@pytest.fixture(scope="session")
def run_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], RunDirectory]:
    """From a name to its run, written once. Not to be changed by tests."""
    parent = tmp_path_factory.mktemp("compared")
    return cache(lambda name: make(parent, name))
