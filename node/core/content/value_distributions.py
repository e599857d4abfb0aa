"""Distributions of an attribute's values: uniform or by Zipf's law, drawn in bulk.

For Zipf the attribute's range is divided into equal parts; the k-th in popularity is chosen in proportion to
k ** -skew; values within a part are uniform. The most popular part is the one of the peak; the others follow
by their distance from it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from node.core.content.content import ContentAttribute

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Distribution:
    """Distribution of values. kind: "events" (of subscriptions) draws values of events. peak: None is the
    lowest value.
    """

    kind: Literal["uniform", "zipf", "events"] = "uniform"
    skew: float = 1.0
    parts: int = 1000
    peak: float | None = None

    @classmethod
    def from_plan(cls, given: Mapping[str, Any] | None) -> Self:
        """Parse a plan's workload; uniform by default."""
        return cls(**(given or {}))


class ValueDraws:
    """Draws values of one attribute."""

    def __init__(self, attribute: ContentAttribute, distribution: Distribution) -> None:
        self._attribute = attribute
        low, high = attribute.low, attribute.high
        self._count = (
            int(high - low) + 1 if attribute.is_whole else 0
        )  # of values; 0: the attribute is continuous
        end = high + 1 if self._count else high
        self._edges = np.array([low, end])
        self._order, self._up_to = np.zeros(1, np.int64), np.ones(1)
        if distribution.kind == "zipf":
            parts = min(distribution.parts, self._count or distribution.parts)
            self._edges = np.linspace(low, end, parts + 1)
            if self._count:
                self._edges = np.floor(self._edges)
            peak = low if distribution.peak is None else distribution.peak
            first = min(int(np.searchsorted(self._edges, peak, side="right")) - 1, parts - 1)
            self._order = np.argsort(np.abs(np.arange(parts) - first), kind="stable")
            self._up_to = np.cumsum(np.arange(1, parts + 1) ** -distribution.skew)

    def draw(self, count: int, generator: np.random.Generator) -> Floats:
        """Draw `count` values."""
        rank = np.searchsorted(self._up_to, generator.random(count) * self._up_to[-1], side="right")
        part = self._order[np.minimum(rank, len(self._order) - 1)]
        low, high = self._edges[part], self._edges[part + 1]
        found: Floats = low + generator.random(count) * (high - low)
        if self._count:
            found = np.minimum(np.floor(found), high - 1)
        return np.minimum(found, self._attribute.high)
