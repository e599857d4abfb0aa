"""Random faults: a seed always gives the same ones, and those of every seed stay within the bounds."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.faults.environment import ClockFault, Throttle
from experiments.faults.fault import ExperimentFault, LastingFault
from experiments.faults.links import SetLink
from experiments.faults.processes import ProcessFault
from experiments.loader import load_experiment
from experiments.model import Experiment
from experiments.planned.changes import LinkChange
from testbed.planning import make_plan
from tests.refusals import refusal
from topologies.loader import load_topology

EXPERIMENT = load_experiment("nemesis")
TOPOLOGY = load_topology(EXPERIMENT.topology)
DISTURBING, MENDING = ("kill", "stop"), {"kill": "restart", "stop": "continue"}
ALL_OF_A_REGION = [
    f"{role}-{at}"
    for role, count in (("proxy", 3), ("driver", 1), ("client", 3), ("configuration", 1))
    for at in range(count)
]
SEEDS = st.integers(0, 2**63)


def faults(seed: int, experiment: Experiment = EXPERIMENT) -> tuple[ExperimentFault, ...]:
    return experiment.all_faults(TOPOLOGY, seed)


def spans(found: Sequence[ExperimentFault]) -> dict[str, list[tuple[int, int]]]:
    """Return when each process is disturbed; fail unless the matching fault ends every disturbance."""
    by_process: defaultdict[str, list[ProcessFault]] = defaultdict(list)
    for fault in found:
        if isinstance(fault, ProcessFault):
            by_process[fault.process].append(fault)
    disturbed = {}
    for process, failover_events in by_process.items():
        begins, ends = failover_events[::2], failover_events[1::2]
        assert [MENDING[begin.kind] for begin in begins] == [end.kind for end in ends]
        disturbed[process] = [(begin.at_us, end.at_us) for begin, end in zip(begins, ends, strict=True)]
    return disturbed


def test_the_same_seed_gives_the_same_faults():
    first = faults(7)
    assert first == faults(7)
    assert (first[0].name, first[0].kind, first[0].target) == ("n13-cut", "cut", "r0-r2")


@given(SEEDS)
def test_no_disturbance_is_before_the_start_or_in_the_quiet_time(seed):
    nemesis = EXPERIMENT.nemesis
    assert nemesis is not None
    last_us = EXPERIMENT.duration_us - nemesis.quiet_us
    for fault in faults(seed):
        assert nemesis.start_us <= fault.at_us <= last_us
        if isinstance(fault, LastingFault):
            assert fault.for_us is not None
            assert fault.at_us + fault.for_us <= last_us


@given(SEEDS)
def test_a_process_has_settle_time_between_two_disturbances(seed):
    nemesis = EXPERIMENT.nemesis
    assert nemesis is not None
    for disturbed in spans(faults(seed)).values():
        for begin_us, end_us in disturbed:
            assert nemesis.shortest_us <= end_us - begin_us <= nemesis.longest_us
        for (_, ended_us), (begun_us, _) in pairwise(disturbed):
            assert begun_us - ended_us >= nemesis.settle_us


@given(SEEDS)
def test_clock_faults_go_both_ways_and_end_before_the_quiet_time(seed):
    experiment = load_experiment("nemesis", ["nemesis.kinds=[clock]", "nemesis.offset=2s"])
    assert experiment.nemesis is not None
    found = experiment.all_faults(TOPOLOGY, seed)
    for fault in found:
        assert isinstance(fault, ClockFault)
        assert fault.for_us is not None
        assert 0 < abs(fault.offset_us) <= 2_000_000
        over_us = fault.at_us + fault.for_us + abs(fault.offset_us)
        assert over_us <= experiment.duration_us - experiment.nemesis.quiet_us


@given(SEEDS)
def test_processes_are_throttled_for_a_time_to_a_share_within_the_bounds(seed):
    experiment = load_experiment("nemesis", ["nemesis.kinds=[throttle]", "nemesis.cpu=5%"])
    for fault in experiment.all_faults(TOPOLOGY, seed):
        assert isinstance(fault, Throttle)
        assert fault.for_us is not None
        assert fault.processor is not None
        assert 0.05 <= fault.processor <= 0.5


@given(SEEDS)
def test_a_process_with_little_memory_is_killed_at_the_end_and_restarted(seed):
    experiment = load_experiment("nemesis", ["nemesis.kinds=[memory]", "nemesis.memory=30MB"])
    found = [fault for fault in experiment.all_faults(TOPOLOGY, seed) if not isinstance(fault, Throttle)]
    for fault in experiment.all_faults(TOPOLOGY, seed):
        if isinstance(fault, Throttle):
            assert 1_000_000 <= (fault.memory_bytes or 0) <= 30_000_000
            end_us = fault.at_us + (fault.for_us or 0) + 1
            then = [each.kind for each in found if each.target == fault.process and each.at_us == end_us]
            assert then == ["kill", "restart"]


def test_packet_selections_are_drawn_without_changing_seeds_that_have_none():
    kinds = "nemesis.kinds=[delay, loss]"
    some = load_experiment("nemesis", [kinds, "nemesis.selects=60%", "nemesis.ports=[7000]"])
    found = [fault for seed in range(30) for fault in faults(seed, some) if isinstance(fault, SetLink)]
    seen = {(fault.of is not None, fault.port) for fault in found}
    assert seen == {(False, None), (True, None), (True, 7000), (False, 7000)}
    for fault in found:
        assert fault.of is None or fault.of.partition("/")[0] in fault.link
    plan = make_plan(some, TOPOLOGY, seed=1, links_kind="relay")
    assert {change.selects for change in plan.changes if isinstance(change, LinkChange)} > {None}


@given(SEEDS)
def test_a_replica_of_each_chain_is_undisturbed_and_settled_at_any_time(seed):
    nemesis = EXPERIMENT.nemesis
    assert nemesis is not None
    disturbed = spans(faults(seed))
    for region in TOPOLOGY.regions:
        replicas = [f"{region}/proxy-{index}" for index in range(3)]
        taken = [
            (begin_us, end_us + nemesis.settle_us)
            for replica in replicas
            for begin_us, end_us in disturbed.get(replica, [])
        ]
        for at_us, _ in taken:
            assert sum(begin_us <= at_us < end_us for begin_us, end_us in taken) < len(replicas)


@given(SEEDS)
def test_every_seed_makes_a_plan_whose_links_end_as_they_began(seed):
    plan = make_plan(EXPERIMENT, TOPOLOGY, seed=seed, links_kind="auto")
    drawn = EXPERIMENT.drawn(seed)
    last = {(change.link, change.direction): change for change in plan.changes if hasattr(change, "link")}
    parameters_of = {link.name: (link.forward, link.backward) for link in plan.links}
    for (link, direction), change in last.items():
        assert change.state == "up"
        assert change.parameters == parameters_of[link][direction == "backward"]
    assert {fault.name for fault in plan.faults} == {fault.name for fault in faults(seed, drawn)}


def test_a_proxy_without_replicas_is_not_disturbed():
    alone = load_experiment("nemesis", ["roles.proxy=1", "nemesis.kinds=[crash, pause]"])
    targets = {fault.target for seed in range(30) for fault in faults(seed, alone)}
    assert targets
    assert not any("proxy" in target for target in targets)


def test_processes_with_faults_of_the_experiment_get_no_random_faults():
    own = load_experiment("nemesis", ["faults=[{at: 3s, leave: r0/client-0}]"])
    for seed in range(30):
        assert "r0/client-0" not in [fault.target for fault in faults(seed, own)[1:]]


def test_settings_are_drawn_by_the_seed_and_every_value_occurs():
    seen = defaultdict(set)
    for seed in range(60):
        drawn = EXPERIMENT.drawn(seed)
        assert drawn == EXPERIMENT.drawn(seed)
        assert drawn.nemesis.vary == {}
        plan = make_plan(EXPERIMENT, TOPOLOGY, seed=seed, links_kind="auto")
        assert plan.parameters["durable"] == drawn.all_parameters()["durable"]
        assert plan.workload == drawn.workload.as_plan()
        seen["durable"].add(plan.parameters["durable"])
        seen["proxies"].add(sum(process.name.startswith("r1/proxy") for process in plan.processes))
        seen["collect"].add(plan.workload.get("collect", {}).get("predicate"))
    assert seen == {
        "durable": {False, True},
        "proxies": {1, 2, 3, 4, 5},
        "collect": {None, "last", "older_than", "same_key"},
    }


POWER = load_experiment("nemesis-power")


@pytest.mark.parametrize(("kind", "again"), [("power", "restart"), ("power-and-disks", "replace")])
@given(seed=SEEDS)
def test_a_region_that_loses_power_falls_silent_and_comes_back_as_a_whole(kind, again, seed):
    experiment = load_experiment("nemesis-power", [f"nemesis.kinds=[{kind}]"])
    found = faults(seed, experiment)
    outages = [fault for fault in found if fault.kind == "isolate"]
    assert outages
    for outage in outages:
        region = [f"{outage.region}/{each}" for each in ALL_OF_A_REGION]
        for act, at_us in (("kill", outage.at_us), (again, outage.at_us + outage.for_us)):
            struck = [each.process for each in found if each.kind == act and each.at_us == at_us]
            assert [name for name in struck if name.startswith(outage.region)] == region


@given(SEEDS)
def test_a_region_without_power_has_no_other_disturbance_until_it_has_settled(seed):
    assert POWER.nemesis is not None
    disturbing = defaultdict(list)
    for fault in faults(seed, POWER):
        if isinstance(fault, ProcessFault):
            disturbing[fault.process].append(fault)
    for failover_events in disturbing.values():
        for (begin, end), (later, _) in pairwise(
            zip(failover_events[::2], failover_events[1::2], strict=True)
        ):
            assert begin.kind in {"kill", "stop"}
            assert later.at_us - end.at_us >= POWER.nemesis.settle_us


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("nemesis.vary={topology: [line]}", "nemesis.vary.topology: does not begin with parameters, roles"),
        ("nemesis.vary={parameters.durabel: [true]}", "nemesis.vary.parameters.durabel: with true:"),
        ("nemesis.vary={workload.rate: []}", "nemesis.vary.workload.rate: has no values to draw from"),
        ("nemesis.quiet=24s", "nemesis: start, shortest and quiet together are longer than the run"),
        ("nemesis.shortest=4s", "nemesis.shortest: is longer than the longest"),
        ("nemesis.roles=[prxy]", "nemesis.roles.0: sprinkler has no such role: did you mean proxy?"),
    ],
)
def test_an_invalid_nemesis_is_refused(override, said):
    assert said in refusal(load_experiment, "nemesis", [override])
