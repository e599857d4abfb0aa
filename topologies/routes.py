"""The fixed route from every region to every other. Pure.

Regions that share a link use it, always, even where a route through a third would be shorter, and nothing
ever changes a route: so a cut is not healed by IP, but by the system under test. Regions without a link of
their own are reached by the route with the least policy weight through others, and of these with the least
delay (Dijkstra, from the destination back). Links have no weight unless the topology gives them one.
Who builds the network, simulates it or judges it by its packets must know the same routes.

Whether a graph is connected at all is asked of it here, too.
"""

import heapq
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

Hop = tuple[str, str]
"""From one region to another over the link that joins them."""


@dataclass(frozen=True, slots=True)
class Edge:
    """A link between two regions, with its one-way delays."""

    name: str
    a: str
    b: str
    forward_us: int  # from a to b
    backward_us: int
    weight: int = 0

    def across(self, region: str) -> str:
        """The region at the other end."""
        return self.b if region == self.a else self.a


def next_edges(regions: Iterable[str], edges: Sequence[Edge]) -> dict[str, dict[str, Edge]]:
    """For each region, the link by which it sends to each other region that it can reach."""
    found: dict[str, dict[str, Edge]] = {region: {} for region in regions}
    for target in found:
        for region, edge in _towards(target, edges).items():
            found[region][target] = edge
    return found


def routes(regions: Iterable[str], edges: Sequence[Edge]) -> dict[Hop, tuple[Hop, ...]]:
    """The hops from each region to each other that it can reach."""
    table = next_edges(regions, edges)
    return {(source, target): _hops(source, target, table) for source, row in table.items() for target in row}


def _hops(source: str, target: str, table: Mapping[str, Mapping[str, Edge]]) -> tuple[Hop, ...]:
    hops: list[Hop] = []
    while source != target:
        after = table[source][target].across(source)
        hops.append((source, after))
        source = after
    return tuple(hops)


def _towards(target: str, edges: Sequence[Edge]) -> dict[str, Edge]:
    """The link by which each region sends to `target`. Ties go to the link that the topology names first."""
    taken: dict[str, Edge] = {}
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
    """Whether every node is reached from every other along undirected edges."""
    every = list(nodes)
    return not every or len(reached_from(every[0], edges)) == len(set(every))


def reached_from(first: Node, edges: Iterable[tuple[Node, Node]]) -> set[Node]:
    """The nodes to which undirected edges lead from one, itself among them."""
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
