"""Gateways forward datagrams to groups along the tree of the sender's region, towards members only."""

import struct
from ipaddress import IPv4Address

from testbed.network.group_routing import LAN, GroupForwarding
from tests.testbed.network.plans import make_plan

GROUP, OTHER = 0xEF01_0203, 0xEF01_0204
JOIN, LEAVE = 4, 3
LINE = make_plan(4, 2, pairs=[(0, 1), (1, 2), (1, 3)])
HOSTS = {host.name: int(IPv4Address(host.address)) for host in LINE.hosts}
SENDER = HOSTS["r0-proxy-0"]


def report(kind: int, group: int = GROUP) -> bytes:
    return struct.pack(">BBHHHBBHI", 0x22, 0, 0, 0, 1, kind, 0, 0, group)


def test_datagrams_are_forwarded_towards_regions_with_members():
    forwarding = GroupForwarding(LINE)
    ways = [(region, SENDER, GROUP) for region in ("r0", "r1", "r2")]
    assert [forwarding.request(region, SENDER, GROUP) for region, *_ in ways] == [[way] for way in ways]

    def links() -> list[tuple[str, set[str]]]:
        return [(into, set(out)) for into, out in map(forwarding.links, ways)]

    assert links() == [(LAN, set()), ("r0-r1", set()), ("r1-r2", set())]
    assert forwarding.report(HOSTS["r0-proxy-1"], report(JOIN)) == ways
    assert links() == [(LAN, set()), ("r0-r1", set()), ("r1-r2", set())]  # the bridge is enough
    forwarding.report(HOSTS["r2-proxy-0"], report(JOIN))
    forwarding.report(HOSTS["r2-proxy-1"], report(JOIN))
    assert links() == [(LAN, {"r0-r1"}), ("r0-r1", {"r1-r2"}), ("r1-r2", {LAN})]
    forwarding.report(HOSTS["r1-proxy-0"], report(JOIN))
    assert links() == [(LAN, {"r0-r1"}), ("r0-r1", {LAN, "r1-r2"}), ("r1-r2", {LAN})]
    forwarding.report(HOSTS["r2-proxy-0"], report(LEAVE))
    assert links()[2] == ("r1-r2", {LAN})
    assert forwarding.report(HOSTS["r2-proxy-1"], report(LEAVE)) == ways
    assert links() == [(LAN, {"r0-r1"}), ("r0-r1", {LAN}), ("r1-r2", set())]


def test_reports_of_other_groups_and_strangers_change_nothing():
    forwarding = GroupForwarding(LINE)
    entry = forwarding.request("r0", SENDER, GROUP)[0]
    assert forwarding.report(HOSTS["r1-proxy-0"], report(JOIN, OTHER)) == []
    assert forwarding.report(int(IPv4Address("192.0.2.1")), report(JOIN)) == []
    assert forwarding.request("r0", int(IPv4Address("192.0.2.1")), GROUP) == []
    assert forwarding.links(entry) == (LAN, frozenset())
