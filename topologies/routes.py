"""The route from every region to every other, and connectivity of graphs. Pure.

Fixed routes: regions that share a link always use it, even if a route through a third region would be
shorter, and routes never change: a cut is healed by the system under test, not by IP. Among parallel links
the smallest weight, then delay, decides which one carries a direction. Regions without a common link use the
route through others with the smallest sum of policy weights, then with the smallest delay (Dijkstra, from the
destination back). Links have weight 0 unless the topology gives one. The testbed, the simulator and the
analysis all use these routes.

A routing protocol prefers no direct link: OSPF's routes have the least sum of costs, BGP's pass the fewest
regions. Ties go to the topology's first link under OSPF (zebra takes the lowest of the next gateways'
addresses), and to its first region as the next one under BGP (`bestpath compare-routerid`).
"""

import heapq
from collections import defaultdict
from collections.abc import Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from topologies.routing import BGP, OSPF, STATIC, ospf_cost

Hop = tuple[str, str]
"""A hop from one region to another over the link that joins them."""


@dataclass(frozen=True, slots=True)
class RouteEdge:
    """A link between two regions, with its one-way delays."""

    name: str
    a: str
    b: str
    forward_us: int  # from a to b
    backward_us: int
    weight: int = 0

    def across(self, region: str) -> str:
        """Return the region at the other end."""
        return self.b if region == self.a else self.a


def next_edges(
    regions: Iterable[str], edges: Sequence[RouteEdge], protocol: str = STATIC
) -> dict[str, dict[str, RouteEdge]]:
    """Return, for each region, the link on which it sends to each reachable region."""
    found: dict[str, dict[str, RouteEdge]] = {region: {} for region in regions}
    ranks = {region: rank if protocol == BGP else 0 for rank, region in enumerate(found)}
    leading: defaultdict[str, list[_Leading]] = defaultdict(list)
    for number, edge in enumerate(edges):
        leading[edge.b].append((number, *_cost(edge, edge.forward_us, protocol), edge.a))
        leading[edge.a].append((number, *_cost(edge, edge.backward_us, protocol), edge.b))
    for target in found:
        for region, number in _towards(target, leading, ranks, direct_first=protocol == STATIC).items():
            found[region][target] = edges[number]
    return found


def hop_edges(edges: Sequence[RouteEdge], protocol: str = STATIC) -> dict[Hop, RouteEdge]:
    """Return the link that carries all packets of each hop; ties go to the topology's first link."""
    found: dict[Hop, tuple[tuple[int, int], RouteEdge]] = {}
    for edge in edges:
        for hop, delay_us in (((edge.a, edge.b), edge.forward_us), ((edge.b, edge.a), edge.backward_us)):
            cost = _cost(edge, delay_us, protocol)
            if hop not in found or cost < found[hop][0]:
                found[hop] = cost, edge
    return {hop: edge for hop, (_, edge) in found.items()}


def _cost(edge: RouteEdge, delay_us: int, protocol: str) -> tuple[int, int]:
    """Return what routes minimise on a link: first the sum of the weights, then that of the second number."""
    if protocol == OSPF:
        return 0, ospf_cost(delay_us)
    return (0, 1) if protocol == BGP else (edge.weight, delay_us)


def joined(carriers: Mapping[Hop, str], lost: Container[str]) -> list[Hop]:
    """Return the neighbours, in both orders, between which packets go both ways without the lost links.

    carriers: the name of the link that carries each hop.
    """
    return [hop for hop, name in carriers.items() if name not in lost and carriers[hop[::-1]] not in lost]


def routes(
    regions: Iterable[str], edges: Sequence[RouteEdge], protocol: str = STATIC
) -> dict[Hop, tuple[Hop, ...]]:
    """Return the hops from each region to each reachable region."""
    table = next_edges(regions, edges, protocol)
    return {(source, target): _hops(source, target, table) for source, row in table.items() for target in row}


def _hops(source: str, target: str, table: Mapping[str, Mapping[str, RouteEdge]]) -> tuple[Hop, ...]:
    hops: list[Hop] = []
    while source != target:
        after = table[source][target].across(source)
        hops.append((source, after))
        source = after
    return tuple(hops)


_Leading = tuple[int, int, int, str]  # a link that leads to a region: number, weight, cost, from where


def _towards(
    target: str, leading: Mapping[str, Sequence[_Leading]], ranks: Mapping[str, int], *, direct_first: bool
) -> dict[str, int]:
    """Return the number of the link on which each region sends to `target`.

    Ties go to the next region of the lowest rank, then to the first link.
    """
    taken: dict[str, int] = {}
    heap: list[tuple[bool, int, int, int, int, str]] = []  # detour, weight, cost, rank, link's number, region

    def offer(near: str, weight: int, cost: int, *, detour: bool) -> None:
        for number, its_weight, its_cost, far in leading.get(near, ()):
            if far not in taken:
                way = (detour, weight + its_weight, cost + its_cost, ranks[near], number, far)
                heapq.heappush(heap, way)

    offer(target, 0, 0, detour=False)
    while heap:
        _, weight, cost, _, number, region = heapq.heappop(heap)
        if region == target or region in taken:
            continue
        taken[region] = number
        offer(region, weight, cost, detour=direct_first)
    return taken


Node = TypeVar("Node", bound=Hashable)


def connected(nodes: Iterable[Node], edges: Iterable[tuple[Node, Node]]) -> bool:
    """Return whether undirected edges connect all nodes."""
    every = list(nodes)
    return not every or len(reached_from(every[0], edges)) == len(set(every))


def reached_from(first: Node, edges: Iterable[tuple[Node, Node]]) -> set[Node]:
    """Return the nodes that undirected edges connect with one node, including itself."""
    joined = defaultdict(list)
    for a, b in edges:
        joined[a].append(b)
        joined[b].append(a)
    seen = {first}
    frontier = [first]
    while frontier:
        for node in joined[frontier.pop()]:
            if node not in seen:
                seen.add(node)
                frontier.append(node)
    return seen
