"""The fixed way from every region to every other. Pure.

Regions that share a link use it, always, even where a way through a third would be shorter, and nothing ever
changes a way: so a cut is not healed by IP, but by the system under test. Regions without a link of their own
are reached by the way with the least delay through others (Dijkstra, from the destination back).
"""

import heapq

from testbed.plan import LinkPlan, Plan


def next_links(plan: Plan) -> dict[str, dict[str, LinkPlan]]:
    """For each region, the WAN link by which it sends to each other region that it can reach."""
    wan = [link for link in plan.links if link.kind == "wan"]
    ways: dict[str, dict[str, LinkPlan]] = {region.name: {} for region in plan.regions}
    for target in ways:
        for region, link in _towards(target, wan).items():
            ways[region][target] = link
    return ways


def _towards(target: str, wan: list[LinkPlan]) -> dict[str, LinkPlan]:
    """The link by which each region sends to `target`. Ties go to the link that the topology names first."""
    taken: dict[str, LinkPlan] = {}
    heap: list[tuple[bool, int, int, str]] = []  # detour, delay, number of the link, region

    def offer(near: str, delay_us: int, *, detour: bool) -> None:
        for number, link in enumerate(wan):
            if link.b == near:
                heapq.heappush(heap, (detour, delay_us + link.forward.delay_us, number, link.a))
            if link.a == near:
                heapq.heappush(heap, (detour, delay_us + link.backward.delay_us, number, link.b))

    offer(target, 0, detour=False)
    while heap:
        _, delay_us, number, region = heapq.heappop(heap)
        if region == target or region in taken:
            continue
        taken[region] = wan[number]
        offer(region, delay_us, detour=True)
    return taken
