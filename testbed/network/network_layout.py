"""The interfaces, addresses and routes of a plan. Pure: the module executes nothing.

Outside the hosts, in the sandbox's root namespace, names are numbers, because the kernel allows 15
characters: `l7a` and `l7b` are the two ends between which link 7 is emulated, `l7p` the port of a region's
bridge behind a LAN link, `g2` the port of region 2's gateway, `lan2` region 2's bridge. Inside a host the
interface is `eth0`, in a gateway also `eth1`, `eth2`, … , one for each WAN link in the plan's order. A link
without an emulator (`testbed.links.wiring`) is one veth pair: a host's and its port, or two gateways'.

If several machines execute a plan, the layout holds the part of this machine; `t7` is the tunnel that
replaces the far end of link 7, and a tunnel can be a port of a region's bridge (`testbed.assignment`).

MAC addresses are derived from IP addresses (`02:00` and the four bytes), so that neighbour entries and the
bridges' tables can be static.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from typing import TypeVar

from experiments.planned.changes import LinkDirectionName
from experiments.planned.plan import CapturePlan, HostPlan, Plan
from experiments.planned.plan_routes import next_links
from testbed.assignment import Assignment, parameters_here, traces_here, whole_plan
from testbed.links.wiring import LinkWiring, links_without_emulator


@dataclass(frozen=True, slots=True)
class HostInterface:
    """An interface in a host's namespace.

    `outside` is the other end of its pair, in the root namespace; empty if it is paired with another
    gateway's interface (`NetworkLayout.pairs`).
    """

    host: str
    name: str
    address: str
    prefix_length: int
    outside: str
    mtu_bytes: int
    link: str = ""  # the link that ends here; none for a gateway's interface on its region's bridge

    @property
    def mac(self) -> str:
        return mac_address(self.address)


@dataclass(frozen=True, slots=True)
class BridgePort:
    """A port of a region's bridge. `inside` is the other end of its pair if that is in the root namespace."""

    name: str
    macs: tuple[str, ...]  # the addresses behind it: one, except for a tunnel's
    inside: str = ""
    host: str = ""


@dataclass(frozen=True, slots=True)
class Bridge:
    """The bridge that is a region's LAN."""

    name: str
    region: str
    ports: tuple[BridgePort, ...]


@dataclass(frozen=True, slots=True)
class HostRoute:
    """A route to `subnet` via a gateway."""

    subnet: str
    via: str
    interface: str


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A static neighbour entry: `address` has `mac`."""

    address: str
    mac: str
    interface: str


@dataclass(frozen=True, slots=True)
class NetworkLayout:
    """The whole network.

    Routes and neighbours are by host, in the order of the plan; `wirings` are the links with an emulator,
    `pairs` the WAN links without one.
    """

    interfaces: tuple[HostInterface, ...]
    pairs: tuple[tuple[HostInterface, HostInterface], ...]
    bridges: tuple[Bridge, ...]
    wirings: tuple[LinkWiring, ...]
    routes: Mapping[str, tuple[HostRoute, ...]]
    neighbours: Mapping[str, tuple[Neighbour, ...]]
    gateways: frozenset[str]

    def of_host(self, host: str) -> tuple[HostInterface, ...]:
        """Return the interfaces of a host, eth0 first."""
        return tuple(interface for interface in self.interfaces if interface.host == host)

    def wiring(self, link: str) -> LinkWiring:
        """Return the wiring of an emulated link."""
        return next(wiring for wiring in self.wirings if wiring.name == link)

    def sender(self, link: str, direction: LinkDirectionName) -> HostInterface | BridgePort:
        """Return the interface that sends into a link direction: a host's interface, or the bridge's port."""
        wiring = self.wiring(link)
        outside = wiring.a_interface if direction is LinkDirectionName.FORWARD else wiring.b_interface
        ports = (port for bridge in self.bridges for port in bridge.ports)
        interfaces = (interface for interface in self.interfaces if interface.outside == outside)
        return next(interfaces, None) or next(port for port in ports if port.inside == outside)


def mac_address(address: str) -> str:
    """Return the MAC address for an IPv4 address: locally administered, and readable in a capture."""
    return "02:00:" + ":".join(f"{byte:02x}" for byte in IPv4Address(address).packed)


def make_layout(plan: Plan, assignment: Assignment | None = None) -> NetworkLayout:
    """Return the network layout of a plan, or of the part that is assigned to this machine."""
    assignment = whole_plan(plan) if assignment is None else assignment
    direct = frozenset(links_without_emulator(plan, assignment))
    interfaces = tuple(_interfaces(plan, direct))
    here = tuple(interface for interface in interfaces if interface.host in assignment.hosts)
    return NetworkLayout(
        interfaces=here,
        pairs=_pairs(here),
        bridges=tuple(_bridges(plan, assignment, direct)),
        wirings=tuple(_wirings(plan, assignment, direct)),
        routes=_assigned(assignment, _routes(plan, interfaces)),
        neighbours=_assigned(assignment, _neighbours(plan, interfaces)),
        gateways=frozenset(region.gateway for region in plan.regions if region.gateway in assignment.hosts),
    )


_Value = TypeVar("_Value")


def _assigned(assignment: Assignment, by_host: Mapping[str, _Value]) -> dict[str, _Value]:
    return {host: value for host, value in by_host.items() if host in assignment.hosts}


def capture_point(layout: NetworkLayout, plan: Plan, assignment: Assignment, capture: CapturePlan) -> str:
    """Return the interface of a capture: a host's own, one side of an emulated link, or a tunnel."""
    if capture.link is None:
        return capture.interface
    tunnel = assignment.tunnel(capture.link)
    if capture.wire and tunnel is not None:
        return tunnel.interface
    wiring = layout.wiring(capture.link)
    link = next(link for link in plan.links if link.name == capture.link)
    return wiring.a_interface if capture.side == link.a else wiring.b_interface


def _pairs(interfaces: tuple[HostInterface, ...]) -> tuple[tuple[HostInterface, HostInterface], ...]:
    ends: dict[str, list[HostInterface]] = {}
    for interface in interfaces:
        if not interface.outside:
            ends.setdefault(interface.link, []).append(interface)
    return tuple((one, other) for one, other in ends.values())


def _interfaces(plan: Plan, direct: frozenset[str]) -> Iterator[HostInterface]:
    """Yield every host's eth0, then the gateways' WAN interfaces in the order of the links."""
    lan_prefix = {region.name: IPv4Network(region.subnet).prefixlen for region in plan.regions}
    region_number = {region.name: number for number, region in enumerate(plan.regions)}
    link_number = {link.name: number for number, link in enumerate(plan.links)}
    links = {link.name: link for link in plan.links}
    for host in plan.hosts:
        if host.lan_link:
            outside = f"l{link_number[host.lan_link]}{'p' if host.lan_link in direct else 'a'}"
            mtu = links[host.lan_link].forward.mtu_bytes
        else:
            outside = f"g{region_number[host.region]}"
            mtu = _lan_mtu(plan, host.region)
        yield HostInterface(
            host.name, "eth0", host.address, lan_prefix[host.region], outside, mtu, host.lan_link
        )
    gateways = {region.name: region.gateway for region in plan.regions}
    used = dict.fromkeys(gateways, 0)
    for number, link in enumerate(plan.links):
        if link.kind != "wan":
            continue
        prefix = IPv4Network(link.subnet).prefixlen
        ends = ((link.a, link.a_address, link.forward, "a"), (link.b, link.b_address, link.backward, "b"))
        for region, address, parameters, side in ends:
            used[region] += 1
            name, outside = f"eth{used[region]}", "" if link.name in direct else f"l{number}{side}"
            yield HostInterface(
                gateways[region], name, address, prefix, outside, parameters.interface_mtu_bytes, link.name
            )


def _lan_mtu(plan: Plan, region: str) -> int:
    """Return the MTU of a gateway's LAN interface: the smallest of the region's LAN links."""
    mtus = [link.backward.mtu_bytes for link in plan.links if link.kind == "lan" and link.b == region]
    return min(mtus, default=1500)


def _bridges(plan: Plan, assignment: Assignment, direct: frozenset[str]) -> Iterator[Bridge]:
    link_number = {link.name: number for number, link in enumerate(plan.links)}
    for number, region in enumerate(plan.regions):
        members = [host for host in plan.hosts if host.region == region.name]
        ports = [
            _port(number, host, link_number.get(host.lan_link, 0), direct)
            for host in members
            if host.name in assignment.hosts
        ]
        if ports:
            yield Bridge(f"lan{number}", region.name, (*ports, *_tunnel_ports(assignment, members)))


def _tunnel_ports(assignment: Assignment, members: Sequence[HostPlan]) -> Iterator[BridgePort]:
    """Yield a bridge port for each other machine that has hosts of the region."""
    behind: dict[str, list[str]] = {}
    for host in members:
        if host.name in assignment.behind:
            behind.setdefault(assignment.behind[host.name], []).append(mac_address(host.address))
    for interface, macs in behind.items():
        yield BridgePort(interface, tuple(macs))


def _port(region: int, host: HostPlan, link: int, direct: frozenset[str]) -> BridgePort:
    macs = (mac_address(host.address),)
    if not host.lan_link:
        return BridgePort(f"g{region}", macs, host=host.name)
    if host.lan_link in direct:
        return BridgePort(f"l{link}p", macs, host=host.name)
    return BridgePort(f"l{link}p", macs, f"l{link}b")


def _wirings(plan: Plan, assignment: Assignment, direct: frozenset[str]) -> Iterator[LinkWiring]:
    host_at = {host.lan_link: host for host in plan.hosts if host.lan_link}
    for number, link in enumerate(plan.links):
        parameters_of = parameters_here(plan, assignment, link)
        if not parameters_of or link.name in direct:
            continue
        a, b = f"l{number}a", f"l{number}b"
        if tunnel := assignment.tunnel(link.name):
            a, b = (
                (a, tunnel.interface) if LinkDirectionName.FORWARD in parameters_of else (tunnel.interface, b)
            )
        host = host_at.get(link.name)
        if host is None or tunnel:
            traces = traces_here(plan, assignment, link)
            yield LinkWiring(link.name, a, b, parameters_of, traces=traces)
        else:
            yield LinkWiring(link.name, a, b, parameters_of, host.region, mac_address(host.address))


def _routes(plan: Plan, interfaces: tuple[HostInterface, ...]) -> dict[str, tuple[HostRoute, ...]]:
    """Return the routes: hosts have a default route, gateways fixed routes, unless daemons set them."""
    gateway_address = {host.name: host.address for host in plan.hosts}
    region_of = {region.name: region for region in plan.regions}
    routes: dict[str, tuple[HostRoute, ...]] = {}
    for host in plan.hosts:
        gateway = region_of[host.region].gateway
        if host.name != gateway:
            routes[host.name] = (HostRoute("default", gateway_address[gateway], "eth0"),)
    end = {(interface.host, interface.link): interface for interface in interfaces}
    for region, ways in next_links(plan).items():
        gateway = region_of[region].gateway
        routes[gateway] = tuple(
            HostRoute(
                region_of[target].subnet,
                link.b_address if link.a == region else link.a_address,
                end[gateway, link.name].name,
            )
            for target, link in ways.items()
            if plan.routing is None
        )
    return routes


def _neighbours(plan: Plan, interfaces: tuple[HostInterface, ...]) -> dict[str, tuple[Neighbour, ...]]:
    """Return the neighbour entries: between all hosts of a LAN, and between the gateways of a WAN link."""
    known: dict[str, list[Neighbour]] = {host.name: [] for host in plan.hosts}
    for region in plan.regions:
        members = [host for host in plan.hosts if host.region == region.name]
        entries = [Neighbour(host.address, mac_address(host.address), "eth0") for host in members]
        for host in members:
            known[host.name] += [entry for entry in entries if entry.address != host.address]
    end = {(interface.host, interface.link): interface for interface in interfaces}
    gateways = {region.name: region.gateway for region in plan.regions}
    for link in plan.links:
        if link.kind == "wan":
            a, b = end[gateways[link.a], link.name], end[gateways[link.b], link.name]
            known[a.host].append(Neighbour(b.address, b.mac, a.name))
            known[b.host].append(Neighbour(a.address, a.mac, b.name))
    return {host: tuple(entries) for host, entries in known.items()}
