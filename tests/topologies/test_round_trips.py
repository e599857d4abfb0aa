"""The greatest round trips of a topology, on the usual routes and round a link that is cut."""

import pytest

from topologies.drawing.layout import layout, layout_in_pixels
from topologies.loader import load_topology
from topologies.model import Topology
from topologies.round_trips import greatest_detour, greatest_direct

LAN = {"lan": {"delay": "1ms"}}


def network(links, *regions):
    given = [{"between": list(ends), **link} for ends, link in links.items()]
    return Topology.model_validate({"name": "t", "regions": dict.fromkeys(regions, LAN), "links": given})


def ms(delay, **more):
    return {"delay": f"{delay}ms", **more}


def test_a_round_trip_has_both_directions_with_their_jitter_and_both_lans():
    one_way = {"forward": ms(10, jitter="5ms"), "backward": ms(30)}
    topology = network({("a", "b"): one_way}, "a", "b")
    trip = greatest_direct(topology)
    assert (trip.us, str(trip)) == (10_000 + 5_000 + 30_000 + 2 * 2_000, "a-b")


def test_a_detour_leads_through_the_nearest_host_that_does_without_the_link():
    links = {
        ("a", "b"): ms(10),
        ("a", "c"): ms(50),
        ("b", "c"): ms(70),
        ("a", "d"): ms(80),
        ("b", "d"): ms(80),
    }
    trip = greatest_detour(network(links, "a", "b", "c", "d"))  # c-d goes through a, unless a-d is cut
    assert (str(trip), trip.us) == ("c-d through b", 2 * (70 + 80) * 1_000 + 8_000)


@pytest.mark.parametrize(
    "links", [[("h", "a"), ("h", "b"), ("h", "c")], [("a", "h"), ("h", "b"), ("b", "c")]]
)
def test_no_relay_helps_if_every_path_crosses_the_link(links):
    assert greatest_detour(network(dict.fromkeys(links, ms(10)), "h", "a", "b", "c")) is None


APART, SIZE = (490.0, 136.0), (800.0, 460.0)  # as in the plan's picture


@pytest.mark.parametrize("name", ["transit-stub-20", "tree-10", "star-6"])
def test_linked_regions_are_near_to_each_other_and_none_covers_another(name):
    topology = load_topology(name)
    at = {region: number for number, region in enumerate(topology.regions)}
    edges = [(at[link.between[0]], at[link.between[1]]) for link in topology.links]
    places = layout_in_pixels(layout(len(at), edges), apart=APART, size=SIZE)

    def units(a, b):
        return [abs(places[a][axis] - places[b][axis]) / APART[axis] for axis in (0, 1)]

    assert all(max(units(a, b)) > 0.99 for a in range(len(at)) for b in range(a))
    assert sum(max(units(*edge)) for edge in edges) / len(edges) < 2.5
