"""The fixed route from every region to every other, and connectivity of graphs. Pure.

Regions that share a link always use it, even if a route through a third region would be shorter, and routes
never change: a cut is healed by the system under test, not by IP. Regions without a common link use the route
through others with the smallest sum of policy weights, then with the smallest delay (Dijkstra, from the
destination back). Links have weight 0 unless the topology gives one. The testbed, the simulator and the
analysis all use these routes.
"""

import heapq
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

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


def next_edges(regions: Iterable[str], edges: Sequence[RouteEdge]) -> dict[str, dict[str, RouteEdge]]:
    """Return, for each region, the link on which it sends to each reachable region."""
    found: dict[str, dict[str, RouteEdge]] = {region: {} for region in regions}
    for target in found:
        for region, edge in _towards(target, edges).items():
            found[region][target] = edge
    return found


def routes(regions: Iterable[str], edges: Sequence[RouteEdge]) -> dict[Hop, tuple[Hop, ...]]:
    """Return the hops from each region to each reachable region."""
    table = next_edges(regions, edges)
    return {(source, target): _hops(source, target, table) for source, row in table.items() for target in row}


def _hops(source: str, target: str, table: Mapping[str, Mapping[str, RouteEdge]]) -> tuple[Hop, ...]:
    hops: list[Hop] = []
    while source != target:
        after = table[source][target].across(source)
        hops.append((source, after))
        source = after
    return tuple(hops)


def _towards(target: str, edges: Sequence[RouteEdge]) -> dict[str, RouteEdge]:
    """Return the link on which each region sends to `target`; ties go to the topology's first link."""
    taken: dict[str, RouteEdge] = {}
    heap: list[tuple[bool, int, int, int, str]] = []  # detour, weight, delay, number of the link, region

    def offer(near: str, weight: int, delay_us: int, *, detour: bool) -> None:
        for number, edge in enumerate(edges):
            sum_ = weight + edge.weight
            if edge.b == near:
                heapq.heappush(heap, (detour, sum_, delay_us + edge.forward_us, number, edge.a))
            if edge.a == near:
                heapq.heappush(heap, (detour, sum_, delay_us + edge.backward_us, number, edge.b))

    offer(target, 0, 0, detour=False)
    while heap:
        _, weight, delay_us, number, region = heapq.heappop(heap)
        if region == target or region in taken:
            continue
        taken[region] = edges[number]
        offer(region, weight, delay_us, detour=True)
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
