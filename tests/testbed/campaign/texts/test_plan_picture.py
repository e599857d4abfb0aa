"""Positions of regions: as on a map if possible, and always apart."""

import numpy as np
import pytest

from experiments.loader import load_experiment
from testbed.campaign.texts.plan_picture import (
    CARD_HEIGHT,
    CARD_WIDTH,
    GAP,
    HEADER_HEIGHT,
    MARGIN,
    centres_of,
)
from testbed.planning import make_plan
from topologies.loader import load_topology
from topologies.model import Topology

APART = (CARD_WIDTH + GAP, CARD_HEIGHT + GAP)


def places(topology: Topology) -> np.ndarray:
    settings = ["faults=[]", "expect=[]", "parameters.connect_timeout=10s"]  # for the longest lines
    experiment = load_experiment("link-failure", settings)
    plan = make_plan(experiment, topology, seed=None, links_kind="auto")
    centres = np.array(list(centres_of(plan).values()))
    return centres - (CARD_WIDTH / 2 + MARGIN, CARD_HEIGHT / 2 + HEADER_HEIGHT)


def topology(count: int, *links: tuple[int, int, str]) -> Topology:
    return Topology.model_validate(
        {
            "name": "net",
            "regions": {f"r{number}": {} for number in range(count)},
            "links": [{"between": [f"r{a}", f"r{b}"], "delay": delay} for a, b, delay in links],
        }
    )


def test_linked_regions_are_near_and_the_first_at_the_upper_left():
    r0, r1, r2, r3 = places(load_topology("four-regions"))
    assert np.linalg.norm(r0 - r1) < np.linalg.norm(r0 - r2)
    assert np.linalg.norm(r2 - r3) < np.linalg.norm(r1 - r3)
    assert max(r0[0], r1[0]) < min(r2[0], r3[0])
    assert tuple(r0) == pytest.approx((0, 0), abs=1e-6)


@pytest.mark.parametrize(
    "network",
    [
        topology(1),
        topology(3, (0, 1, "0ms"), (1, 2, "0ms"), (0, 2, "0ms")),
        topology(4, (0, 1, "1ms"), (1, 2, "900ms"), (2, 3, "1ms")),
        topology(9, *((0, number, "10ms") for number in range(1, 9))),
        topology(30, *((number, number + 1, "10ms") for number in range(29))),
    ],
)
def test_no_region_covers_another_and_none_is_outside(network):
    found = places(network)
    assert np.isfinite(found).all()
    assert (found >= 0).all()
    for number, place in enumerate(found):
        for other in found[number + 1 :]:
            across, down = np.abs(place - other)
            assert across >= APART[0] * 0.999 or down >= APART[1] * 0.999
