"""Disturbances that begin after what their processes have sent, in place of at a time."""

from experiments.checks import problems
from experiments.hunting.case import (
    DisturbanceTrigger,
    HuntCase,
    HuntDisturbance,
    case_from_json,
    case_to_json,
)
from experiments.hunting.triggering import triggered
from experiments.hunting.written import experiment_of, hunt_base
from experiments.loader import load_experiment
from testbed.planning import make_plan
from topologies.loader import load_topology

KILL = HuntDisturbance("crash", 5_000_000, 1_000_000, ("r0/proxy-0",))
CUT = HuntDisturbance("cut", 4_000_000, 2_000_000, ("r0", "r1"))
CASE = HuntCase(1, {}, (CUT, KILL))


def message(time_us: int, source: str, kind: str) -> dict[str, object]:
    return {"time_us": time_us, "source": source, "kind": kind}


MESSAGES = [
    message(4_100_000, "r0/proxy-0", "FOLLOW"),
    message(4_200_000, "r0/proxy-1", "FOLLOW"),
    message(4_980_000, "r0/proxy-0", "HELLO"),
    message(4_999_900, "r0/proxy-0", "FOLLOW"),
    message(5_000_100, "r0/proxy-0", "HELLO"),
]


def test_a_disturbance_begins_after_its_process_last_message_and_all_else_stays():
    found = triggered(CASE, MESSAGES, 3_700_000)
    assert found.disturbances[0] == CUT
    assert found.disturbances[1].after == DisturbanceTrigger("r0/proxy-0", "FOLLOW", 2, 3_700_000)
    assert case_from_json(case_to_json(found)) == found


def test_a_triggered_case_is_a_plain_experiment_that_can_run():
    base, topology = hunt_base(load_experiment("nemesis")), load_topology("three-regions")
    experiment = experiment_of(base, triggered(CASE, MESSAGES, 3_700_000), topology)
    kill = next(fault for fault in experiment.faults if fault.kind == "kill")
    assert (kill.at_us, kill.when.sends, kill.when.times) == (3_700_000, "FOLLOW", 2)
    again = next(fault for fault in experiment.faults if fault.kind == "restart")
    assert again.at_us == KILL.end_us
    assert not list(problems(experiment, topology))


def test_a_cut_begins_after_the_last_message_that_anybody_sent_unless_another_one_meets_it():
    near = [message(3_990_000, "r0/proxy-1", "FOLLOW"), message(3_999_000, "r1/client-0", "VIEW"), *MESSAGES]
    cut, kill = triggered(CASE, near, 3_700_000).disturbances
    assert cut.after == DisturbanceTrigger("r1/client-0", "VIEW", 1, 3_700_000)
    base, topology = hunt_base(load_experiment("nemesis")), load_topology("three-regions")
    experiment = experiment_of(base, HuntCase(1, {}, (cut, kill)), topology)
    begin, end = (fault for fault in experiment.faults if fault.kind in {"cut", "restore"})
    assert (begin.at_us, begin.when.sends, begin.for_us) == (3_700_000, "VIEW", None)
    assert (end.at_us, end.what) == (CUT.end_us, begin.name)
    make_plan(experiment, topology, seed=1, links_kind="auto")
    slow = HuntDisturbance("delay", 5_500_000, 1_000_000, ("r1", "r2"), amount=9_000)
    kept = triggered(HuntCase(1, {}, (CUT, KILL, slow)), near, 3_700_000).disturbances
    assert [each.after is None for each in kept] == [True, False, True]


def test_a_process_is_kept_apart_after_its_own_last_message_unless_another_one_is_meanwhile():
    apart = HuntDisturbance("separate", 5_000_000, 1_000_000, ("r0/proxy-0",), ("r0/client-0",))
    [found] = triggered(HuntCase(1, {}, (apart,)), MESSAGES, 3_700_000).disturbances
    assert found.after == DisturbanceTrigger("r0/proxy-0", "FOLLOW", 2, 3_700_000)
    base, topology = hunt_base(load_experiment("nemesis")), load_topology("three-regions")
    experiment = experiment_of(base, HuntCase(1, {}, (found,)), topology)
    begin, end = experiment.faults
    assert (begin.kind, begin.when.sends, begin.for_us) == ("separate", "FOLLOW", None)
    assert (end.at_us, end.what) == (apart.end_us, begin.name)
    make_plan(experiment, topology, seed=1, links_kind="auto")
    other = HuntDisturbance("separate", 5_500_000, 1_000_000, ("r0/proxy-1",), ("r0/client-0",))
    assert triggered(HuntCase(1, {}, (apart, other)), MESSAGES, 3_700_000) is None


def test_a_message_within_another_is_named():
    found = triggered(CASE, [message(4_999_900, "r0/proxy-0", "ROUTED:HELLO")], 0)
    assert found.disturbances[1].after == DisturbanceTrigger("r0/proxy-0", "HELLO", 1, 0)


def test_without_a_recent_message_there_is_no_triggered_case():
    assert triggered(CASE, MESSAGES[:2], 3_700_000) is None
    assert triggered(HuntCase(1, {}, (CUT,)), MESSAGES, 3_700_000) is None
