"""The routes of a topology, and its largest round trips between hosts, on routes and on detours. Pure.

Times are those of the topology's links, with their full jitter and both ends' LANs. A detour leads through a
host of a third region: while a link is cut, nodes may forward messages for others. For each pair of regions
and each link of its route, the shortest detour around that link counts.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

from topologies.link_parameters import LinkParameters
from topologies.model import Link, Topology
from topologies.routes import Hop, RouteEdge, hop_edges, routes
from topologies.routing import STATIC


@dataclass(frozen=True, slots=True)
class RoundTrip:
    """A round trip between hosts of two regions; `through`: the region of the forwarding host, or None."""

    us: int
    ends: tuple[str, str]
    through: str | None = None

    def __str__(self) -> str:
        return "-".join(self.ends) + (f" through {self.through}" if self.through else "")


@dataclass(frozen=True, slots=True)
class _PathPair:
    """The round trip between two regions. links: a bit set of the links that it crosses."""

    us: int
    links: int


def hops(topology: Topology) -> dict[Hop, tuple[Hop, ...]]:
    """Return the route between any two regions, hop by hop; unconnected regions have none."""
    return routes(topology.regions, _edges(topology), _protocol(topology))


def carriers(topology: Topology) -> dict[Hop, Link]:
    """Return the link that carries each hop."""
    links = {link.name: link for link in topology.links}
    return {hop: links[edge.name] for hop, edge in hop_edges(_edges(topology), _protocol(topology)).items()}


def _protocol(topology: Topology) -> str:
    return STATIC if topology.routing is None else topology.routing.protocol


def _edges(topology: Topology) -> list[RouteEdge]:
    return [
        RouteEdge(
            link.name,
            *link.between,
            link.forward_parameters.delay_us,
            link.backward_parameters.delay_us,
            link.weight,
        )
        for link in topology.links
    ]


def greatest_direct(topology: Topology) -> RoundTrip:
    """Return the largest round trip between any two hosts."""
    lans = {region: _lan_us(topology, region) for region in topology.regions}
    within = [RoundTrip(2 * us, (region, region)) for region, us in lans.items()]
    between = [RoundTrip(way.us + lans[a] + lans[b], (a, b)) for (a, b), way in _path_pairs(topology).items()]
    return max([*within, *between], key=lambda each: each.us)


def greatest_detour(topology: Topology) -> RoundTrip | None:
    """Return the largest round trip through a third host while one link is cut; None without detours."""
    ways = _path_pairs(topology)
    lans = {region: _lan_us(topology, region) for region in topology.regions}
    found = [trip for a, b in ways if a < b for trip in _detours(a, b, ways, lans)]
    return max(found, key=lambda each: each.us, default=None)


def _detours(
    a: str, b: str, ways: Mapping[tuple[str, str], _PathPair], lans: Mapping[str, int]
) -> Iterator[RoundTrip]:
    """Yield, for each link of the route between two regions, the shortest detour that avoids it."""
    round_us = [
        (ways[a, via].us + ways[via, b].us + lans[a] + 2 * lans[via] + lans[b], via)
        for via in lans
        if (a, via) in ways and (via, b) in ways
    ]
    round_us.sort()
    links = ways[a, b].links
    while links:
        link = links & -links
        links ^= link
        for us, via in round_us:
            if not (ways[a, via].links | ways[via, b].links) & link:
                yield RoundTrip(us, (a, b), via)
                break


def _path_pairs(topology: Topology) -> dict[tuple[str, str], _PathPair]:
    """Return the round trip between each two connected regions, in both orders."""
    delays_us, bits = {}, {}
    numbers = {link.name: number for number, link in enumerate(topology.links)}
    for hop, link in carriers(topology).items():
        forward = link.between == hop
        delays_us[hop] = _most_us(link.forward_parameters if forward else link.backward_parameters)
        bits[hop] = 1 << numbers[link.name]
    found = {}
    hops_of = hops(topology)
    for a, b in combinations(topology.regions, 2):
        if (a, b) in hops_of:
            there_and_back = (*hops_of[a, b], *hops_of[b, a])
            links = 0
            for hop in there_and_back:
                links |= bits[hop]
            found[a, b] = found[b, a] = _PathPair(sum(delays_us[hop] for hop in there_and_back), links)
    return found


def _most_us(parameters: LinkParameters) -> int:
    return parameters.delay_us + parameters.jitter_us


def _lan_us(topology: Topology, region: str) -> int:
    """Return the round trip over the link of a region's host."""
    return 2 * _most_us(topology.regions[region].lan.parameters())
