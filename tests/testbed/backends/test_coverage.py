"""Observations of a run, by phases of its disturbances."""

from dataclasses import dataclass
from random import Random

import pytest

from experiments.hunting.case import Case, Disturbance, Moment
from experiments.hunting.written import base_of, experiment_of
from experiments.loader import load_experiment
from testbed.backends.coverage import Coverage
from testbed.backends.features import AFTER, BEFORE, SETTLING_US, phases
from testbed.backends.in_memory import simulate_in_memory
from testbed.planning import make_plan
from topologies.loader import load_topology


def test_phases_are_named_by_what_acts_and_lasts_a_little():
    found = phases([("cut", 2_000_000, 3_000_000), ("crash", 3_500_000, 6_000_000)])
    assert [phase.name for phase in found] == [BEFORE, "cut", "crash+cut", "crash", AFTER]
    assert found[-1].from_us == 6_000_000 + SETTLING_US


def test_without_disturbances_all_is_before():
    assert [phase.name for phase in phases([])] == [BEFORE]


@dataclass(frozen=True)
class Seen:
    features: dict[str, int]
    moments: list[Moment]
    messages: list[object]


def seen(case: Case, kept_us=None) -> Seen:
    base = base_of(load_experiment("nemesis"))
    topology = load_topology("two-regions")
    experiment = experiment_of(base, case, topology)
    plan = make_plan(experiment, topology, seed=case.seed, links_kind="auto")
    spans = [(each.kind, each.at_us, each.end_us) for each in case.disturbances]
    coverage = Coverage.of(plan.system, spans, kept_us)
    simulate_in_memory(plan, {"experiment": experiment.to_json(), "topology": {}}, watcher=coverage)
    return Seen(coverage.features(), coverage.moments(Random(1)), coverage.messages)


@pytest.mark.slow
def test_a_disturbance_shows_what_steady_traffic_does_not_and_when():
    settings = {"topology": "two-regions", "duration": "14s", "workload.rate": "10/s"}
    steady = seen(Case(1, settings, ()))
    kill = Disturbance("crash", 3_000_000, 1_000_000, ("r0/proxy-0",))
    killed = seen(Case(1, settings, (kill,)), (2_900_000, 3_300_000))
    again = seen(Case(1, settings, (kill,)))
    assert (again.features, again.moments) == (killed.features, killed.moments)
    assert any("r0/proxy-0" in each.processes and each.at_us > kill.at_us for each in killed.moments)
    new = {feature: at_us for feature, at_us in killed.features.items() if feature not in steady.features}
    assert any("during crash" in feature for feature in new)
    assert min(new.values()) >= kill.at_us - 1_500_000  # also what else chance brings before
    assert {2_900_000 <= each.time_us < 3_300_000 for each in killed.messages} == {True}
    assert steady.messages == []
