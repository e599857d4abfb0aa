"""Runs in which clients join and leave: clients that stay get all events, others those of their time."""

import pytest

from node.core import machine as m
from node.core.deliveries import RecordKind
from node.systems import build_machine
from tests.plans import plan_of
from tests.virtual_runs import experiment_in, simulated, summary_of

EXPERIMENT = """
roles: {proxy: 2, driver: 1, client: 6, configuration: 1}
duration: 12s
arrivals: [{role: client, count: 3, from: 2s, to: 8s}]
departures:
  - {role: client, count: 3, from: 2s, to: 8s}
  - {role: client, count: 3, how: crash, from: 2s, to: 8s, away: {from: 1s, to: 3s}}
"""


SEED = 3


@pytest.fixture
def experiment(tmp_path):
    return experiment_in(tmp_path, EXPERIMENT)


class Forgetful:
    """A client that does not record some events."""

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
            if not (is_event and effect.first_seq <= 150 < effect.first_seq + effect.count):
                yield effect


@pytest.mark.slow
def test_no_event_is_lost_and_undeliverable_events_are_not_due(experiment, tmp_path):
    summary = summary_of(simulated(experiment, tmp_path, seed=SEED))
    assert summary["verdict"] == "passed", summary["expectations"]
    assert summary["events"]["lost"] == 0
    assert summary["events"]["delivered"] > 10_000
    assert summary["churn"] == {"came": 6, "went": 6}


@pytest.mark.parametrize("who", ["comes", "comes back"])
@pytest.mark.slow
def test_events_due_to_any_newcomer_are_missed_if_lost(experiment, tmp_path, who):
    plan = plan_of(experiment, seed=SEED)
    joining = plan.joining
    changed = [change.process for change in plan.changes]
    back = next(name for name in changed if changed.count(name) == 2 and name not in joining)
    victim = {"comes": joining[-1], "comes back": back}[who]

    def build(spec, rng):
        machine = build_machine(spec, rng)
        return Forgetful(machine) if spec.name == victim else machine

    summary = summary_of(simulated(experiment, tmp_path, seed=SEED, build=build))
    assert summary["verdict"] == "failed"
    assert summary["events"]["lost"] > 0
