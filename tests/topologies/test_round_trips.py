"""The largest round trips of a topology, on routes and on detours around a cut link."""

import pytest

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


def test_a_detour_uses_the_nearest_host_reachable_without_the_link():
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
def test_there_is_no_detour_if_every_path_crosses_the_link(links):
    assert greatest_detour(network(dict.fromkeys(links, ms(10)), "h", "a", "b", "c")) is None
