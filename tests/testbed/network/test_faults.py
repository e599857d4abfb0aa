"""A small network whose links are cut, go down, and return.

User-mode Linux also runs this file, for the kind netem (tests/testbed/uml).
"""

from typing import Any

import pytest

from experiments.planned.changes import LinkDirectionName, LinkState
from testbed.links.selection import select_emulator
from testbed.network.network import Network
from tests.testbed.network.observations import (
    SILENCE_S,
    neighbours,
    reachable,
    round_trips_us,
    routes,
    set_link,
    timer_lateness_us,
    what_sending_says,
)
from tests.testbed.network.plans import kinds_here, make_plan
from tests.testbed.sandboxed import sandboxed
from topologies.link_parameters import LinkParameters

pytestmark = pytest.mark.network

PLAN = make_plan(3, 1, parameters_of={(0, 2): LinkParameters(delay_us=30_000)})
LINKS_ON_A_WAY = 3
"""The WAN's, and a LAN's at both ends."""
ALL_BUT_R0_R1 = {"r0 r1": False, "r0 r2": True, "r1 r2": True}
ALL = {"r0 r1": True, "r0 r2": True, "r1 r2": True}


def _fail_and_heal(kind: str) -> dict[str, Any]:
    """Cut and heal a link, then set it down and up."""
    emulator = select_emulator(kind, 1)
    with Network(PLAN, emulator) as network:
        target = "10.1.0.2"
        seen: dict[str, Any] = {
            "round_trips_us": round_trips_us(network),
            "timer_late_us": timer_lateness_us(),
        }
        applied = set_link(network, PLAN, "r0-r1", LinkState.BLACKHOLE)
        seen["cut_took_ms"] = max((each.applied_ns - each.requested_ns) / 1e6 for each in applied)
        seen["cut"] = reachable(network)
        seen["cut_says"] = what_sending_says(network, "r0-proxy-0", target, SILENCE_S)
        set_link(network, PLAN, "r0-r1", LinkState.UP)
        seen["healed"] = reachable(network)
        gateways = ("r0-gw", "r1-gw")
        before = {host: (routes(network, host), neighbours(network, host)) for host in gateways}
        set_link(network, PLAN, "r0-r1", LinkState.DOWN)
        seen["down"] = reachable(network)
        seen["down_says"] = [
            what_sending_says(network, "r0-proxy-0", target),
            what_sending_says(network, "r1-proxy-0", "10.0.0.2"),
            what_sending_says(network, "r2-proxy-0", target),
        ]
        set_link(network, PLAN, "r0-r1", LinkState.UP)
        seen["up"] = reachable(network)
        seen["up_says"] = what_sending_says(network, "r0-proxy-0", target)
        after = {host: (routes(network, host), neighbours(network, host)) for host in gateways}
        seen["as_before"] = [_sorted(after[host]) == _sorted(before[host]) for host in gateways]
        set_link(network, PLAN, "r0-r1", LinkState.BLACKHOLE, LinkDirectionName.FORWARD)
        seen["one_way"] = reachable(network)
        seen["failure"] = emulator.failure()
        return seen


def _sorted(told_by_ip: Any) -> list[list[str]]:
    return [sorted(map(str, part)) for part in told_by_ip]


@pytest.fixture(scope="module", params=kinds_here())
def failing(request):
    return sandboxed(_fail_and_heal, request.param)


def test_round_trips_are_twice_the_delays_and_never_less(failing):
    asked_ms = {"r0 r1": 24, "r0 r2": 64, "r1 r2": 24}
    timers = 2 * LINKS_ON_A_WAY
    for regions, shortest_us in failing["round_trips_us"].items():
        asked = asked_ms.pop(regions)
        assert shortest_us >= asked * 1000
        assert shortest_us < (asked + 3) * 1000 + timers * failing["timer_late_us"]
    assert not asked_ms


def test_a_cut_is_neither_rerouted_nor_reported_by_ip(failing):
    assert failing["cut"] == ALL_BUT_R0_R1
    assert failing["cut_says"] is None


def test_a_cut_of_one_direction_is_enough_to_lose_round_trips(failing):
    assert failing["one_way"] == ALL_BUT_R0_R1


def test_a_cut_heals(failing):
    assert failing["healed"] == ALL


def test_a_link_that_is_down_makes_the_network_unreachable_for_hosts(failing):
    assert failing["down"] == ALL_BUT_R0_R1
    assert failing["down_says"][:2] == ["ENETUNREACH", "ENETUNREACH"]


def test_other_links_are_unaffected_by_a_link_that_is_down(failing):
    assert failing["down_says"][2] == "ECONNREFUSED"  # the host itself answers: no listener


def test_a_link_that_was_down_regains_its_routes_and_neighbours(failing):
    assert failing["up"] == ALL
    assert failing["up_says"] == "ECONNREFUSED"
    assert failing["as_before"] == [True, True]


def test_emulators_survive_a_link_that_is_down(failing):
    assert failing["failure"] is None
