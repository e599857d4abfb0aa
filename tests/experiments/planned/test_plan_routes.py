"""The routes between a plan's regions."""

from dataclasses import replace
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from experiments.planned.plan import LinkPlan, Plan, RoutingPlan
from experiments.planned.plan_routes import group_trees, hops, next_links
from tests.testbed.network.plans import make_plan
from topologies.link_parameters import LinkParameters


def ways(plan: Plan) -> dict[tuple[str, str], str]:
    return {
        (origin, target): link.name
        for origin, targets in next_links(plan).items()
        for target, link in targets.items()
    }


def test_regions_with_a_link_use_it_even_if_a_detour_is_shorter() -> None:
    plan = make_plan(3, parameters_of={(0, 2): LinkParameters(delay_us=90_000)})
    assert ways(plan)["r0", "r2"] == "r0-r2"
    assert ways(plan)["r2", "r0"] == "r0-r2"


def test_routing_protocols_prefer_no_direct_link_by_themselves() -> None:
    delays = {(0, 1): 90_000, (0, 2): 10_000, (1, 2): 10_000, (1, 3): 5, (2, 3): 5, (3, 4): 5}
    parameters_of = {pair: LinkParameters(delay_us=delay_us) for pair, delay_us in delays.items()}
    plan = make_plan(5, 0, pairs=list(delays), parameters_of=parameters_of)
    ospf, bgp = (replace(plan, routing=RoutingPlan(name, 10, 40)) for name in ("ospf", "bgp"))
    assert hops(ospf)["r0", "r1"] == (("r0", "r2"), ("r2", "r3"), ("r3", "r1"))
    assert hops(bgp)["r0", "r1"] == (("r0", "r1"),)
    assert ways(ospf)["r0", "r4"] == "r0-r2"
    assert ways(bgp)["r0", "r4"] == "r0-r1", "the region that comes first in the topology"


def test_regions_without_a_link_use_the_route_with_the_least_delay() -> None:
    square = [(0, 1), (1, 3), (0, 2), (2, 3)]
    plan = make_plan(4, pairs=square, parameters_of={(1, 3): LinkParameters(delay_us=11_000)})
    assert ways(plan)["r0", "r3"] == "r0-r2"
    assert ways(plan)["r3", "r0"] == "r2-r3"
    assert ways(plan)["r1", "r2"] == "r0-r1"


def test_an_unconnected_region_has_no_route() -> None:
    assert ways(make_plan(3, pairs=[(0, 1)])) == {("r0", "r1"): "r0-r1", ("r1", "r0"): "r0-r1"}


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    regions = draw(st.integers(2, 6))
    pairs = draw(st.lists(st.sampled_from(list(combinations(range(regions), 2))), unique=True, min_size=1))
    parameters_of = {pair: LinkParameters(delay_us=draw(st.integers(0, 5))) for pair in pairs}
    return make_plan(regions, 0, pairs=pairs, parameters_of=parameters_of)


def connected(plan: Plan, origin: str) -> set[str]:
    found = {origin}
    while True:
        more = {end for link in plan.links if {link.a, link.b} & found for end in (link.a, link.b)}
        if more <= found:
            return found
        found |= more


@given(plans())
def test_following_the_routes_always_reaches_the_destination(plan: Plan) -> None:
    table = next_links(plan)
    for region in table:
        assert set(table[region]) == connected(plan, region) - {region}
        for target in table[region]:
            at, hops = region, 0
            while at != target:
                at, hops = other_end(table[at][target], at), hops + 1
                assert hops <= len(table)


def other_end(link: LinkPlan, region: str) -> str:
    return link.b if link.a == region else link.a


@given(plans())
def test_a_regions_multicast_tree_reaches_what_its_routes_reach_without_a_loop(plan: Plan) -> None:
    links = {frozenset((link.a, link.b)) for link in plan.links}
    for source, tree in group_trees(plan).items():
        assert set(tree) == connected(plan, source) - {source}
        for region in tree:
            way = [region]
            while way[-1] != source:
                assert frozenset((tree[way[-1]], way[-1])) in links
                way.append(tree[way[-1]])
                assert len(way) <= len(plan.regions)


def test_a_multicast_tree_has_no_loop_if_routes_do_not_nest() -> None:
    delays = {(0, 1): 1, (0, 2): 50, (1, 3): 1, (1, 4): 100, (2, 5): 5, (3, 4): 1, (4, 5): 1}
    parameters_of = {pair: LinkParameters(delay_us=delay_us) for pair, delay_us in delays.items()}
    plan = make_plan(6, 0, pairs=list(delays), parameters_of=parameters_of)
    last = {target: route[-1][0] for (source, target), route in hops(plan).items() if source == "r0"}
    assert (last["r4"], last["r5"]) == ("r5", "r4")
    assert group_trees(plan)["r0"] == {"r1": "r0", "r2": "r0", "r3": "r1", "r4": "r5", "r5": "r2"}
