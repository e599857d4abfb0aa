"""How far the byte streams of TCP directions have come: which packets have new data or acknowledgements.

Sequence numbers are compared with the previous one of their direction, since they wrap after 4 GiB.
"""

from collections.abc import Sequence

import numpy as np

from analysis.arrays import Bools, Ints, begins

NUMBERS = 1 << 32
_HALF = NUMBERS >> 1
_UNKNOWN = -1
_APART, _MIDDLE = 1 << 46, 1 << 45
"""Distance between the numbers of two directions on one line, and the place of a direction's beginning."""


class Progress:
    """The highest sequence number of each direction so far; directions are numbered from 0."""

    def __init__(self) -> None:
        self._highest: Ints = np.zeros(0, np.int64)
        self._begun: Ints = np.full(0, _UNKNOWN)

    def take(self, direction: Ints, number: Ints, begin: Ints) -> tuple[Bools, Ints]:
        """Take sequence numbers in order of time.

        Returns which exceed all earlier ones of their direction, and their places in it; the direction begins
        at the first packet's `begin`.
        """
        if not direction.size:
            return np.zeros(0, np.bool_), number
        self._reserve(int(direction.max()) + 1)
        order = np.argsort(direction, kind="stable")
        of, value = direction[order], number[order]
        first = begins(of)
        start = np.flatnonzero(first)
        is_new = self._begun[of[start]] == _UNKNOWN
        self._begun[of[start[is_new]]] = begin[order][start[is_new]]
        begun = self._begun[of[start]]
        highest = np.where(is_new, -1, self._highest[of[start]])
        before = np.concatenate(([0], value[:-1]))
        before[start] = begun + np.maximum(highest, 0)
        total, group = np.cumsum((value - before + _HALF) % NUMBERS - _HALF), np.cumsum(first) - 1
        earlier = np.concatenate(([0], total[start[1:] - 1]))
        place = total - (earlier - np.maximum(highest, 0))[group]
        line = group * _APART + _MIDDLE
        reached = np.maximum.accumulate(line + np.maximum(place, np.where(first, highest[group], -1)))
        passed = np.concatenate(([0], reached[:-1]))
        passed[start] = (line[start]) + highest
        last = np.append(start[1:], of.size) - 1
        self._highest[of[last]] = (reached - line)[last]
        found, places = np.zeros(of.size, np.bool_), np.zeros(of.size, np.int64)
        found[order], places[order] = line + place > passed, place
        return found, places

    def keep(self, directions: Ints) -> None:
        """Keep only these directions, which get new numbers from 0."""
        self._reserve(int(directions.max(initial=-1)) + 1)
        self._highest, self._begun = self._highest[directions], self._begun[directions]

    def _reserve(self, directions: int) -> None:
        missing = directions - self._begun.size
        if missing > 0:
            more = max(missing, self._begun.size)
            self._highest = np.concatenate((self._highest, np.zeros(more, np.int64)))
            self._begun = np.concatenate((self._begun, np.full(more, _UNKNOWN)))


def ends_in_order(columns: Sequence[Ints]) -> tuple[list[Ints], Bools]:
    """Return the two ends of packets in ascending order, and whether the source comes first.

    columns: src_hi, src_lo, sport, dst_hi, dst_lo and dport. The result has the same order.
    """
    source_first = np.zeros(columns[0].size, np.bool_)
    equal = ~source_first
    for one, other in zip(columns[:3], columns[3:], strict=True):
        source_first |= equal & (one < other)
        equal &= one == other
    source_first |= equal
    pairs = zip((*columns[:3], *columns[3:]), (*columns[3:], *columns[:3]), strict=True)
    return [np.where(source_first, one, other) for one, other in pairs], source_first
