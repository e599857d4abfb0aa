"""Where the names at the ends of lines stand: at their line's height, moved apart where they would meet.

Labels that would cover each other become a cluster around the middle of their heights, in the same order.
The page does the same with pixels (assets/chart.js).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(slots=True)
class _Cluster:
    heights: list[float]
    gap: float

    @property
    def low(self) -> float:
        """The height of its lowest label, within 0 to 1."""
        extent = (len(self.heights) - 1) * self.gap
        middle = sum(self.heights) / len(self.heights)
        return min(max(middle - extent / 2, 0.0), max(0.0, 1.0 - extent))

    @property
    def high(self) -> float:
        """Where the next label above may stand."""
        return self.low + len(self.heights) * self.gap


def at_ends(ends: Iterable[tuple[float, T]], gap: float) -> list[tuple[float, T]]:
    """Heights for labels of lines that end at these heights (0 to 1), and what is to be labelled, upwards."""
    ordered = sorted(ends, key=lambda end: end[0])
    heights = spread([height for height, _ in ordered], gap)
    return [(height, labelled) for height, (_, labelled) in zip(heights, ordered, strict=True)]


def spread(heights: Sequence[float], gap: float) -> list[float]:
    """Heights (0 to 1, ascending) at which labels keep `gap` between each other, in the same order."""
    clusters: list[_Cluster] = []
    for height in heights:
        clusters.append(_Cluster([height], gap))
        while len(clusters) > 1 and clusters[-2].high > clusters[-1].low + 1e-9:
            upper = clusters.pop()
            clusters[-1].heights += upper.heights
    return [cluster.low + i * gap for cluster in clusters for i in range(len(cluster.heights))]
