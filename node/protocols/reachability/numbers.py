"""Numbers of what a node sends, by which answers and repetitions are known: others in each of its lives.

They begin with the time: a node that comes back would otherwise use those of its earlier life again, and what
it sends be taken for a repetition. It uses less than one in `NUMBER_US`, on average.
"""

NUMBER_US = 100
NUMBER_MAX = (1 << 32) - 1


class Numbers:
    """Of one node; never 0, and 32 bits each."""

    def __init__(self) -> None:
        self._last = 0

    def following(self, now_us: int) -> int:
        """The next one."""
        self._last = ((self._last or now_us // NUMBER_US) + 1) & NUMBER_MAX or 1
        return self._last
