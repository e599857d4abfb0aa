"""Cases are drawn within what systems promise to survive, and a seed means the same case every time."""

import json
from dataclasses import replace
from itertools import combinations
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.checks import problems
from experiments.declared import Trait, known
from experiments.hunting.bounds import FORGETTING_MAX, breach, is_valid
from experiments.hunting.case import (
    FORGETTING,
    ON_PROCESSES,
    Case,
    Disturbance,
    Moment,
    case_from_json,
    case_to_json,
)
from experiments.hunting.drawing import Drawing
from experiments.hunting.ground import ground_of
from experiments.hunting.knobs import hasty, knobs_of, pressed
from experiments.hunting.mutating import Parent, mutated
from experiments.hunting.placing import draw_upon, thinned
from experiments.hunting.written import base_of, experiment_of, with_settings
from experiments.loader import load_experiment
from topologies.errors import InputError
from topologies.loader import load_topology

NAMES = ("nemesis", "scribe-nemesis", "meghdoot-nemesis", "nemesis-power")
_MADE: dict[str, Drawing] = {}


def drawing_of(name: str) -> Drawing:
    if name not in _MADE:
        experiment = load_experiment(name)
        base = base_of(experiment)
        _MADE[name] = Drawing(base, experiment.nemesis, knobs_of(base, experiment.nemesis))
    return _MADE[name]


@pytest.mark.parametrize("name", NAMES)
@given(seed=st.integers(0, 1 << 40))
@settings(max_examples=25)
def test_what_a_seed_means_can_run_and_must_be_survived(name, seed):
    drawing, nemesis = drawing_of(name), load_experiment(name).nemesis
    case = drawing.case(seed)
    ground = drawing.ground(case.settings)
    assert breach(case.disturbances, ground) is None
    experiment = experiment_of(base_of(load_experiment(name)), case, ground.topology)
    assert not list(problems(experiment, ground.topology))
    quiet_us = experiment.duration_us - nemesis.quiet_us
    assert all(nemesis.start_us <= each.at_us <= each.end_us <= quiet_us for each in case.disturbances)


@pytest.mark.parametrize("name", NAMES)
@given(seed=st.integers(0, 1 << 40))
@settings(max_examples=15)
def test_the_same_seed_means_the_same_case_also_read_back(name, seed):
    case = drawing_of(name).case(seed)
    assert drawing_of(name).case(seed) == case
    assert case_from_json(json.loads(json.dumps(case_to_json(case)))) == case


@pytest.mark.parametrize("name", NAMES)
@given(seeds=st.tuples(*[st.integers(0, 1 << 40)] * 3))
@settings(max_examples=15)
def test_a_changed_case_stays_within_the_bounds(name, seeds):
    drawing = drawing_of(name)
    seldom = (Moment(3_500_001, ("r0/nobody-7", "r1/nobody-8")),)  # as other settings have
    one, other = (Parent(drawing.case(seed), (3_000_000, 4_500_000), (), seldom) for seed in seeds[:2])
    case = mutated(Random(seeds[2]), drawing, one, other)
    assert case == mutated(Random(seeds[2]), drawing, one, other)
    if case is not None:
        assert breach(case.disturbances, drawing.ground(case.settings)) is None


def test_long_periods_are_drawn_short_together_so_that_they_end_within_a_run():
    drawn = [drawing_of("meghdoot-nemesis").case(seed).settings for seed in range(60)]
    short = [each for each in drawn if each.get("parameters.refresh") == "1875ms"]
    assert short
    assert {each.get("parameters.expire") for each in short} == {"7500ms"}
    assert {each.get("parameters.gone") for each in drawn} <= {None, "10s", "40s"}  # limits a promise


def test_nobody_is_silent_for_so_long_that_what_it_asked_for_is_forgotten():
    short = {"parameters.expire": "7500ms", "parameters.refresh": "1875ms"}
    ground = drawing_of("meghdoot-nemesis").ground(short)
    assert ground.longest_us == 2_812_500  # of 7.5 s less 1.875 s the half
    pause = Disturbance("pause", 2_500_000, 2_900_000, ("r0/subscriber-0",))
    assert breach([pause], ground) == "pause lasts too long"
    assert breach([replace(pause, for_us=2_800_000)], ground) is None


def test_a_disk_is_disturbed_only_where_things_are_kept_on_disks():
    fill = Disturbance("fill", 3_000_000, 1_000_000, ("r0/proxy-0",))
    kept, not_kept = (drawing_of("nemesis").ground({"parameters.durable": each}) for each in (True, False))
    assert breach([fill], kept) is None
    assert breach([fill], not_kept) == "fill is of a disk that there is not"


def test_subscribers_also_subscribe_while_things_are_disturbed():
    drawn = [drawing_of("meghdoot-nemesis").case(seed).settings for seed in range(60)]
    assert 15 < sum(each.get("workload.subscriptions.within") == "6s" for each in drawn) < 45
    assert any("workload.subscriptions.change" in each for each in drawn)


def test_one_replica_at_least_is_left_alone():
    ground = drawing_of("nemesis").ground({})
    assert ground.declared.has("proxy", Trait.REPLICATED)
    all_but_one = Disturbance("crash", 3_000_000, 500_000, ("r0/proxy-0", "r0/proxy-1"))
    assert breach([all_but_one], ground) is None
    soon = Disturbance("pause", 4_000_000, 500_000, ("r0/proxy-2",))  # the others have not settled
    assert breach([all_but_one, soon], ground) == "no replica of r0 is left alone"


def test_replicas_that_the_configuration_service_cannot_speak_to_are_not_left_alone():
    ground = drawing_of("nemesis").ground({})
    apart = Disturbance("separate", 3_000_000, 2_000_000, ("r0/configuration-0",), ("r0/proxy-0",), "forward")
    other = Disturbance("separate", 3_500_000, 1_000_000, ("r0/proxy-2",), ("r0/configuration-0",))
    crash = Disturbance("crash", 5_500_000, 300_000, ("r0/proxy-1",))
    assert breach([apart, other], ground) is None
    assert breach([apart, crash], ground) is None
    assert breach([apart, other, crash], ground) == "no replica of r0 is left alone"
    itself = replace(crash, target=("r0/proxy-2",))
    assert breach([apart, other, itself], ground) is None  # proxy-1 is there


def test_a_region_that_loses_power_loses_it_whole():
    ground = drawing_of("nemesis").ground({"roles.proxy": 5})
    power = Disturbance("power", 3_000_000, 500_000, ("r0",))
    pause = Disturbance("pause", 3_100_000, 500_000, ("r0/proxy-4",))
    assert breach([power], ground) is None
    assert breach([power, pause], ground) == "r0/proxy-4 is disturbed by power and pause at once"
    assert (
        breach([replace(power, target=("r0/proxy-0",))], ground) == "power is of a region that there is not"
    )


@pytest.mark.parametrize(
    ("name", "roles"),
    [("nemesis", ("proxy",)), ("scribe-nemesis", ("forwarder",)), ("meghdoot-nemesis", ("peer",))],
)
def test_only_servers_that_neither_publish_nor_want_events_die_for_good(name, roles):
    assert drawing_of(name).ground({}).of_kind("die") == roles


def test_links_are_also_thinned_until_those_left_just_connect_all_regions():
    ground = drawing_of("meghdoot-nemesis").ground({})
    links, regions = {frozenset(link) for link in ground.links}, len(ground.topology.regions)
    shapes = set()
    for seed in range(20):
        cuts = thinned(Random(seed), ground, ())
        assert len({(each.kind, each.at_us, each.for_us) for each in cuts}) == 1
        left = links - {frozenset(each.target) for each in cuts}
        assert len(left) == regions - 1
        assert breach(cuts, ground) is None  # which asks that they are connected
        shapes.add(max(sum(region in link for link in left) for region in ground.topology.regions))
    assert shapes == {2, 3}, "lines, and stars"
    assert thinned(Random(1), drawing_of("nemesis").ground({"topology": "line-3"}), ()) == []


def test_two_processes_of_a_role_are_disturbed_at_once_wherever_they_are():
    cases = [drawing_of("meghdoot-nemesis").case(seed) for seed in range(150)]
    apart = [
        each.kind
        for case in cases
        for each in case.disturbances
        if each.kind in ON_PROCESSES and len({name.partition("/")[0] for name in each.target}) > 1
    ]
    assert len(apart) > 10
    assert len(set(apart)) > 3


def test_both_ends_of_what_is_seldom_said_are_disturbed_at_once():
    drawing = drawing_of("scribe-nemesis")
    moment = Moment(4_123_457, ("r0/member-0", "r1/publisher-0"))
    parent = Parent(Case(1, {}, ()), (), (), (moment,))
    cases = [mutated(Random(seed), drawing, parent, parent) for seed in range(200)]
    struck = [
        {name for each in case.disturbances if each.at_us == moment.at_us for name in each.target}
        for case in cases
        if case
    ]
    assert any(names >= set(moment.processes) for names in struck)


def test_all_periods_are_also_half_as_long_but_for_those_of_batching():
    base, nemesis = base_of(load_experiment("scribe-nemesis")), load_experiment("scribe-nemesis").nemesis
    (half,) = hasty(base, nemesis)
    assert (half["parameters.heartbeat"], half["parameters.retransmit"]) == ("250ms", "500ms")
    assert not {f"parameters.{name}" for name in known(base.system).batching} & set(half)
    drawn = [drawing_of("scribe-nemesis").case(seed).settings for seed in range(60)]
    assert sum(half.items() <= each.items() for each in drawn) > 3


def test_who_died_for_good_is_killed_and_never_disturbed_again():
    ground = drawing_of("scribe-nemesis").ground({})
    died = Disturbance("die", 3_000_000, 0, ("r0/forwarder-0",))
    case = Case(1, {}, (died,))
    (fault,) = experiment_of(base_of(load_experiment("scribe-nemesis")), case, ground.topology).faults
    assert (fault.kind, fault.process, fault.at_us) == ("kill", "r0/forwarder-0", 3_000_000)
    assert breach([died], ground) is None
    later = Disturbance("pause", 9_000_000, 500_000, ("r0/forwarder-0",))
    assert breach([died, later], ground) == "r0/forwarder-0 is disturbed by die and pause at once"


def test_a_link_is_not_made_slow_by_less_than_it_jitters():
    link = {"jitter": "9ms"}
    network = {"kind": "line", "regions": 2, "delays": {"from": "15ms", "to": "15ms"}, "link": link}
    ground = drawing_of("nemesis").ground({"topology": network})
    slow = Disturbance("delay", 3_000_000, 500_000, ("r0", "r1"), amount=9_000)
    assert breach([slow], ground) is None
    assert breach([replace(slow, amount=8_999)], ground) == "delay is less than the link's jitter"


def test_a_slow_disk_is_fast_again_with_its_last_sync_within_the_time_for_disturbances():
    ground = drawing_of("nemesis-power").ground({})
    slow = Disturbance("slow-disk", ground.last_us - 2_000_000, 1_000_000, ("r0/proxy-0",), amount=1_000_000)
    assert breach([slow], ground) is None
    assert (
        breach([replace(slow, amount=1_000_001)], ground)
        == "slow-disk is not within the time for disturbances"
    )
    experiment = experiment_of(
        base_of(load_experiment("nemesis-power")), Case(1, {}, (slow,)), ground.topology
    )
    (fault,) = experiment.faults
    assert (fault.kind, fault.sync_us, fault.for_us) == ("slow-disk", 1_000_000, 1_000_000)
    assert "slow-disk" not in drawing_of("scribe-nemesis").ground({}).kinds  # nobody waits for one


def test_servers_without_replicas_lose_their_memory_a_few_at_a_time():
    ground = drawing_of("scribe-nemesis").ground({})
    names = [f"r{number}/member-0" for number in range(FORGETTING_MAX + 1)]
    crashes = [Disturbance(FORGETTING[0], 3_000_000, 500_000, (name,)) for name in names]
    assert breach(crashes[:-1], ground) is None
    assert breach(crashes, ground) == "too many servers lose their memory at once"


def test_servers_that_are_alone_count_with_those_that_lose_their_memory():
    ground = drawing_of("scribe-nemesis").ground({"roles.member": 2})
    apart = Disturbance("separate", 3_000_000, 500_000, ("r0/member-0",), ("r0/member-1",))
    crashes = Disturbance(FORGETTING[0], 4_000_000, 500_000, ("r0/publisher-0", "r1/member-0"))
    assert breach([apart, crashes], ground) is None
    cut = Disturbance("cut", 3_100_000, 900_000, ("r0", "r1"))
    assert breach([apart, cut, crashes], ground) == "too many servers lose their memory at once"
    assert breach([apart, replace(cut, target=("r1", "r2")), crashes], ground) is None
    assert breach([apart, replace(cut, at_us=3_500_001), crashes], ground) is None


def test_where_subscriptions_by_content_end_one_server_loses_its_memory_at_a_time():
    drawing = drawing_of("meghdoot-nemesis")
    crashes = [Disturbance(FORGETTING[0], 3_000_000, 500_000, (f"r{number}/peer-0",)) for number in range(2)]
    assert breach(crashes, drawing.ground({})) is None
    ground = drawing.ground({"workload.subscriptions.change": "4s"})
    assert breach(crashes, ground) == "too many servers lose their memory at once"
    assert breach(crashes[:1], ground) is None
    without_copies = {"workload.subscriptions.change": "4s", "parameters.mirror": False}
    assert breach(crashes[:1], drawing.ground(without_copies)) == "too many servers lose their memory at once"


def test_no_link_is_to_carry_more_than_it_can():
    drawing = drawing_of("scribe-nemesis")
    narrow = {
        "kind": "mesh",
        "regions": 2,
        "delays": {"from": "5ms", "to": "5ms"},
        "link": {"rate": "10mbit"},
    }
    large = {"topology": narrow, "workload.event_size": "1000B"}
    assert drawing.ground({**large, "workload.rate": "10/s"})
    with pytest.raises(InputError, match="more than some link may carry"):
        drawing.ground({**large, "workload.rate": "500/s"})
    experiment = load_experiment("scribe-nemesis")
    asked = with_settings(base_of(experiment), {**large, "workload.rate": "500/s"})
    assert ground_of(asked, {}, experiment.nemesis).burden > 1  # as it is written
    assert ground_of(asked, {"workload.rate": "400/s"}, experiment.nemesis)


def test_where_content_decides_regions_stay_connected():
    ground = drawing_of("meghdoot-nemesis").ground({})
    cuts = [Disturbance("cut", 3_000_000, 500_000, link) for link in ground.links if "r0" in link]
    assert breach(cuts[:-1], ground) is None
    assert breach(cuts, ground) == "regions are cut off from each other"
    assert not {"isolate", "partition"} & set(ground.kinds)


def test_a_region_loses_power_only_where_replicas_are_for_that():
    assert "power" not in drawing_of("scribe-nemesis").ground({}).kinds
    assert "power" in drawing_of("nemesis").ground({}).kinds


@pytest.mark.parametrize(
    ("change", "at_fault"),
    [
        ({"kind": "quake"}, "kind"),
        ({"at_us": -1}, "at_us"),
        ({"target": [7]}, "target"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_a_case_that_is_none_is_one_line_with_the_field(change, at_fault):
    case = Case(1, {}, (Disturbance("cut", 3_000_000, 500_000, ("r0", "r1")),))
    content = case_to_json(case)
    content["disturbances"][0] |= change
    with pytest.raises(InputError) as error:
        case_from_json(content, "corpus/000001.json")
    assert at_fault in error.value.field
    assert "\n" not in str(error.value)


def test_what_need_not_be_survived_is_not_valid():
    experiment = load_experiment("nemesis")
    base, nemesis = base_of(experiment), experiment.nemesis
    case = Case(1, {}, (Disturbance("cut", 3_000_000, 500_000, ("r0", "r1")),))
    assert is_valid(case, base, nemesis)
    assert not is_valid(replace(case, settings={"parameters.view_size": 0}), base, nemesis)
    late = Disturbance("cut", base.duration_us - nemesis.quiet_us, 1_000, ("r0", "r1"))
    assert not is_valid(replace(case, disturbances=(late,)), base, nemesis)
    nowhere = Disturbance("cut", 3_000_000, 500_000, ("r0", "r9"))
    assert not is_valid(replace(case, disturbances=(nowhere,)), base, nemesis)


@pytest.mark.parametrize(
    ("kind", "durable", "lost"),
    [
        ("power", True, "== 0"),
        ("power", False, ">= 0"),
        ("power-and-disks", True, ">= 0"),
        ("crash", False, "== 0"),
    ],
)
def test_losses_count_unless_a_region_loses_what_only_it_had(kind, durable, lost):
    experiment = load_experiment("nemesis")
    base = base_of(experiment)
    ground = drawing_of("nemesis").ground({})
    target = ("r0/client-0",) if kind == "crash" else ("r0",)
    disturbance = Disturbance(kind, 3_000_000, 500_000, target)
    assert breach([disturbance], ground) is None
    case = Case(1, {"parameters.durable": durable}, (disturbance,))
    made = experiment_of(base, case, ground.topology)
    assert f"events.lost {lost}" in {each.text for each in made.expect}
    assert {"events.duplicated == 0", "events.corrupted == 0"} <= {each.text for each in made.expect}


def test_a_disturbance_is_put_right_after_what_was_new_to_the_microsecond():
    drawing = drawing_of("nemesis")
    cut = Disturbance("cut", 6_000_000, 1_000_000, ("r0", "r1"))
    parent = Parent(Case(1, {}, (cut,)), (7_123_457,))
    cases = [mutated(Random(seed), drawing, parent, parent) for seed in range(60)]
    times = {each.at_us for case in cases if case is not None for each in case.disturbances}
    assert 7_123_457 in times
    case = next(case for case in cases if case and any(d.at_us == 7_123_457 for d in case.disturbances))
    ground = drawing.ground(case.settings)
    made = experiment_of(base_of(load_experiment("nemesis")), case, ground.topology)
    assert 7_123_457 in {fault.at_us for fault in made.faults}


def test_who_does_what_is_seldom_done_is_disturbed_right_then():
    drawing = drawing_of("nemesis")
    ground = drawing.ground({})
    moment = Moment(7_123_457, ("r0/proxy-0", "r1/proxy-0"))
    drawn = [draw_upon(Random(seed), ground, (), moment) for seed in range(80)]
    found = [each for each in drawn if each is not None]
    assert len(found) > 60
    assert {each.at_us for each in found} == {7_123_457}
    assert {each.target for each in found if each.kind in {"cut", "flap"}} == {("r0", "r1")}
    crashed = {each.target for each in found if each.kind in {"crash", "pause", "reset"}}
    assert crashed == {("r0/proxy-0",), ("r1/proxy-0",)}
    parent = Parent(Case(1, {}, ()), (), (), (moment,))
    cases = [mutated(Random(seed), drawing, parent, parent) for seed in range(60)]
    upon = [case for case in cases if case and any(d.at_us == 7_123_457 for d in case.disturbances)]
    assert len(upon) > 6
    assert any((case.seed, dict(case.settings)) == (1, {}) for case in upon), "all goes as it went until then"


def test_of_what_a_region_forgets_only_its_own_streams_may_be_lost():
    base = base_of(load_experiment("nemesis"))
    lost = Disturbance("power-and-disks", 3_000_000, 300_000, ("r0",))
    case = Case(1, {"workload.streams": 2}, (lost,))
    made = experiment_of(base, case, load_topology(base.topology))
    said = {each.text for each in made.expect if each.path.startswith("streams.")}
    assert said == {f"streams.{name}.lost == 0" for name in ("r1.0", "r1.1", "r2.0", "r2.1")}
    assert "events.lost >= 0" in {each.text for each in made.expect}


def test_what_is_expected_of_a_stream_is_not_when_its_region_forgets_it():
    said = ["streams.r0.lost == 0", "streams.r0.duplicated == 0", "streams.r1.lost <= 5"]
    base = base_of(load_experiment("nemesis", [f"expect=[{', '.join(said)}]"]))
    lost = Disturbance("power-and-disks", 3_000_000, 300_000, ("r0",))
    made = experiment_of(base, Case(1, {}, (lost,)), load_topology(base.topology))
    texts = [each.text for each in made.expect if each.path.startswith("streams.")]
    assert texts == [*said[1:], "streams.r1.lost == 0", "streams.r2.lost == 0"]
    many = Case(1, {"workload.streams": 40}, (lost,))
    none = experiment_of(base_of(load_experiment("nemesis")), many, load_topology(base.topology))
    assert not [each for each in none.expect if each.path.startswith("streams.")], (
        "of so many none has figures"
    )


@pytest.mark.parametrize(
    ("streams", "spared"), [(2, False), ([{"region": "r0", "publishers": ["r1"]}], True)]
)
def test_who_outlives_a_region_that_forgets_may_publish_again_what_had_no_answer(streams, spared):
    base = base_of(load_experiment("nemesis-streams"))
    lost = Disturbance("power-and-disks", 3_000_000, 300_000, ("r0",))
    case = Case(1, {"workload.streams": streams}, (lost,))
    said = {each.text for each in experiment_of(base, case, load_topology(base.topology)).expect}
    assert "events.lost >= 0" in said
    assert ("events.duplicated >= 0" in said) == spared != ("events.duplicated == 0" in said)


def test_limits_of_memory_are_drawn_where_a_run_reaches_them_unless_they_limit_what_is_promised():
    knobs = knobs_of(base_of(load_experiment("nemesis")), load_experiment("nemesis").nemesis)
    assert knobs["parameters.burst_limit"] == ["1B", "256B", "4096B", "131072B", "524288B"]
    assert knobs["parameters.batch_limit"][0] == "16B"  # events have 10
    assert knobs["parameters.window_batches"] == [1, 16, 512, 2048]
    assert len(knobs["parameters.history_limit"]) == 2


def test_limits_are_also_small_all_together_as_far_as_they_go_together():
    base, nemesis = base_of(load_experiment("nemesis")), load_experiment("nemesis").nemesis
    least, small, _ = pressed(base, nemesis)
    assert (least["parameters.unsynced_limit"], least["parameters.burst_limit"]) == ("4096B", "1B")
    assert least["parameters.control_limit"] == "1024B"  # with less nobody could be greeted
    assert (small["parameters.control_limit"], small["workload.rate"]) == ("1024B", "50/s")
    drawn = [drawing_of("nemesis").case(seed).settings for seed in range(200)]
    assert any(least.items() <= each.items() for each in drawn)


def test_disturbances_last_as_long_as_times_that_follow_from_several_parameters():
    settings = {"parameters.advertisement_period": "1s", "parameters.silence_periods": 3.2}
    ground = drawing_of("nemesis").ground(settings)
    assert {3_200_000, 2_700_000} <= set(ground.timeouts_us)  # elsewhere, and between proxies
    assert ground.longest_us == 3_840_000 > ground.nemesis.longest_us


def test_disturbances_are_often_put_where_and_when_others_begin_or_end():
    cases = [drawing_of("nemesis").case(seed).disturbances for seed in range(200)]
    several = [case for case in cases if len(case) > 1]
    assert sum(any(map(beside, *zip(*combinations(case, 2), strict=True))) for case in several) > 0.4 * len(
        several
    )


def beside(one, other):
    places = [{name.partition("/")[0] for name in (*each.target, *each.others)} for each in (one, other)]
    apart_us = [abs(a - b) for a in (one.at_us, one.end_us) for b in (other.at_us, other.end_us)]
    return bool(places[0] & places[1]) and min(apart_us) <= 1_000
