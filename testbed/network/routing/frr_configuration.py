"""The configurations of FRR's daemons in a gateway, from the plan. Pure: the module executes nothing.

OSPF: one area, point-to-point links whose cost is their delay, and the region's LAN without hellos. BGP: an
autonomous system for each region, with a session on each link; it prefers routes through few regions. Source:
FRR's manual, https://docs.frrouting.org.
"""

from collections.abc import Iterator

from experiments.planned.plan import LinkPlan, Plan, RoutingPlan
from testbed.network.network_layout import HostInterface, NetworkLayout
from topologies.routing import ospf_cost

PROFILE = "wan"
FIRST_AS = 64_512
"""The first number for private use (RFC 6996); there are more of these than regions."""


def daemons(routing: RoutingPlan) -> tuple[str, ...]:
    """Return the names of the daemons that a gateway runs, in the order in which they start."""
    detector = () if routing.bfd_interval_ms is None else ("bfdd",)
    return "zebra", *detector, f"{routing.protocol}d"


def configuration(plan: Plan, layout: NetworkLayout, gateway: str, daemon: str) -> str:
    """Return the text of a daemon's configuration file in a gateway."""
    assert plan.routing is not None
    parts = {"zebra": lambda *_: iter(()), "bfdd": _bfd, "ospfd": _ospf, "bgpd": _bgp}
    lines = parts[daemon](plan, plan.routing, layout, gateway)
    return "\n".join((f"hostname {gateway}", *lines, ""))


def _bfd(plan: Plan, routing: RoutingPlan, layout: NetworkLayout, gateway: str) -> Iterator[str]:
    yield from ("bfd", f" profile {PROFILE}", f"  detect-multiplier {routing.bfd_multiplier}")
    for what in ("receive", "transmit"):
        yield f"  {what}-interval {routing.bfd_interval_ms}"


def _ospf(plan: Plan, routing: RoutingPlan, layout: NetworkLayout, gateway: str) -> Iterator[str]:
    for interface in layout.of_host(gateway):
        yield from (f"interface {interface.name}", " ip ospf area 0")
        if not interface.link:
            yield " ip ospf passive"
            continue
        link, is_first = _end(plan, interface)
        delay_us = (link.forward if is_first else link.backward).delay_us
        yield " ip ospf network point-to-point"
        yield f" ip ospf cost {ospf_cost(delay_us)}"
        yield f" ip ospf hello-interval {routing.hello_s}"
        yield f" ip ospf dead-interval {routing.dead_s}"
        yield " ip ospf mtu-ignore"  # a link's directions may have different MTUs
        if routing.bfd_interval_ms is not None:
            yield from (" ip ospf bfd", f" ip ospf bfd profile {PROFILE}")
    yield from ("router ospf", f" ospf router-id {layout.of_host(gateway)[0].address}")


def _bgp(plan: Plan, routing: RoutingPlan, layout: NetworkLayout, gateway: str) -> Iterator[str]:
    numbers = {region.name: FIRST_AS + number for number, region in enumerate(plan.regions)}
    own = next(region for region in plan.regions if region.gateway == gateway)
    yield from (f"router bgp {numbers[own.name]}", f" bgp router-id {layout.of_host(gateway)[0].address}")
    yield from (" no bgp ebgp-requires-policy", " no bgp network import-check")
    yield " bgp bestpath compare-routerid"  # ties by the regions' order, not by which route is older
    yield f" timers bgp {routing.hello_s} {routing.dead_s}"
    for interface in layout.of_host(gateway):
        if interface.link:
            link, is_first = _end(plan, interface)
            other, address = (link.b, link.b_address) if is_first else (link.a, link.a_address)
            yield f" neighbor {address} remote-as {numbers[other]}"
            if routing.bfd_interval_ms is not None:
                yield from (f" neighbor {address} bfd", f" neighbor {address} bfd profile {PROFILE}")
    yield from (" address-family ipv4 unicast", f"  network {own.subnet}")


def _end(plan: Plan, interface: HostInterface) -> tuple[LinkPlan, bool]:
    """Return the link that ends at an interface, and whether its forward direction begins there."""
    link = next(link for link in plan.links if link.name == interface.link)
    return link, link.a_address == interface.address
