"""A case as an experiment, and its expectations."""

import pytest

from experiments.checks import problems
from experiments.hunting.bounds import unsurvivable_reason
from experiments.hunting.case import (
    DisturbanceTrigger,
    HuntCase,
    HuntDisturbance,
    case_from_json,
    case_to_json,
)
from experiments.hunting.case_experiment import experiment_of, hunt_base
from experiments.hunting.triggering import triggered
from experiments.loader import load_experiment
from testbed.planning import make_plan
from tests.experiments.hunting.drawings import drawing_of
from topologies.errors import InputError
from topologies.loader import load_topology


@pytest.mark.parametrize(
    ("change", "at_fault"),
    [
        ({"kind": "quake"}, "kind"),
        ({"at_us": -1}, "at_us"),
        ({"target": [7]}, "target"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_an_invalid_case_is_refused_in_one_line_with_the_field(change, at_fault):
    case = HuntCase(1, {}, (HuntDisturbance("cut", 3_000_000, 500_000, ("r0", "r1")),))
    content = case_to_json(case)
    content["disturbances"][0] |= change
    with pytest.raises(InputError) as error:
        case_from_json(content, "corpus/000001.json")
    assert at_fault in error.value.field
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("kind", "durable", "lost"),
    [
        ("power", True, "== 0"),
        ("power", False, ">= 0"),
        ("power-and-disks", True, ">= 0"),
        ("crash", False, "== 0"),
    ],
)
def test_losses_count_unless_a_region_loses_data_that_only_it_had(kind, durable, lost):
    experiment = load_experiment("nemesis")
    base = hunt_base(experiment)
    targets = drawing_of("nemesis").targets({})
    target = ("r0/client-0",) if kind == "crash" else ("r0",)
    disturbance = HuntDisturbance(kind, 3_000_000, 500_000, target)
    assert unsurvivable_reason([disturbance], targets) is None
    case = HuntCase(1, {"parameters.durable": durable}, (disturbance,))
    made = experiment_of(base, case, targets.topology)
    assert f"events.lost {lost}" in {each.text for each in made.expect}
    assert {"events.duplicated == 0", "events.corrupted == 0"} <= {each.text for each in made.expect}


def test_only_a_forgetting_regions_own_streams_may_lose_events():
    base = hunt_base(load_experiment("nemesis"))
    lost = HuntDisturbance("power-and-disks", 3_000_000, 300_000, ("r0",))
    case = HuntCase(1, {"workload.streams": 2}, (lost,))
    made = experiment_of(base, case, load_topology(base.topology))
    said = {each.text for each in made.expect if each.path.startswith("streams.")}
    assert said == {f"streams.{name}.lost == 0" for name in ("r1.0", "r1.1", "r2.0", "r2.1")}
    assert "events.lost >= 0" in {each.text for each in made.expect}


def test_expectations_on_a_stream_are_dropped_if_its_region_forgets_it():
    said = ["streams.r0.lost == 0", "streams.r0.duplicated == 0", "streams.r1.lost <= 5"]
    base = hunt_base(load_experiment("nemesis", [f"expect=[{', '.join(said)}]"]))
    lost = HuntDisturbance("power-and-disks", 3_000_000, 300_000, ("r0",))
    made = experiment_of(base, HuntCase(1, {}, (lost,)), load_topology(base.topology))
    texts = [each.text for each in made.expect if each.path.startswith("streams.")]
    assert texts == [*said[1:], "streams.r1.lost == 0", "streams.r2.lost == 0"]
    many = HuntCase(1, {"workload.streams": 40}, (lost,))
    none = experiment_of(hunt_base(load_experiment("nemesis")), many, load_topology(base.topology))
    assert not [each for each in none.expect if each.path.startswith("streams.")], (
        "too many streams for figures of each"
    )


@pytest.mark.parametrize(
    ("streams", "spared"), [(2, False), ([{"region": "r0", "publishers": ["r1"]}], True)]
)
def test_publishers_that_outlive_a_forgetting_region_may_repeat_unanswered_events(streams, spared):
    base = hunt_base(load_experiment("nemesis-streams"))
    lost = HuntDisturbance("power-and-disks", 3_000_000, 300_000, ("r0",))
    case = HuntCase(1, {"workload.streams": streams}, (lost,))
    said = {each.text for each in experiment_of(base, case, load_topology(base.topology)).expect}
    assert "events.lost >= 0" in said
    assert ("events.duplicated >= 0" in said) == spared != ("events.duplicated == 0" in said)


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


def test_a_trigger_replaces_only_the_start_of_a_disturbance():
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


def test_a_cut_is_triggered_by_the_last_message_of_any_process_unless_another_one_overlaps():
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


def test_a_separation_is_triggered_by_the_process_last_message_unless_another_one_overlaps():
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
