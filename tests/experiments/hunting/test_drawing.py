"""Cases stay within what systems promise to survive, and a seed always gives the same case."""

import json
from itertools import combinations
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.checks import problems, role_of
from experiments.declared import Trait
from experiments.hunting.bounds import unsurvivable_reason
from experiments.hunting.case import (
    ON_PROCESSES,
    case_from_json,
    case_to_json,
)
from experiments.hunting.placement import ended_servers, thinning_cuts
from experiments.hunting.written import experiment_of, hunt_base
from experiments.loader import load_experiment
from tests.experiments.hunting.drawings import cases_of, drawing_of

NAMES = ("nemesis", "scribe-nemesis", "meghdoot-nemesis", "nemesis-power")


@pytest.mark.parametrize("name", NAMES)
@given(seed=st.integers(0, 1 << 40))
@settings(max_examples=12)
@pytest.mark.slow
def test_every_seeds_case_can_run_must_be_survived_and_reads_back(name, seed):
    drawing, nemesis = drawing_of(name), load_experiment(name).nemesis
    case = drawing.case(seed)
    ground = drawing.ground(case.settings)
    assert unsurvivable_reason(case.disturbances, ground) is None
    experiment = experiment_of(hunt_base(load_experiment(name)), case, ground.topology)
    assert not list(problems(experiment, ground.topology))
    quiet_us = experiment.duration_us - nemesis.quiet_us
    assert all(nemesis.start_us <= each.at_us <= each.end_us <= quiet_us for each in case.disturbances)
    assert drawing.case(seed) == case
    assert case_from_json(json.loads(json.dumps(case_to_json(case)))) == case


def test_links_are_also_thinned_until_those_left_just_connect_all_regions():
    ground = drawing_of("meghdoot-nemesis").ground({})
    links, regions = {frozenset(link) for link in ground.links}, len(ground.topology.regions)
    shapes, kinds = set(), set()
    for seed in range(20):
        cuts = thinning_cuts(Random(seed), ground, ())
        assert len({(each.kind, each.at_us, each.for_us) for each in cuts}) == 1
        left = links - {frozenset(each.target) for each in cuts}
        assert len(left) == regions - 1
        assert unsurvivable_reason(cuts, ground) is None  # which asks that they are connected
        shapes.add(max(sum(region in link for link in left) for region in ground.topology.regions))
        kinds.add(cuts[0].kind)
    assert kinds == {"cut", "sever"}, "for a while, and for good"
    assert shapes == {2, 3}, "lines, and stars"
    assert thinning_cuts(Random(1), drawing_of("nemesis").ground({"topology": "line-3"}), ()) == []


@pytest.mark.slow
def test_two_processes_of_a_role_are_disturbed_at_once_wherever_they_are():
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
def test_servers_end_at_once_up_to_as_many_as_must_be_survived(name):
    ground = drawing_of(name).ground({})
    drawn = [ended_servers(Random(seed), ground, ()) for seed in range(30)]
    assert all(unsurvivable_reason(each, ground) is None for each in drawn)
    names = [[name for each in some for name in each.target] for some in drawn]
    assert {ground.declared.has(role_of(name), Trait.SERVER) for some in names for name in some} == {True}
    assert max(map(len, names)) > 1
    assert {each.kind for some in drawn for each in some} == {"crash", "die"}
    assert any(len({each.at_us for each in some}) == 1 for some in drawn if len(some) > 1)


@pytest.mark.slow
def test_disturbances_are_often_put_where_and_when_others_begin_or_end():
    cases = [case.disturbances for case in cases_of("nemesis")]
    several = [case for case in cases if len(case) > 1]
    assert sum(any(map(beside, *zip(*combinations(case, 2), strict=True))) for case in several) > 0.4 * len(
        several
    )


def beside(one, other):
    places = [{name.partition("/")[0] for name in (*each.target, *each.others)} for each in (one, other)]
    apart_us = [abs(a - b) for a in (one.at_us, one.end_us) for b in (other.at_us, other.end_us)]
    return bool(places[0] & places[1]) and min(apart_us) <= 1_000
