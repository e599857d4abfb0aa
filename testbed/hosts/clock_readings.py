"""How far a machine's clock is from ours, from questions over the connection that controls it.

Each answer bounds the difference: the machine read its clock between our asking and our hearing (RFC 5905,
section 8, without its assumption that both ways take equally long, but for the middle that is taken). The
answer that took least time counts. This is good to about a millisecond: enough to begin together; the
analysis compares clocks by packets.
"""

from testbed.hosts.facts import ClockReading, best_reading

ASKED_MAX = 64
READINGS_MAX = 64


class ClockReadings:
    """Questions under way, and the latest answers."""

    def __init__(self) -> None:
        self._asked_ns: dict[int, int] = {}
        self._readings: list[tuple[int, int, int]] = []  # our time, theirs, our time

    def asked(self, number: int, now_ns: int) -> None:
        """A question of this number goes out."""
        self._asked_ns[number] = now_ns
        while len(self._asked_ns) > ASKED_MAX:
            del self._asked_ns[next(iter(self._asked_ns))]

    def answered(self, number: int, there_ns: int, now_ns: int) -> None:
        """The answer to it came; answers to nothing that was asked count nothing."""
        asked_ns = self._asked_ns.pop(number, None)
        if asked_ns is None:
            return
        self._readings = [*self._readings[1 - READINGS_MAX :], (asked_ns, there_ns, now_ns)]

    @property
    def count(self) -> int:
        """How many answers came."""
        return len(self._readings)

    @property
    def best(self) -> ClockReading | None:
        """The closest of the latest readings, if there is one."""
        return best_reading(self._readings) if self._readings else None
