"""Wide-area networks for simulated clusters: any graph of regions, with static routes as in a testbed.

Regions are r0, r1, and so on; a link is a pair of their numbers. Regions without a common link use the path
with the least delay, which never changes: routing does not avoid a cut.
"""

import heapq
from collections.abc import Iterable, Mapping

from node.sim.wires import Hop, Wires

LAN_US = 1_000
Links = Mapping[tuple[int, int], int]  # one-way delays in microseconds


def ring(*delays_ms: int) -> Links:
    """Return the links of a ring: each region with the next, and the last with the first."""
    return {(at, (at + 1) % len(delays_ms)): 1000 * delay_ms for at, delay_ms in enumerate(delays_ms)}


def wires(links: Links) -> Wires:
    """Return the network of these links."""
    delays = {(f"r{a}", f"r{b}"): delay_us for (a, b), delay_us in links.items()}
    return Wires(LAN_US, delays, routes=routes(delays))


def size(links: Links) -> int:
    """Return the number of regions."""
    return 1 + max(max(link) for link in links)


def is_connected(links: Iterable[tuple[int, int]], regions: int) -> bool:
    """Return whether every region reaches every other one."""
    reached, links = {0}, list(links)
    for _ in range(regions):
        reached |= {near for a, b in links for near in (a, b) if {a, b} & reached}
    return len(reached) == regions


def routes(delays: Mapping[Hop, int]) -> dict[Hop, tuple[Hop, ...]]:
    """Return the paths of least delay between regions without a common link, by one-way delays of links."""
    near: dict[str, dict[str, int]] = {}
    for (a, b), delay_us in delays.items():
        near.setdefault(a, {})[b] = near.setdefault(b, {})[a] = delay_us
    routes = {}
    for start, beside in near.items():
        heap: list[tuple[int, str, tuple[Hop, ...]]] = [(0, start, ())]
        seen: set[str] = set()
        while heap:
            delay_us, region, way = heapq.heappop(heap)
            if region in seen:
                continue
            seen.add(region)
            if len(way) > 1 and region not in beside:
                routes[start, region] = way
            for following, more_us in near[region].items():
                heapq.heappush(heap, (delay_us + more_us, following, (*way, (region, following))))
    return routes
