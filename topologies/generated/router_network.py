"""Routers in domains, the links between them, and the routes: transit routers, each with stub domains.

Routes follow policy weights: within a domain, up to the transit router, between transit domains, and down.
Every stub has one link to its gateway, so a route is composed of three known parts (`route`).

A link direction is a number: twice the link's number, plus one for the direction from its second end to its
first. The opposite of a link direction is `direction ^ 1`.
"""

import heapq
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class RouterLink:
    """A link between two routers, by number."""

    a: int
    b: int
    delay_us: int
    weight: int = 1


class Path(NamedTuple):
    """The delay of a route, and the link directions that it crosses."""

    delay_us: int
    directions: tuple[int, ...]

    @property
    def back(self) -> "Path":
        """The same path in the opposite direction."""
        return Path(self.delay_us, tuple(direction ^ 1 for direction in reversed(self.directions)))


@dataclass(frozen=True, slots=True)
class RouterNetwork:
    """Routers, links and routes; transit routers come first."""

    names: Sequence[str]
    links: Sequence[RouterLink]
    gateways: Sequence[int]
    """For each router the transit router of its stub; a transit router's is itself."""
    stubs: Sequence[int]
    """For each router the number of its stub domain; -1 for transit routers."""
    between: Sequence[Sequence[Path]]
    """The path from each transit router to each, by number."""
    up: Sequence[Path]
    """The path from each router to its gateway."""
    within: Sequence[dict[int, Path]]
    """The paths from each router of a stub to each router of the same stub."""

    def delay_us(self, a: int, b: int) -> int:
        """Return the delay of the route from one router to another, in microseconds."""
        if self.stubs[a] == self.stubs[b] != -1:
            return self.within[a][b].delay_us
        middle = self.between[self.gateways[a]][self.gateways[b]]
        return self.up[a].delay_us + middle.delay_us + self.up[b].delay_us

    def route(self, a: int, b: int) -> tuple[int, ...]:
        """Return the link directions from one router to another."""
        if self.stubs[a] == self.stubs[b] != -1:
            return self.within[a][b].directions
        middle = self.between[self.gateways[a]][self.gateways[b]]
        return self.up[a].directions + middle.directions + self.up[b].back.directions

    @property
    def mean_link_delay_us(self) -> float:
        """The mean delay of all links between routers."""
        return sum(link.delay_us for link in self.links) / len(self.links) if self.links else 0.0


def routed(
    names: Sequence[str], links: Sequence[RouterLink], gateways: Sequence[int], stubs: Sequence[int]
) -> RouterNetwork:
    """Return the network with its routes."""
    joined: list[list[tuple[int, int, RouterLink]]] = [[] for _ in names]
    for number, link in enumerate(links):
        joined[link.a].append((link.b, 2 * number, link))
        joined[link.b].append((link.a, 2 * number + 1, link))
    transit = range(sum(stub < 0 for stub in stubs))
    routes = [_least_weight(source, transit, joined) for source in transit]
    between = [[found[target] for target in transit] for found in routes]
    up = [Path(0, ()) for _ in names]
    within: list[dict[int, Path]] = [{} for _ in names]
    for stub in _members(stubs):
        gateway = gateways[stub[0]]
        for router in stub:
            within[router] = _least_weight(router, {*stub, gateway}, joined)
            up[router] = within[router].pop(gateway)
    return RouterNetwork(names, links, gateways, stubs, between, up, within)


def _members(stubs: Sequence[int]) -> Iterable[list[int]]:
    found: dict[int, list[int]] = {}
    for router, stub in enumerate(stubs):
        if stub >= 0:
            found.setdefault(stub, []).append(router)
    return found.values()


def _least_weight(
    source: int, among: Container[int], joined: Sequence[Sequence[tuple[int, int, RouterLink]]]
) -> dict[int, Path]:
    """Return a router's paths to others over these routers, with the least weight, then the least delay."""
    found: dict[int, Path] = {}
    heap: list[tuple[int, int, int, tuple[int, ...]]] = [(0, 0, source, ())]
    while heap:
        weight, delay_us, router, directions = heapq.heappop(heap)
        if router in found:
            continue
        found[router] = Path(delay_us, directions)
        for other, direction, link in joined[router]:
            if other in among and other not in found:
                onward = (*directions, direction)
                heapq.heappush(heap, (weight + link.weight, delay_us + link.delay_us, other, onward))
    return found
