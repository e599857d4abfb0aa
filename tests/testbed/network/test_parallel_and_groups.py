"""Datagrams to a group cross one of the two links that join two regions, according to the routes.

User-mode Linux also runs this file, for the kind netem (tests/testbed/uml).
"""

import socket
import time
from dataclasses import replace
from typing import Any

import pytest

from experiments.planned.changes import LinkDirectionName, LinkState
from experiments.planned.plan import LinkPlan
from node.core.program import Programs
from testbed.links.selection import select_emulator
from testbed.network.network import Network
from tests.testbed.links.probes import Stamper
from tests.testbed.network.observations import SILENCE_S, in_host, set_link
from tests.testbed.network.plans import WAN, kinds_here, make_plan
from tests.testbed.sandboxed import sandboxed
from topologies.link_parameters import LinkParameters

pytestmark = pytest.mark.network

GROUP, PORT = "239.7.7.7", 4_900
SLOW = LinkParameters(delay_us=40_000)
BACKUP = LinkPlan(
    "backup", "wan", "r0", "r1", SLOW, SLOW, "10.255.9.1", "10.255.9.2", "10.255.9.0/30", weight=1
)
PROGRAMS = Programs("", "", (), {})
DATAGRAMS = 20


def _plan() -> Any:
    plan = make_plan(2, 2)
    return replace(plan, links=(*plan.links, BACKUP), programs=PROGRAMS)


def _sender() -> socket.socket:
    box = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    box.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 8)
    box.connect((GROUP, PORT))
    return box


def _member(address: str) -> socket.socket:
    box = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    box.bind((GROUP, PORT))
    group = socket.inet_aton(GROUP) + socket.inet_aton(address)
    box.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, group)
    return box


def _arrivals(stamper: Stamper) -> list[float]:
    """Send datagrams in one bundle; return the delays of those that arrive, in milliseconds."""
    before = len(stamper.arrivals)
    stamper.send_offloaded(DATAGRAMS)
    stamper.collect_until_quiet(SILENCE_S)
    return [arrival.delay_us / 1_000 for arrival in stamper.arrivals[before:]]


def _send_through_cuts(kind: str) -> dict[str, Any]:
    plan = _plan()
    emulator = select_emulator(kind, 1)
    with Network(plan, emulator) as network:
        member = in_host(network, "r1-proxy-1", lambda: _member("10.1.0.3"))
        with member, in_host(network, "r0-proxy-0", _sender) as sender:
            stamper = Stamper((sender, member))
            deadline_s = time.monotonic() + 10
            while not stamper.passes() and time.monotonic() < deadline_s:
                pass  # until the gateways know the member
            seen: dict[str, Any] = {"whole": _arrivals(stamper)}
            set_link(network, plan, "backup", LinkState.BLACKHOLE)
            seen["backup cut"] = _arrivals(stamper)
            set_link(network, plan, "backup", LinkState.UP)
            set_link(network, plan, "r0-r1", LinkState.BLACKHOLE, LinkDirectionName.FORWARD)
            seen["first cut"] = _arrivals(stamper)
            set_link(network, plan, "r0-r1", LinkState.UP, LinkDirectionName.FORWARD)
            seen["healed"] = _arrivals(stamper)
        seen["frames"] = {
            f"{link} {way}": counted.frames for (link, way), counted in emulator.counters().items()
        }
    return seen


@pytest.mark.parametrize("kind", kinds_here())
def test_a_group_is_reached_only_by_the_link_of_the_route(kind: str) -> None:
    seen = sandboxed(_send_through_cuts, kind)
    frames = seen.pop("frames")
    assert {when: len(delays) for when, delays in seen.items()} == {
        "whole": DATAGRAMS,
        "backup cut": DATAGRAMS,
        "first cut": 0,
        "healed": DATAGRAMS,
    }
    least_ms = (WAN.delay_us + 2_000) / 1_000  # and those of two LANs
    assert least_ms <= min(seen["whole"]) < SLOW.delay_us / 1_000
    assert frames["backup forward"] == 0 < frames["r0-r1 forward"]
