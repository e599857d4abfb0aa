"""The routes between regions over time, if a routing protocol sets them: from the changes that each gateway's
kernel reported.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

from analysis.timelines.links.periods import LinkDirection, wan_hops
from experiments.planned.plan import Plan
from experiments.records.observations import RouteChange
from topologies.routes import Hop

SERIES_NS = 10**9


@dataclass(frozen=True, slots=True)
class RouteHistory:
    """The link on which each region sends to each other one, since when; "" is none."""

    since_ns: Mapping[Hop, tuple[int, ...]]
    links: Mapping[Hop, tuple[str, ...]]
    leads: Mapping[tuple[str, str], tuple[LinkDirection, str]]  # from a region on a link: to which other one

    @classmethod
    def from_changes(cls, plan: Plan, changes: Iterable[RouteChange]) -> Self:
        """Return the history in these changes."""
        found: defaultdict[Hop, list[RouteChange]] = defaultdict(list)
        for change in sorted(changes, key=lambda each: each.t_ns):
            found[change.region, change.target].append(change)
        return cls(
            {hop: tuple(each.t_ns for each in its) for hop, its in found.items()},
            {hop: tuple(each.link for each in its) for hop, its in found.items()},
            {(a, direction[0]): (direction, b) for direction, (a, b) in wan_hops(plan).items()},
        )

    @property
    def changes_ns(self) -> list[int]:
        """Return the times of all changes."""
        return [t_ns for times in self.since_ns.values() for t_ns in times]

    def changed_ns(self, from_ns: int, to_ns: int) -> list[tuple[int, int]]:
        """Return the first and the last change of each series within a time; 1 s apart is another series."""
        found: list[tuple[int, int]] = []
        for t_ns in sorted(t_ns for t_ns in self.changes_ns if from_ns <= t_ns < to_ns):
            goes_on = bool(found) and t_ns - found[-1][1] < SERIES_NS
            found = [*found[:-1], (found[-1][0], t_ns)] if goes_on else [*found, (t_ns, t_ns)]
        return found

    def directions(self, hop: Hop, t_ns: int) -> list[LinkDirection]:
        """Return the link directions of the route between two regions at `t_ns`; empty without a route, or
        while routes form a loop.
        """
        here, target = hop
        found: list[LinkDirection] = []
        while here != target:
            place = bisect_right(self.since_ns.get((here, target), ()), t_ns)
            link = self.links[here, target][place - 1] if place else ""
            if not link or len(found) >= len(self.leads):
                return []
            direction, here = self.leads[here, link]
            found.append(direction)
        return found
