"""Cases stay within what systems promise to survive, and a seed always gives the same case."""

import json
from itertools import combinations
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.checks import problems, role_of
from experiments.declared import Trait, known_system
from experiments.hunting.bounds import unsurvivable_reason
from experiments.hunting.case import (
    ON_PROCESSES,
    case_from_json,
    case_to_json,
)
from experiments.hunting.case_experiment import experiment_of, hunt_base
from experiments.hunting.huntable import nemesis_of
from experiments.hunting.networks import REGIONS_MAX, network_text, random_network, smaller
from experiments.hunting.placement import ended_servers, thinning_cuts
from experiments.hunting.settings import drawn_settings, halved_periods, shortened_long_periods, small_limits
from experiments.loader import load_experiment
from tests.experiments.hunting.drawings import cases_of, drawing_of
from topologies.loader import load_topology
from topologies.routes import connected

NAMES = ("nemesis", "scribe-nemesis", "meghdoot-nemesis", "nemesis-power")


@pytest.mark.parametrize("name", NAMES)
@given(seed=st.integers(0, 1 << 40))
@settings(max_examples=12)
@pytest.mark.slow
def test_the_case_of_every_seed_is_valid_and_reads_back(name, seed):
    drawing, nemesis = drawing_of(name), load_experiment(name).nemesis
    case = drawing.case(seed)
    targets = drawing.targets(case.settings)
    assert unsurvivable_reason(case.disturbances, targets) is None
    experiment = experiment_of(hunt_base(load_experiment(name)), case, targets.topology)
    assert not list(problems(experiment, targets.topology))
    quiet_us = experiment.duration_us - nemesis.quiet_us
    assert all(nemesis.start_us <= each.at_us <= each.end_us <= quiet_us for each in case.disturbances)
    assert drawing.case(seed) == case
    assert case_from_json(json.loads(json.dumps(case_to_json(case)))) == case


def test_some_cases_cut_links_until_a_spanning_tree_is_left():
    targets = drawing_of("meghdoot-nemesis").targets({})
    links, regions = {frozenset(link) for link in targets.links}, len(targets.topology.regions)
    shapes, kinds = set(), set()
    for seed in range(20):
        cuts = thinning_cuts(Random(seed), targets, ())
        assert len({(each.kind, each.at_us, each.for_us) for each in cuts}) == 1
        left = links - {frozenset(each.target) for each in cuts}
        assert len(left) == regions - 1
        assert unsurvivable_reason(cuts, targets) is None  # which asks that they are connected
        shapes.add(max(sum(region in link for link in left) for region in targets.topology.regions))
        kinds.add(cuts[0].kind)
    assert kinds == {"cut", "sever"}, "for a while, and permanently"
    assert shapes == {2, 3}, "lines, and stars"
    assert thinning_cuts(Random(1), drawing_of("nemesis").targets({"topology": "line-3"}), ()) == []


@pytest.mark.slow
def test_two_processes_of_a_role_in_any_regions_are_disturbed_at_once():
    cases = cases_of("meghdoot-nemesis", 100)
    apart = [
        each.kind
        for case in cases
        for each in case.disturbances
        if each.kind in ON_PROCESSES and len({name.partition("/")[0] for name in each.target}) > 1
    ]
    assert len(apart) > 10
    assert len(set(apart)) > 3


@pytest.mark.parametrize("name", NAMES)
def test_as_many_servers_end_at_once_as_the_system_must_survive(name):
    targets = drawing_of(name).targets({})
    drawn = [ended_servers(Random(seed), targets, ()) for seed in range(30)]
    assert all(unsurvivable_reason(each, targets) is None for each in drawn)
    names = [[name for each in some for name in each.target] for some in drawn]
    assert {targets.declared.has(role_of(name), Trait.SERVER) for some in names for name in some} == {True}
    assert max(map(len, names)) > 1
    assert {each.kind for some in drawn for each in some} == {"crash", "die"}
    assert any(len({each.at_us for each in some}) == 1 for some in drawn if len(some) > 1)


@pytest.mark.slow
def test_disturbances_often_start_at_the_place_and_time_of_others():
    cases = [case.disturbances for case in cases_of("nemesis")]
    several = [case for case in cases if len(case) > 1]
    assert sum(any(map(beside, *zip(*combinations(case, 2), strict=True))) for case in several) > 0.4 * len(
        several
    )


def beside(one, other):
    places = [{name.partition("/")[0] for name in (*each.target, *each.others)} for each in (one, other)]
    apart_us = [abs(a - b) for a in (one.at_us, one.end_us) for b in (other.at_us, other.end_us)]
    return bool(places[0] & places[1]) and min(apart_us) <= 1_000


@pytest.mark.slow
def test_long_periods_are_drawn_short_together_so_that_they_end_within_a_run():
    drawn = [case.settings for case in cases_of("meghdoot-nemesis", 100)]
    short = [each for each in drawn if each.get("parameters.refresh") == "1875ms"]
    assert short
    assert {each.get("parameters.expire") for each in short} == {"7500ms"}
    assert {each.get("parameters.gone") for each in drawn} <= {None, "10s", "40s"}  # limits a promise


@pytest.mark.slow
def test_some_subscriptions_are_made_during_disturbances():
    drawn = [case.settings for case in cases_of("meghdoot-nemesis", 100)]
    assert 25 < sum(each.get("workload.subscriptions.within") == "6s" for each in drawn) < 75
    assert any("workload.subscriptions.change" in each for each in drawn)


def test_all_periods_but_those_of_batching_are_sometimes_halved():
    base, nemesis = hunt_base(load_experiment("scribe-nemesis")), load_experiment("scribe-nemesis").nemesis
    (half,) = halved_periods(base, nemesis)
    assert (half["parameters.heartbeat"], half["parameters.retransmit"]) == ("250ms", "500ms")
    assert not {f"parameters.{name}" for name in known_system(base.system).batching} & set(half)
    drawn = [drawing_of("scribe-nemesis").case(seed).settings for seed in range(60)]
    assert sum(half.items() <= each.items() for each in drawn) > 3


def test_memory_limits_that_a_run_reaches_are_drawn_unless_they_limit_a_promise():
    knobs = drawn_settings(hunt_base(load_experiment("nemesis")), load_experiment("nemesis").nemesis)
    assert knobs["parameters.burst_limit"] == ["1B", "64B", "1024B", "32768B", "131072B"]
    assert knobs["parameters.batch_limit"][0] == "16B"  # events have 10
    assert knobs["parameters.window_batches"] == [1, 16, 512, 2048]
    assert len(knobs["parameters.history_limit"]) == 2


@pytest.mark.slow
def test_all_limits_are_sometimes_small_together():
    base, nemesis = hunt_base(load_experiment("nemesis")), load_experiment("nemesis").nemesis
    least, small, _ = small_limits(base, nemesis)
    assert (least["parameters.unsynced_limit"], least["parameters.burst_limit"]) == ("4096B", "1B")
    assert least["parameters.control_limit"] == "1024B"  # less would refuse every HELLO
    assert (small["parameters.control_limit"], small["workload.rate"]) == ("1024B", "50/s")
    drawn = [case.settings for case in cases_of("nemesis")]
    assert any(least.items() <= each.items() for each in drawn)


def test_programs_parameters_are_drawn_only_by_the_nemesis():
    experiment = load_experiment("link-failure-systems", ["variant=etcd"])
    base, nemesis = hunt_base(experiment), nemesis_of(experiment)
    assert (
        halved_periods(base, nemesis)
        == shortened_long_periods(base, nemesis)
        == small_limits(base, nemesis)
        == []
    )


@given(st.integers(0, 1 << 40))
def test_every_seeds_network_is_connected_and_has_few_regions(seed):
    given = random_network(Random(seed))
    assert given == random_network(Random(seed))
    topology = load_topology(given)
    assert 2 <= len(topology.regions) <= REGIONS_MAX
    assert connected(tuple(topology.regions), [link.between for link in topology.links])
    assert f"{len(topology.regions)} regions" in network_text(given)


def size(given) -> tuple[int, ...]:
    topology, delays = load_topology(given), given["delays"]
    return (
        len(topology.regions),
        len(given.get("link", ())),
        "asymmetric" in delays,
        delays["from"] != delays["to"],
    )


@given(st.integers(0, 1 << 40))
def test_smaller_networks_lead_to_the_least_one(seed):
    given = random_network(Random(seed))
    while found := list(smaller(given)):
        assert all(size(each) < size(given) for each in found)
        given = found[-1]
    assert size(given) == (2 if given["kind"] in {"mesh", "line", "tree"} else 3, 0, False, False)


@pytest.mark.slow
def test_hunts_draw_generated_networks_of_many_kinds_and_named_ones():
    drawn = [case.settings.get("topology") for case in cases_of("nemesis")]
    kinds = {each["kind"] for each in drawn if isinstance(each, dict)}
    assert kinds >= {"ring", "line", "star", "mesh", "tree"}
    assert any(isinstance(each, str) for each in drawn)
    assert drawn.count(None) > 60
    two = [each for each in drawn if each is not None and len(load_topology(each).regions) == 2]
    assert len(two) > 40
    assert sum(each == "two-regions" for each in two) < 10, "there nothing takes any time"


OTHERS = (
    {"regions": {"a": {}, "b": {}}, "links": [{"between": ["a", "b"], "delay": "5ms"}]},
    {"kind": "regular", "regions": 4, "delays": {"from": "5ms", "to": "30ms"}, "name": "mine"},
    {"kind": "ring", "regions": 3, "delays": ["1ms", "2ms", "3ms"]},
    {"kind": "transit-stub"},
)


def test_networks_not_drawn_by_the_hunt_are_not_shrunk():
    assert [list(smaller(each)) for each in OTHERS] == [[], [], [], []]
    assert [network_text(each) for each in OTHERS] == ["of its own", "mine", "of its own", "of its own"]


def test_a_network_is_described_in_a_few_words():
    link = {"loss": "1%", "rate": "10mbit"}
    grid = {"kind": "grid", "rows": 2, "columns": 3, "delays": {"from": "4ms", "to": "20ms"}, "link": link}
    assert network_text(grid) == "a grid of 6 regions, 4ms to 20ms apart, loss 1%, rate 10mbit"
    assert network_text({"kind": "mesh", "regions": 2, "delays": {"from": "4ms", "to": "4ms"}}) == (
        "a full mesh of 2 regions, 4ms apart"
    )
    assert network_text("ring-4") == "ring-4"
