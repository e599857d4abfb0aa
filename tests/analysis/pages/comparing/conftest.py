"""Two runs of the same experiment, one with a later recovery and another commit; and unusual runs."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from experiments.records.json_files import read_json
from experiments.records.rundir import RunDirectory
from tests.analysis.pages.report.report_scenario import DEFAULT, SCENARIOS
from tests.analysis.pages.report.synthetic_run import write_run
from tests.run_json import set_run

LATER = replace(DEFAULT, switched_s={origin: s + 1.0 for origin, s in DEFAULT.switched_s.items()})
UNUSUAL = {"later": LATER, "doubtful": replace(LATER, valid=False), "on machines": DEFAULT}


def make(parent: Path, name: str) -> RunDirectory:
    """Make the unusual run of that name."""
    run = write_run(parent / name, UNUSUAL[name])
    if name == "later":
        experiment = read_json(run.run_json)["experiment"]
        experiment["workload"]["rate"] = "10000/s"
        set_run(run, commit="f00dfeed" * 5, seed=7, experiment=experiment)
    if name == "on machines":
        set_run(run, machines=[{"name": "h0", "hosts": []}, {"name": "h1", "hosts": []}])
    return run


@pytest.fixture(scope="session")
def run_of(
    made: Callable[[str], RunDirectory], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], RunDirectory]:
    """From a name to its run, written once. Not to be changed by tests."""
    parent = tmp_path_factory.mktemp("compared")
    return cache(lambda name: made(name) if name in SCENARIOS else make(parent, name))
