"""The time of a region's stream, by which its events are stamped and old ones collected (paper 3.4).

A machine's clock shows its uptime, which differs between replicas. So the stream has a time of its own. Every
replica derives its offset from the stamps of received events, and a new head continues from there. A delayed
event would make the stream's time appear too early, so the event with the least delay counts. Stamps never
decrease, and never run ahead of the elapsed time: an event collected by age has at least that age; the excess
is at most the time for which no replica ran or the newest event was in transit.

Clocks of different machines are never compared, and no clock has to be right: only their rate matters.
"""


class StreamClock:
    """The clock of a stream in one replica. All times in microseconds; arguments are by its own clock."""

    __slots__ = ("_ahead_us", "_last_us")

    def __init__(self) -> None:
        self._ahead_us: int | None = None  # the stream's time minus the own clock
        self._last_us = 0

    def observe(self, stamp_us: int, now_us: int) -> None:
        """Update the offset from a received event's stamp."""
        ahead_us = stamp_us - now_us
        if self._ahead_us is None or ahead_us > self._ahead_us:
            self._ahead_us = ahead_us
        self._last_us = max(self._last_us, stamp_us)

    def stamp_us(self, now_us: int) -> int:
        """Return the stream's time for the next event. A stream without events begins with the own time."""
        self._last_us = max(self._last_us, now_us + (self._ahead_us or 0))
        return self._last_us
