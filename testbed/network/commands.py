"""The `ip -batch` and `bridge -batch` lines that create the network of a layout. Pure.

IPv6 stays off (no neighbour discovery, no router solicitations), multicast is not snooped and neighbours are
permanent, so that only the system under test puts packets on the links. Sources: ip-link(8), bridge(8), the
kernel's Documentation/networking/ip-sysctl.rst.
"""

from collections.abc import Iterable, Mapping

from experiments.planned.plan import HostPlan
from testbed.network.network_layout import Bridge, HostInterface, HostRoute, Neighbour, NetworkLayout
from testbed.tunnel import Tunnel

OUTSIDE_MTU_BYTES = 9216
"""MTU of all interfaces in the root namespace, so large that only the hosts' own MTUs limit frames."""

_QUEUES = "numtxqueues 1 numrxqueues 1"  # the kernel's default is one per processor

_IGMPV3 = {"net/ipv4/conf/all/force_igmp_version": "3", "net/ipv4/conf/default/force_igmp_version": "3"}
"""Reports that tell all memberships (`topologies.group_membership`), whatever the machine's default is."""
_NO_IPV6 = {"net/ipv6/conf/all/disable_ipv6": "1", "net/ipv6/conf/default/disable_ipv6": "1"}

ROOT_SETTINGS: Mapping[str, str] = _NO_IPV6 | {
    "net/ipv4/ip_forward": "0",
    # If a container runtime has loaded br_netfilter, bridged frames would pass through iptables.
    "net/bridge/bridge-nf-call-iptables": "0",
}
HOST_SETTINGS: Mapping[str, str] = _NO_IPV6 | _IGMPV3 | {"net/ipv4/ip_forward": "0"}
GATEWAY_SETTINGS: Mapping[str, str] = _NO_IPV6 | {
    "net/ipv4/ip_forward": "1",  # first, because it resets those below
    "net/ipv4/conf/all/rp_filter": "0",  # routes may be asymmetric
    "net/ipv4/conf/default/rp_filter": "0",
    "net/ipv4/conf/all/send_redirects": "0",
    "net/ipv4/conf/default/send_redirects": "0",
    "net/ipv4/icmp_ratelimit": "0",  # answer every packet towards a link that is down
    "net/ipv4/igmp_link_local_mcast_reports": "0",  # about the group in which they hear reports
}
OPTIONAL_SETTINGS = frozenset({"net/bridge/bridge-nf-call-iptables", *_NO_IPV6})
"""Settings that a kernel lacks if it lacks the feature that they switch off."""


def outside_lines(layout: NetworkLayout, pids: Mapping[str, int]) -> list[str]:
    """Return the lines that create bridges, ports and the hosts' interfaces in the hosts' namespaces.

    pids: a process in each host's network namespace.
    """
    lines = []
    for bridge in layout.bridges:
        lines.append(
            f"link add {bridge.name} mtu {OUTSIDE_MTU_BYTES} type bridge stp_state 0 mcast_snooping 0"
        )
        lines.append(f"link set {bridge.name} up")
    for one, other in layout.pairs:
        lines.append(
            f"link add {_end(one)} netns {pids[one.host]} type veth"
            f" peer name {_end(other)} netns {pids[other.host]}"
        )
    for interface in layout.interfaces:
        if not interface.outside:
            continue
        lines.append(
            f"link add {interface.outside} mtu {OUTSIDE_MTU_BYTES} {_QUEUES} type veth"
            f" peer name {_end(interface)} netns {pids[interface.host]}"
        )
        lines.append(f"link set {interface.outside} up")
    for bridge in layout.bridges:
        lines += _port_lines(bridge)
    return lines


def tunnel_lines(tunnels: Iterable[Tunnel]) -> list[str]:
    """Return the lines that take up the existing tunnels in the root namespace."""
    return [f"link set {tunnel.interface} up" for tunnel in tunnels]


def _end(interface: HostInterface) -> str:
    return f"{interface.name} address {interface.mac} mtu {interface.mtu_bytes} {_QUEUES}"


def _port_lines(bridge: Bridge) -> list[str]:
    """Return the lines that create a bridge's ports.

    Bridges forward by the static table of `table_lines`: a learning bridge would flood until it has learned.
    Frames to multicast groups go to all ports.
    """
    lines = []
    for port in bridge.ports:
        if port.inside:
            lines.append(
                f"link add {port.name} mtu {OUTSIDE_MTU_BYTES} {_QUEUES} type veth"
                f" peer name {port.inside} mtu {OUTSIDE_MTU_BYTES} {_QUEUES}"
            )
            lines.append(f"link set {port.inside} up")
        lines.append(f"link set {port.name} up master {bridge.name}")
        lines.append(f"link set {port.name} type bridge_slave learning off flood off")
    return lines


def table_lines(bridges: Iterable[Bridge]) -> list[str]:
    """Return the `bridge -batch` lines of the static forwarding tables."""
    return [
        f"fdb add {mac} dev {port.name} master static"
        for bridge in bridges
        for port in bridge.ports
        for mac in port.macs
    ]


def inside_lines(layout: NetworkLayout, host: str) -> list[str]:
    """Return the lines for a host's own namespace: its interfaces, routes and neighbours."""
    lines = ["link set lo up"]
    for interface in layout.of_host(host):
        lines.append(f"address add {interface.address}/{interface.prefix_length} dev {interface.name}")
        lines.append(f"link set {interface.name} up")
    lines += [_route_line(route) for route in layout.routes[host]]
    lines += [neighbour_line(entry) for entry in layout.neighbours[host]]
    return lines


def raise_lines(layout: NetworkLayout, interface: HostInterface) -> list[str]:
    """Return the lines that take an interface up again, with its routes and neighbours.

    The kernel removed these when the interface went down.
    """
    routes = [route for route in layout.routes[interface.host] if route.interface == interface.name]
    entries = [entry for entry in layout.neighbours[interface.host] if entry.interface == interface.name]
    return [f"link set {interface.name} up", *map(_route_line, routes), *map(neighbour_line, entries)]


def hosts_file(hosts: Iterable[HostPlan]) -> str:
    """Return the text of a run's /etc/hosts (hosts(5))."""
    return "127.0.0.1 localhost\n" + "".join(f"{host.address} {host.name}\n" for host in hosts)


def _route_line(route: HostRoute) -> str:
    return f"route replace {route.subnet} via {route.via} dev {route.interface}"


def neighbour_line(entry: Neighbour) -> str:
    """Return the `ip -batch` line of a permanent neighbour entry."""
    return f"neighbour replace {entry.address} lladdr {entry.mac} dev {entry.interface} nud permanent"
