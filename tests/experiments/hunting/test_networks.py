"""Networks that a hunt draws are valid topologies, and shrink until nothing smaller is left."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.hunting.networks import REGIONS_MAX, network_text, random_network, smaller
from tests.experiments.hunting.drawings import cases_of
from topologies.loader import load_topology
from topologies.routes import connected


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
def test_hunts_draw_networks_of_many_kinds_beside_those_with_a_name():
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


def test_networks_of_other_people_are_left_as_they_are():
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
