"""Faults on disks and an operator's word reach the nodes in virtual time."""

import json
from pathlib import Path

import pytest

from experiments.records.json_files import read_json
from experiments.records.rundir import RunDirectory
from testbed.cli import main
from testbed.pytest_plugin.fixture import Cutset
from tests.virtual_runs import experiment_in, simulated
from topologies.errors import InputError

ALONE_FOR_A_WHILE = """
name: given-up
topology: two-regions
system: sprinkler
parameters: {durable: true, flush_interval: 50ms, advertisement_period: 300ms}
roles: {default: {proxy: 1, driver: 1, client: 1, configuration: 1},
        r0: {proxy: 2, driver: 1, client: 1, configuration: 1}}
workload: {event_size: 10B, rate: 200/s}
duration: 9s
captures: none
faults:
  - {name: first-ends, at: 1s, kill: r0/proxy-0}
  - {name: last-ends, at: 3s, kill: r0/proxy-1}
  - {name: first-again, at: 4s, ACT: r0/proxy-0}
  - {name: word, at: 6s, give-up: r0/proxy-1}
"""
"""r0/proxy-1 was alone for two seconds, and stays away."""


@pytest.mark.parametrize("act", ["restart", "replace"])
def test_a_word_ends_the_wait_for_a_replica_that_is_lost(tmp_path: Path, act: str) -> None:
    """The region waits for the action and continues with the other replica's data."""
    run = simulated(experiment_in(tmp_path, ALONE_FOR_A_WHILE.replace("ACT", act)), tmp_path)
    record = read_json(run.run_json)
    assert record["outcome"] == "completed"
    planned = record["plan"]["changes"]
    assert [planned[change["index"]]["action"] for change in record["changes"]] == [
        "kill",
        "kill",
        act,
        "give-up",
    ]
    zero_ns = record["times"]["zero_ns"]
    lines = [json.loads(line) for line in run.log("r0-configuration-0").read_text().splitlines()]
    (anew,) = [line for line in lines if line["event"] == "chain_began_anew"]
    assert anew["replica"] == "r0/proxy-0"
    assert anew["t_ns"] - zero_ns >= 6e9
    assert (anew["committed"] > 0) == (act == "restart")


RETURNS = {"replica_joined", "replica_returned"}
FULL_FOR_A_WHILE = """
name: full-disk
topology: two-regions
system: sprinkler
parameters: {durable: true, flush_interval: 50ms, advertisement_period: 300ms}
roles: {proxy: 2, driver: 1, client: 1, configuration: 1}
workload: {event_size: 10B, rate: 100/s}
duration: 8s
captures: none
faults:
  - {at: 1s, for: 2s, fill: r0/proxy-1}
  - {at: 5s, kill: r0/proxy-1}
  - {at: 6s, restart: r0/proxy-1}
"""


@pytest.mark.parametrize("on", [pytest.param("local", marks=pytest.mark.network), "simulator"])
def test_a_replica_whose_disk_is_full_leaves_its_chain_and_comes_back(
    cutset: Cutset, tmp_path: Path, on: str
) -> None:
    path = tmp_path / "full-disk.yaml"
    path.write_text(FULL_FOR_A_WHILE)
    [run] = cutset.run(path, on=on, analyze=False).runs
    directory = run.directory
    lines = [json.loads(line) for line in directory.log("r0-configuration-0").read_text().splitlines()]
    (removed,) = [line for line in lines if line.get("why") == "disk full"]
    assert removed["replica"] == "r0/proxy-1"
    after_full, after_kill = (line["event"] for line in lines if line["event"] in RETURNS)
    assert after_full == "replica_joined"
    assert after_kill in RETURNS
    record = directory.read_run()
    assert record.times.drained_ns is not None
    assert all(change.applied_ns is not None for change in record.changes)


def test_two_faults_that_fill_one_disk_end_each_by_itself(tmp_path: Path) -> None:
    twice = FULL_FOR_A_WHILE.replace("faults:\n", "faults:\n  - {at: 1500ms, for: 500ms, fill: r0/proxy-1}\n")
    run = simulated(experiment_in(tmp_path, twice), tmp_path)
    lines = [json.loads(line) for line in run.log("r0-configuration-0").read_text().splitlines()]
    joined, _ = [line for line in lines if line["event"] == "replica_joined"]  # and after it was killed
    assert joined["t_ns"] - (run.read_run().times.zero_ns or 0) > 3e9


SLOW_FOR_A_WHILE = (
    FULL_FOR_A_WHILE.partition("faults:")[0].replace("full-disk", "slow-disk")
    + """\
faults:
  - {name: slow, at: 2s, for: 2s, slow-disk: r0/proxy-0, sync: 600ms}
"""
)


@pytest.mark.parametrize("on", [pytest.param("local", marks=pytest.mark.network), "simulator"])
@pytest.mark.slow
def test_events_wait_for_the_slow_disk_of_a_replica(tmp_path: Path, on: str) -> None:
    path = tmp_path / "slow-disk.yaml"
    path.write_text(SLOW_FOR_A_WHILE)
    assert main.run(["run", str(path), "--on", on, "--out", str(tmp_path / "runs")]) in {0, 1}
    [run] = (RunDirectory(each) for each in (tmp_path / "runs").iterdir())
    figures = read_json(run.summary_json)
    assert figures["events"]["lost"] == 0
    assert figures["latency"]["p50_ms"] < 600 <= figures["latency"]["max_ms"]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("fill: r0/proxy-1", "fill: r0/client-0", "a client keeps nothing on disk"),
        (
            "durable: true",
            "durable: true, batch_limit: 9B",
            "is more than an event of sprinkler may have: 9 B",
        ),
        ("durable: true, ", "", "keep nothing on disk as it is here"),
    ],
    ids=["a client has no disk", "no batch can hold an event", "nodes keep nothing on disk"],
)
def test_what_cannot_be_is_refused_beforehand(tmp_path: Path, old: str, new: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        experiment_in(tmp_path, FULL_FOR_A_WHILE.replace(old, new))
