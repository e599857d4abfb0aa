"""Runs in which clients come and go: those that stay get everything, others what they can."""

import pytest

from analysis.pipeline import analyze_here
from experiments.loader import read_experiment
from node.core import machine as m
from node.core.deliveries import RecordKind
from node.systems import build_machine
from testbed.backends.simulator import simulate
from testbed.planning import make_plan
from testbed.runner.run_control import prepare
from topologies.loader import load_topology

EXPERIMENT = """
name: comings-and-goings
topology: two-regions
system: sprinkler
roles: {proxy: 2, driver: 1, client: 6, configuration: 1}
workload: {event_size: 10B, rate: 200/s}
duration: 12s
captures: none
arrivals: [{role: client, count: 3, from: 2s, to: 8s}]
departures:
  - {role: client, count: 3, from: 2s, to: 8s}
  - {role: client, count: 3, how: crash, from: 2s, to: 8s, away: {from: 1s, to: 3s}}
"""


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    path = tmp_path_factory.mktemp("churn") / "comings.yaml"
    path.write_text(EXPERIMENT)
    experiment = read_experiment(str(path), []).experiment
    topology = load_topology(experiment.topology)
    return experiment, make_plan(experiment, topology, seed=3, links_kind="auto")


def summary_of(plan, tmp_path, build=build_machine):
    experiment, made = plan
    directory = prepare(tmp_path, made, {"experiment": experiment.model_dump(mode="json"), "topology": {}})
    simulate(directory, lambda message: None, build=build)
    return analyze_here(directory, progress=lambda text: None)


class Forgetful:
    """A client that writes down nothing of some events."""

    def __init__(self, machine):
        self._machine = machine
        self.frame_limit_bytes = machine.frame_limit_bytes

    def progress(self):
        return self._machine.progress()

    def check(self):
        self._machine.check()

    def handle(self, given, now_us):
        for effect in self._machine.handle(given, now_us):
            is_event = isinstance(effect, m.Record) and effect.kind == RecordKind.DELIVERED
            if not (is_event and effect.first_seq <= 300 < effect.first_seq + effect.count):
                yield effect


def test_nothing_is_lost_and_what_nobody_could_get_is_not_missed(plan, tmp_path):
    summary = summary_of(plan, tmp_path)
    assert summary["verdict"] == "passed", summary["expectations"]
    assert summary["events"]["lost"] == 0
    assert summary["events"]["delivered"] > 20_000
    assert summary["churn"] == {"came": 6, "went": 6}


@pytest.mark.parametrize("who", ["stays", "comes", "comes back"])
def test_events_due_to_any_newcomer_are_missed_if_lost(plan, tmp_path, who):
    joining = plan[1].joining
    changed = [change.process for change in plan[1].changes]
    back = next(name for name in changed if changed.count(name) == 2 and name not in joining)
    stays = next(each.name for each in plan[1].having("subscriber") if each.name not in changed)
    victim = {"stays": stays, "comes": joining[-1], "comes back": back}[who]

    def build(spec, rng):
        machine = build_machine(spec, rng)
        return Forgetful(machine) if spec.name == victim else machine

    summary = summary_of(plan, tmp_path, build)
    assert summary["verdict"] == "failed"
    assert summary["events"]["lost"] > 0
