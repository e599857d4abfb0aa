"""Congestion window: how many messages of a peer may be unanswered; fewer if zones are short of processors.

Each zone reports in its answer the maximum lateness of itself and the zones beyond it (`late_us` of VISITED:
an explicit congestion notification, as RFC 3168's), so that a cut, which also delays answers, does not count
as overload. The window grows with each answer, and shrinks by a factor if a zone was late or an answer is
missing: as TCP's (RFC 5681), once for all messages sent before it last shrank. Messages that do not fit wait
at their peer: events are not published yet, subscriptions not sent.
"""

LATE_US = 250_000
"""Lateness above which a peer counts as overloaded."""
GROWTH = 4
"""Growth of the window per window of answers."""
SHRINK_FACTOR = 0.7
"""Part of the window that remains after a late answer."""


class CongestionWindow:
    """A congestion window. first, least, most: its initial size and its bounds."""

    def __init__(self, first: int, least: int, most: int) -> None:
        self._least, self._most = float(min(least, most)), float(most)
        self.size = float(min(first, most))
        self._threshold = self._most  # below it the window grows fast
        self._shrunk_us = -1

    def answered(self, sent_us: int, late_us: int, now_us: int) -> None:
        """Process an answer; late_us: maximum lateness of the peers involved."""
        if late_us > LATE_US:
            self._shrink(sent_us, now_us)
        else:
            step = 1.0 if self.size < self._threshold else GROWTH / self.size
            self.size = min(self.size + step, self._most)

    def unanswered(self, sent_us: int, now_us: int) -> None:
        """Process that a message got no answer."""
        self._shrink(sent_us, now_us)

    def _shrink(self, sent_us: int, now_us: int) -> None:
        if sent_us > self._shrunk_us:
            self.size = self._threshold = max(SHRINK_FACTOR * self.size, self._least)
            self._shrunk_us = now_us
