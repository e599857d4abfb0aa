"""Runs of bundled systems on real packets; a system that is not installed is skipped with a message."""

import json
import os
from pathlib import Path

import pyarrow.parquet as pq
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


CUT = """\
name: cut
topology: {topology}
system: {system}
parameters: {parameters}
roles: {{{server}publisher: 1, subscriber: 1}}
workload: {{event_size: {size}, rate: {rate}/s}}
duration: {duration}s
drain: {drain}s
faults: [{faults}]
"""


def run_with_cut(
    folder: Path,
    system: str,
    server: str = "",
    *,
    cut_s: int,
    duration: int,
    parameters: str = "{}",
    topology: str = "three-regions",
    size: str = "100B",
    rate: int = 50,
    faults: str = "",
    drain: int = 10,
) -> RunDirectory:
    """Run a system with a client of each kind and a server of this role in each region.

    The link between the last two regions is cut from 2 s on. faults: instead of the cut.
    """
    cut = "[r1, r2]" if topology == "three-regions" else "[r0, r1]"
    text = CUT.format(
        topology=topology,
        system=system,
        parameters=parameters,
        server=server and f"{server}: 1, ",
        size=size,
        rate=rate,
        duration=duration,
        drain=drain,
        faults=faults or f"{{name: cut, at: 2s, cut: {cut}, for: {cut_s}s}}",
    )
    return run_on_packets(folder, text)


def lost_events(run: RunDirectory) -> dict[tuple[int, str], int]:
    """Return the number of events of a stream that each client lost, without clients that lost none."""
    rows = pq.read_table(run.table("deliveries")).to_pylist()
    return {(row["stream"], row["client"]): row["lost"] for row in rows if row["lost"]}


def output(run: RunDirectory, host: str) -> list[str]:
    """Return what a program of a host printed."""
    lines = map(json.loads, run.log(host).read_text().splitlines())
    return [line["text"] for line in lines if line["event"] == "output"]
