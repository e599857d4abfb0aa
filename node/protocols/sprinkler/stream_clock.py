"""The time of a region's stream, by which its events are stamped and old ones collected (paper 3.4).

A machine's clock says how long the machine has been up, which differs from one replica to the next. So the
stream has a time of its own: every replica knows how far it is ahead of its own clock, from the stamps of the
events that came, and whoever becomes head goes on from there. An event that was long on its way would make
the stream's time appear too early; the one that was fastest counts. Stamps never fall, and never run ahead of
the time that has passed: what is collected by age is at least that old, and at most the time older for which
no replica ran or the newest event was on its way.

Nothing here compares clocks of different machines, and no clock has to be right: only their pace.
"""


class StreamClock:
    """As one replica knows it. All times in microseconds, those given by its own clock."""

    __slots__ = ("_ahead_us", "_last_us")

    def __init__(self) -> None:
        self._ahead_us: int | None = None  # the stream's time, less our own
        self._last_us = 0

    def heard(self, stamp_us: int, now_us: int) -> None:
        """An event with this stamp has come."""
        ahead_us = stamp_us - now_us
        if self._ahead_us is None or ahead_us > self._ahead_us:
            self._ahead_us = ahead_us
        self._last_us = max(self._last_us, stamp_us)

    def stamp_us(self, now_us: int) -> int:
        """The stream's time now, for the next event. A stream without events begins with our own time."""
        self._last_us = max(self._last_us, now_us + (self._ahead_us or 0))
        return self._last_us
