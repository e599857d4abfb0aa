"""Faults on disks and decisions of an operator reach the nodes, in virtual time and on real processes."""

import json
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from experiments.planned.change_text import change_values
from experiments.records.rundir import RunDirectory
from node.core.deliveries import RecordKind, read_records
from testbed.pytest_plugin.fixture import Cutset
from tests.virtual_runs import experiment_in, simulated, written
from topologies.errors import InputError


def configuration_log(run: RunDirectory, region: str = "r0") -> list[dict[str, Any]]:
    """Return the log lines of a region's configuration process."""
    return [json.loads(line) for line in run.log(f"{region}-configuration-0").read_text().splitlines()]


ALONE_FOR_A_WHILE = """
parameters: {durable: true, flush_interval: 50ms, advertisement_period: 300ms}
roles: {proxy: 2, driver: 1, client: 1, configuration: 1}
duration: 9s
faults:
  - {at: 1s, kill: r0/proxy-0}
  - {at: 1s, kill: r1/proxy-0}
  - {at: 3s, kill: r0/proxy-1}
  - {at: 3s, kill: r1/proxy-1}
  - {at: 4s, restart: r0/proxy-0}
  - {at: 4s, replace: r1/proxy-0}
  - {at: 6s, give-up: r0/proxy-1}
  - {at: 6s, give-up: r1/proxy-1}
"""
"""In both regions proxy-1 was alone for two seconds, and stays away."""


def test_giving_up_a_replica_ends_the_wait_for_it(tmp_path: Path) -> None:
    """Check that the region waits for the replica, and continues with the data of the other replica."""
    run = simulated(experiment_in(tmp_path, ALONE_FOR_A_WHILE), tmp_path)
    record = run.read_run()
    assert record.outcome == "completed"
    assert len(record.changes) == 8
    for region, keeps_data in (("r0", True), ("r1", False)):
        (anew,) = [line for line in configuration_log(run, region) if line["event"] == "chain_began_anew"]
        assert anew["replica"] == f"{region}/proxy-0"
        assert anew["t_ns"] - (record.times.zero_ns or 0) >= 6e9
        assert (anew["committed"] > 0) == keeps_data


RETURNS = {"replica_joined", "replica_returned"}
FULL_AND_SLOW = """
parameters: {durable: true, flush_interval: 50ms, advertisement_period: 300ms}
roles: {proxy: 2, driver: 1, client: 1, configuration: 1}
duration: 8s
faults:
  - {at: 1s, for: 2s, fill: r0/proxy-1}
  - {at: 1500ms, for: 500ms, fill: r0/proxy-1}
  - {name: slow, at: 2s, for: 2s, slow-disk: r1/proxy-0, sync: 600ms}
  - {at: 5s, kill: r0/proxy-1}
  - {at: 6s, restart: r0/proxy-1}
"""


@pytest.mark.parametrize("on", [pytest.param("local", marks=pytest.mark.network), "simulator"])
def test_a_full_disk_removes_a_replica_and_a_slow_one_delays_events(
    cutset: Cutset, tmp_path: Path, on: str
) -> None:
    [run] = cutset.run(written(tmp_path, FULL_AND_SLOW), on=on, analyze=False).runs
    directory = run.directory
    record = directory.read_run()
    lines = configuration_log(directory)
    (removed,) = [line for line in lines if line.get("why") == "disk full"]
    assert removed["replica"] == "r0/proxy-1"
    after_full, after_kill = (line for line in lines if line["event"] in RETURNS)
    assert after_full["event"] == "replica_joined"
    assert after_full["t_ns"] - (record.times.zero_ns or 0) > 3e9, (
        "each fault that fills a disk ends by itself"
    )
    assert after_kill["event"] in RETURNS
    assert record.times.drained_ns is not None
    assert all(change.applied_ns is not None for change in record.changes)
    assert "sync 600ms" in {change_values(change, record.plan) for change in record.plan.changes}
    pauses_s = pauses_of(directory, "r1")
    assert median(pauses_s) < 0.3
    assert max(pauses_s) >= 0.55


def pauses_of(run: RunDirectory, region: str) -> list[float]:
    """Return the seconds between deliveries of a region's events to its own client."""
    published, _ = read_records(run.host_deliveries(f"{region}-driver-0").read_bytes())
    delivered, _ = read_records(run.host_deliveries(f"{region}-client-0").read_bytes())
    (stream,) = {each.stream for each in published if each.kind == RecordKind.PUBLISHED}
    times_ns = [
        each.time_ns for each in delivered if (each.stream, each.kind) == (stream, RecordKind.DELIVERED)
    ]
    return [(later - earlier) / 1e9 for earlier, later in pairwise(times_ns)]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("fill: r0/proxy-1", "fill: r0/client-0", "a client stores nothing on disk"),
        (
            "durable: true",
            "durable: true, batch_limit: 9B",
            "is more than an event of sprinkler may have: 9 B",
        ),
        ("durable: true, ", "", "store nothing on disk with these parameters"),
    ],
    ids=["a client has no disk", "no batch can hold an event", "nodes store nothing on disk"],
)
def test_impossible_disk_faults_are_refused_before_the_run(
    tmp_path: Path, old: str, new: str, problem: str
) -> None:
    with pytest.raises(InputError, match=problem):
        experiment_in(tmp_path, FULL_AND_SLOW.replace(old, new))
