"""The messages of a time span, for diagrams of findings."""

import pytest

from experiments.hunting.case import HuntCase, HuntDisturbance
from experiments.hunting.case_experiment import experiment_of, hunt_base
from experiments.loader import load_experiment
from testbed.backends.in_memory import simulate_in_memory
from testbed.backends.message_watcher import MessageWatcher, SeenMessage
from testbed.planning import make_plan
from topologies.loader import load_topology


def seen(case: HuntCase, kept_us: tuple[int, int]) -> list[SeenMessage]:
    topology = load_topology("two-regions")
    experiment = experiment_of(hunt_base(load_experiment("nemesis")), case, topology)
    plan = make_plan(experiment, topology, seed=case.seed, links_kind="auto")
    watcher = MessageWatcher.for_system(plan.system, kept_us)
    simulate_in_memory(plan, {"experiment": experiment.to_json(), "topology": {}}, watcher=watcher)
    return watcher.messages


@pytest.mark.slow
def test_messages_of_the_span_are_kept_and_no_others():
    settings = {"topology": "two-regions", "duration": "14s", "workload.rate": "10/s"}
    kill = HuntDisturbance("crash", 3_000_000, 1_000_000, ("r0/proxy-0",))
    messages = seen(HuntCase(1, settings, (kill,)), (2_900_000, 3_300_000))
    assert {2_900_000 <= each.time_us < 3_300_000 for each in messages} == {True}
    assert {each.source for each in messages if each.time_us > 3_100_000} >= {"r0/proxy-1", "r1/proxy-0"}
    assert "r0/proxy-0" not in {each.source for each in messages if each.time_us > 3_100_000}
