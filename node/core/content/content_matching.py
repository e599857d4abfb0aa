"""Matching of many subscriptions with many events, as an oracle for systems that do it.

For each subscription, the narrowest of its ranges selects the candidates among the events sorted by that
attribute. Only the candidates are compared with its other ranges; a range that covers a whole attribute
costs nothing. So 10^4 subscriptions and 10^5 events take seconds instead of 10^9 comparisons for each
attribute. Pairs are yielded in blocks, so that memory does not grow with their number.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from node.core.content.content import Range
from node.core.content.value_distributions import Floats

Ints = npt.NDArray[np.int64]
PAIRS_TOGETHER = 1 << 20
"""Pairs in a block: at least this number, except in the last block; at most those of one subscription more.
"""


class EventIndex:
    """Events sorted by each attribute. values: a row for each attribute, a column for each event, NaN where
    unspecified. domains: the lowest and highest value of each attribute, which show whether a subscription
    covers the whole attribute (`node.core.content.content`).
    """

    def __init__(self, domains: Sequence[Range], values: Floats) -> None:
        self._lowest, self._highest = np.array(domains, float).reshape(-1, 2).T
        self._values = values
        self._order = np.argsort(values, axis=1, kind="stable")  # unspecified values are last
        self._specified = values.shape[1] - np.isnan(values).sum(axis=1)

    def matches(
        self, low: Floats, high: Floats, together: int = PAIRS_TOGETHER
    ) -> Iterator[tuple[Ints, Ints]]:
        """Yield pairs of a subscription, in order, and an event that it matches, as parallel arrays, in
        blocks.

        low, high: bounds of subscriptions, a row for each attribute. together: minimum pairs in a block.
        """
        everything = (low <= self._lowest[:, None]) & (high >= self._highest[:, None])
        first, end = self._candidates(low, high, everything)
        by_size = np.argsort(end - first, axis=0)
        subscriptions: list[int] = []
        events: list[Ints] = []
        found = 0
        for number, attributes in enumerate(by_size.T.tolist()):
            narrowest = attributes[0]
            among = self._order[narrowest, first[narrowest, number] : end[narrowest, number]]
            for attribute in attributes[1:]:
                if not everything[attribute, number]:
                    seen = self._values[attribute, among]
                    among = among[(low[attribute, number] <= seen) & (seen <= high[attribute, number])]
            subscriptions.append(number)
            events.append(among)
            found += len(among)
            if found >= together:
                yield _concatenate(subscriptions, events)
                subscriptions, events, found = [], [], 0
        if subscriptions:
            yield _concatenate(subscriptions, events)

    def _candidates(self, low: Floats, high: Floats, everything: npt.NDArray[np.bool_]) -> tuple[Ints, Ints]:
        """Return first and end positions, in the order of each attribute, of the events within each range."""
        first, end = np.zeros(low.shape, np.int64), np.zeros(low.shape, np.int64)
        for row, order in enumerate(self._order):
            ordered = self._values[row, order[: self._specified[row]]]
            first[row] = np.searchsorted(ordered, low[row], side="left")
            end[row] = np.searchsorted(ordered, high[row], side="right")
        first[everything], end[everything] = 0, self._values.shape[1]
        return first, np.maximum(first, end)


def _concatenate(subscriptions: Sequence[int], events: Sequence[Ints]) -> tuple[Ints, Ints]:
    return np.repeat(np.array(subscriptions, np.int64), [len(each) for each in events]), np.concatenate(
        events
    )
