"""Lateness of a node and of others, by which timeouts are extended.

On busy processors timers fire late and answers arrive late although no node has failed. Repeating messages or
probing then would add to the load. A node learns its own lateness from timers that fire late, and that of
others from answers that arrive after the usual timeout, as TCP's retransmission timer follows the measured
round trips (RFC 6298). The measured lateness decays by half every `HALF_US` microseconds.
"""

HALF_US = 4_000_000
LATE_MAX = 16
"""Limit in units of the usual timeout: beyond it a node may be considered failed."""


class Lateness:
    """Lateness seen by one node. usual_us: timeout while no node is late."""

    def __init__(self, usual_us: int) -> None:
        self._limit_us = LATE_MAX * usual_us
        self._late_us = 0
        self._noted_us = 0

    def note(self, late_us: int, now_us: int) -> None:
        """Record that something was late by `late_us`."""
        if late_us > self.at(now_us):
            self._late_us, self._noted_us = min(late_us, self._limit_us), now_us

    def since(self, from_us: int, now_us: int) -> int:
        """Return the expected lateness if any was recorded since the given time, else 0."""
        return self.at(now_us) if self._noted_us >= from_us else 0

    def at(self, now_us: int) -> int:
        """Return the expected lateness in microseconds."""
        if not self._late_us:
            return 0
        halvings = (now_us - self._noted_us) / HALF_US
        return int(self._late_us * 0.5**halvings)
