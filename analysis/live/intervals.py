"""A set of sequence numbers as runs, of which there are few, since streams come nearly in order."""

from bisect import bisect_left, bisect_right


class Intervals:
    """Disjoint runs of whole numbers, ascending."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []  # exclusive

    def add(self, start: int, end: int) -> int:
        """Add [start, end); returns how many of these were not there before."""
        low, high = bisect_left(self._ends, start), bisect_right(self._starts, end)
        there = sum(
            max(0, min(stop, end) - max(begin, start))
            for begin, stop in zip(self._starts[low:high], self._ends[low:high], strict=True)
        )
        begin = min([start, *self._starts[low:high]])
        stop = max([end, *self._ends[low:high]])
        self._starts[low:high], self._ends[low:high] = [begin], [stop]
        return end - start - there
