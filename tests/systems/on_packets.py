"""Runs of systems that ship, on real packets; a system that is not here is left out, and that is said."""

import os
from pathlib import Path

import pytest

from experiments.records.rundir import RunDirectory
from systems.loader import load_system
from testbed.cli import main
from testbed.programs import missing_here, named

ALL_VARIABLE = "CUTSET_TEST_SYSTEMS"
"""Set by `make test-systems`."""


def needs(system: str, *, always: bool = False) -> list[pytest.MarkDecorator]:
    """Return the markers of tests that run a system. always: also in `make test`, which has little time."""
    lacking = missing_here(load_system(system).programs)
    absent = f"{system}: not here, `make systems` gets it: {', '.join(map(named, lacking))}"
    left_out = not always and not os.environ.get(ALL_VARIABLE)
    return [
        pytest.mark.network,
        pytest.mark.slow,
        pytest.mark.skipif(bool(lacking), reason=absent),
        pytest.mark.skipif(left_out, reason=f"{system}: left out, `make test-systems` runs it"),
    ]


def run_on_packets(folder: Path, experiment: str) -> RunDirectory:
    """Run this experiment and return its directory, whatever its verdict."""
    (folder / "experiment.yaml").write_text(experiment)
    assert main.run(["run", str(folder / "experiment.yaml"), "--out", str(folder / "runs")]) in {0, 1}
    [path] = (folder / "runs").iterdir()
    return RunDirectory.open(path)
