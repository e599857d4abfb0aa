"""Faults on disks and an operator's word reach the nodes in virtual time."""

import json
from pathlib import Path

import pytest

from experiments.json_files import read_json
from experiments.loader import read_experiment
from experiments.rundir import RunDirectory
from testbed.backends.simulator import simulate
from testbed.planning import make_plan
from testbed.runner.run_control import prepare
from topologies.loader import load_topology

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


def experiment(folder: Path, act: str) -> Path:
    path = folder / "given-up.yaml"
    path.write_text(ALONE_FOR_A_WHILE.replace("ACT", act))
    return path


def check(run: RunDirectory, act: str) -> None:
    """The region waits until the word, and goes on with what the other replica has."""
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


@pytest.mark.parametrize("act", ["restart", "replace"])
def test_a_word_ends_the_wait_for_a_replica_that_is_lost(tmp_path: Path, act: str) -> None:
    file = read_experiment(str(experiment(tmp_path, act)), []).experiment
    plan = make_plan(file, load_topology(file.topology), seed=1, links_kind="auto")
    run = prepare(tmp_path, plan, {"experiment": {}, "topology": {}})
    simulate(run, lambda message: None)
    check(run, act)
