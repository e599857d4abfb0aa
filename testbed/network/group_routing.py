"""Multicast between regions: the gateways' kernels forward the datagrams, and this module tells them where.

Each gateway has a multicast routing socket (`MRT_INIT` in linux/mroute.h), by which the kernel hands over its
region's IGMP reports, and the first datagram from a host to a group as a request for an entry. Datagrams
follow the tree of the sender's region (`experiments.planned.plan_routes.group_trees`), only towards regions
with members. The kernel forwards those with a time to live of at least 2 and counts it down.
"""

import selectors
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from ipaddress import IPv4Address
from struct import Struct, unpack_from

from experiments.planned.plan import Plan
from experiments.planned.plan_routes import group_trees, next_links
from testbed.network.network_layout import NetworkLayout
from topologies.group_membership import REPORT_GROUP, JoinedGroups

MRT_INIT, MRT_ADD_VIF, MRT_ADD_MFC = 200, 202, 204
VIFF_USE_IFINDEX, MAXVIFS = 0x8, 32
IGMPMSG_NOCACHE = 1
ENTRIES_MAX = 65_536
"""Entries of all gateways; datagrams of further senders and groups stay in their region."""
MESSAGE_BYTES_MAX = 2_048
LAN = ""
"""Stands for a gateway's LAN among its links."""

_VIF = Struct("=HBBIi4x")  # vifctl: number, flags, threshold, rate limit, interface, remote address
_ENTRY = Struct("=4s4sH32s2x16x")  # mfcctl: origin, group, input vif, threshold by output vif, counters
_THRESHOLD, _NO_OUTPUT = 1, 255
_Entry = tuple[str, int, int]
"""A region, a sender's address and a group, for which its gateway has an entry."""


@dataclass(frozen=True, slots=True)
class _Gateway:
    socket: socket.socket
    vifs: Mapping[str, int]  # by link


class GroupForwarding:
    """The members of groups by now, and the entries that follow from them. Pure."""

    def __init__(self, plan: Plan) -> None:
        self._trees = group_trees(plan)
        self._links = next_links(plan)
        self._region_of = {int(IPv4Address(host.address)): host.region for host in plan.hosts}
        self._hosts: dict[int, JoinedGroups] = {}
        self._members: dict[int, set[int]] = {}  # hosts by group
        self._entries: set[_Entry] = set()

    def report(self, host: int, message: bytes) -> list[_Entry]:
        """Read a host's IGMP message; returns the entries that may have changed."""
        if host not in self._region_of:
            return []
        changed = self._hosts.setdefault(host, JoinedGroups()).take(message)
        for group, joined in changed:
            members = self._members.setdefault(group, set())
            (members.add if joined else members.discard)(host)
        groups = {group for group, _ in changed}
        return sorted(entry for entry in self._entries if entry[2] in groups)

    def request(self, region: str, sender: int, group: int) -> list[_Entry]:
        """Return the new entry for datagrams of a sender to a group; none if the sender is unknown."""
        if sender not in self._region_of or len(self._entries) >= ENTRIES_MAX:
            return []
        self._entries.add((region, sender, group))
        return [(region, sender, group)]

    def links(self, entry: _Entry) -> tuple[str, frozenset[str]]:
        """Return the link by which datagrams reach a region, and those by which they leave its gateway."""
        region, sender, group = entry
        source = self._region_of[sender]
        tree = self._trees[source]
        members = {self._region_of[host] for host in self._members.get(group, ())}
        out = {
            self._links[region][after].name
            for member in members
            for before, after in _way(tree, member)
            if before == region
        }
        if region == source:
            return LAN, frozenset(out)
        before = tree.get(region)
        into = LAN if before is None else self._links[before][region].name
        return into, frozenset(out | ({LAN} if region in members else set()))


def _way(tree: Mapping[str, str], region: str) -> Iterator[tuple[str, str]]:
    """Yield the hops of a tree to a region, last first."""
    while region in tree:
        yield tree[region], region
        region = tree[region]


class GroupRouting:
    """The thread that maintains the entries of all gateways, as a context manager."""

    def __init__(self, plan: Plan, layout: NetworkLayout) -> None:
        self._forwarding = GroupForwarding(plan)
        self._layout = layout
        self._gateways: dict[str, _Gateway] = {}
        self._region_of = {region.gateway: region.name for region in plan.regions}
        self._resources = ExitStack()

    def open_gateway(self, host: str) -> None:
        """Let the kernel route groups in the network namespace of the calling thread, that of a gateway.

        Gateways with more links than the kernel has vifs, and kernels without CONFIG_IP_MROUTE, do not
        forward groups.
        """
        interfaces = self._layout.of_host(host)
        if len(interfaces) > MAXVIFS:
            return
        routing = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_IGMP)
        self._resources.callback(routing.close)
        try:
            routing.setsockopt(socket.IPPROTO_IP, MRT_INIT, 1)
        except OSError:  # ENOPROTOOPT
            return
        for number, interface in enumerate(interfaces):
            index = socket.if_nametoindex(interface.name)
            vif = _VIF.pack(number, VIFF_USE_IFINDEX, _THRESHOLD, 0, index)
            routing.setsockopt(socket.IPPROTO_IP, MRT_ADD_VIF, vif)
        lan = socket.inet_aton(REPORT_GROUP) + socket.inet_aton(interfaces[0].address)
        routing.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, lan)
        vifs = {interface.link: number for number, interface in enumerate(interfaces)}
        self._gateways[self._region_of[host]] = _Gateway(routing, vifs)

    def __enter__(self) -> "GroupRouting":
        """Start the thread; it ends with the block."""
        wake, waiting = socket.socketpair()
        for each in (wake, waiting):
            self._resources.callback(each.close)
        thread = threading.Thread(target=self._serve, args=(waiting,), name="groups", daemon=True)
        thread.start()
        self._resources.callback(thread.join)
        self._resources.callback(wake.shutdown, socket.SHUT_RDWR)
        return self

    def __exit__(self, *_: object) -> None:
        self._resources.close()

    def _serve(self, waiting: socket.socket) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(waiting, selectors.EVENT_READ)
            for region, gateway in self._gateways.items():
                selector.register(gateway.socket, selectors.EVENT_READ, region)
            while True:
                for key, _ in selector.select():
                    if key.data is None:
                        return
                    self._take(key.data, self._gateways[key.data].socket.recv(MESSAGE_BYTES_MAX))

    def _take(self, region: str, message: bytes) -> None:
        """Handle a message of the kernel (struct igmpmsg, protocol 0) or a host's IGMP message."""
        source, target = unpack_from(">II", message, 12)
        changed: list[_Entry] = []
        if message[9] != 0:
            changed = self._forwarding.report(source, message[(message[0] & 0x0F) * 4 :])
        elif message[8] == IGMPMSG_NOCACHE:
            changed = self._forwarding.request(region, source, target)
        for entry in changed:
            self._set(entry)

    def _set(self, entry: _Entry) -> None:
        region, sender, group = entry
        into, out = self._forwarding.links(entry)
        gateway = self._gateways[region]
        thresholds = bytearray([_NO_OUTPUT] * MAXVIFS)
        for link in out:
            thresholds[gateway.vifs[link]] = _THRESHOLD
        addresses = (each.to_bytes(4, "big") for each in (sender, group))
        request = _ENTRY.pack(*addresses, gateway.vifs[into], bytes(thresholds))
        gateway.socket.setsockopt(socket.IPPROTO_IP, MRT_ADD_MFC, request)
