"""Which subscriptions match which events: very many against very many, as an oracle for systems that do it.

For each subscription the narrowest of its ranges gives the candidates among the events in that order, and
only these are held against its other ranges; those that want everything of an attribute cost nothing. So
10^4 subscriptions and 10^5 events take seconds, not 10^9 comparisons of each attribute. Pairs come in blocks,
so that memory does not grow with them.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from node.core.content.content import Range
from node.core.content.value_distributions import Floats

Ints = npt.NDArray[np.int64]
PAIRS_TOGETHER = 1 << 20
"""A block has at least so many pairs, but for the last one, and at most those of one subscription more."""


class EventIndex:
    """Events in the order of each attribute. values: a row for each attribute, a column for each event, NaN
    where it is unspecified. domains: the lowest and the highest value of each attribute, by which it is known
    who wants everything of it (`node.core.content.content`).
    """

    def __init__(self, domains: Sequence[Range], values: Floats) -> None:
        self._lowest, self._highest = np.array(domains, float).reshape(-1, 2).T
        self._values = values
        self._order = np.argsort(values, axis=1, kind="stable")  # what is unspecified is last
        self._specified = values.shape[1] - np.isnan(values).sum(axis=1)

    def matches(
        self, low: Floats, high: Floats, together: int = PAIRS_TOGETHER
    ) -> Iterator[tuple[Ints, Ints]]:
        """Pairs of a subscription, in order, and an event that it matches, as parallel arrays, in blocks.

        low, high: of subscriptions, a row for each attribute. together: so many pairs make a block.
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
                yield _together(subscriptions, events)
                subscriptions, events, found = [], [], 0
        if subscriptions:
            yield _together(subscriptions, events)

    def _candidates(self, low: Floats, high: Floats, everything: npt.NDArray[np.bool_]) -> tuple[Ints, Ints]:
        """From where to where, in the order of each attribute, the events are that a range of it holds."""
        first, end = np.zeros(low.shape, np.int64), np.zeros(low.shape, np.int64)
        for row, order in enumerate(self._order):
            ordered = self._values[row, order[: self._specified[row]]]
            first[row] = np.searchsorted(ordered, low[row], side="left")
            end[row] = np.searchsorted(ordered, high[row], side="right")
        first[everything], end[everything] = 0, self._values.shape[1]
        return first, np.maximum(first, end)


def _together(subscriptions: Sequence[int], events: Sequence[Ints]) -> tuple[Ints, Ints]:
    return np.repeat(np.array(subscriptions, np.int64), [len(each) for each in events]), np.concatenate(
        events
    )
