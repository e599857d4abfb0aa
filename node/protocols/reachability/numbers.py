"""Message numbers, by which answers and repetitions are recognized; they differ in each process generation.

They start from the clock. With reused numbers, messages of a restarted node would look like repetitions. A
node uses on average less than one number per `NUMBER_US` (microseconds).
"""

NUMBER_US = 100
NUMBER_MAX = (1 << 32) - 1


class MessageNumbers:
    """The numbers of one node: 32 bits, never 0."""

    def __init__(self) -> None:
        self._last = 0

    def following(self, now_us: int) -> int:
        """Return the next number."""
        self._last = ((self._last or now_us // NUMBER_US) + 1) & NUMBER_MAX or 1
        return self._last
