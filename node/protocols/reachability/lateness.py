"""How late a node is, and finds others to be: timeouts wait so much longer.

Where processors are busy, timers fire late and answers come late, and nobody has failed. Who sent everything
again then, or probed and went round, would make more work of too much. A node learns how late it is itself
from timers that fire after their time, and how late others are from answers that came, but after the usual
timeout: as TCP's retransmission timer follows the round trips that it sees (RFC 6298). What was seen is
forgotten by halves.
"""

HALF_US = 4_000_000
LATE_MAX = 16
"""Times the usual timeout: who is later than that may be taken for failed."""


class Lateness:
    """Of one node. usual_us: a timeout while nobody is late."""

    def __init__(self, usual_us: int) -> None:
        self._limit_us = LATE_MAX * usual_us
        self._late_us = 0
        self._noted_us = 0

    def note(self, late_us: int, now_us: int) -> None:
        """Something came that much after its time."""
        if late_us > self.at(now_us):
            self._late_us, self._noted_us = min(late_us, self._limit_us), now_us

    def since(self, from_us: int, now_us: int) -> int:
        """Likewise, as far as something came late since then."""
        return self.at(now_us) if self._noted_us >= from_us else 0

    def at(self, now_us: int) -> int:
        """How much later than usual things are to be expected."""
        if not self._late_us:
            return 0
        halvings = (now_us - self._noted_us) / HALF_US
        return int(self._late_us * 0.5**halvings)
