"""How much a peer may have on its way: less where zones are short of processors.

Each zone says with its answer how late it or one beyond it was (`late_us` of VISITED: an explicit
notification of congestion, as RFC 3168's), so that a cut, by which answers are late as well, is not taken
for too much load. The window grows with each answer, and shrinks to a part where somebody was late, or there
is no answer: as TCP's (RFC 5681), once for all that was sent before it last shrank. What does not fit waits
with its peer: events are not published yet, subscriptions not asked for.
"""

LATE_US = 250_000
"""Who is later than this has more to do than it can."""
GROWTH = 4
"""By which it grows while as many are answered as fit in it."""
KEPT = 0.7
"""Of the window where somebody was late."""


class Window:
    """first, least, most: its size at the beginning, and its bounds."""

    def __init__(self, first: int, least: int, most: int) -> None:
        self._least, self._most = float(min(least, most)), float(most)
        self.size = float(min(first, most))
        self._threshold = self._most  # until there it grows fast
        self._shrunk_us = -1

    def answered(self, sent_us: int, late_us: int, now_us: int) -> None:
        """What was sent then is where it should be; somebody was so late."""
        if late_us > LATE_US:
            self._shrink(sent_us, now_us)
        else:
            step = 1.0 if self.size < self._threshold else GROWTH / self.size
            self.size = min(self.size + step, self._most)

    def unanswered(self, sent_us: int, now_us: int) -> None:
        """What was sent then has no answer."""
        self._shrink(sent_us, now_us)

    def _shrink(self, sent_us: int, now_us: int) -> None:
        if sent_us > self._shrunk_us:
            self.size = self._threshold = max(KEPT * self.size, self._least)
            self._shrunk_us = now_us
