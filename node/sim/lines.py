"""What messages wait for on their way: hosts' ports and the ways between regions, each with its rate.

Everything that goes through one of them shares its rate, first come, first served. A way can be cut, and
its delay, rate and loss can change while connections cross it.
"""

from collections.abc import Callable
from typing import Protocol

from node.sim.wires import Hop, Line

US_PER_S = 1_000_000
SEGMENT_BYTES = 1448  # of a connection's bytes in a packet of 1500
HEADERS_BYTES = 66  # of Ethernet, IP and TCP with a timestamp, in front of each segment


def wire_bytes(size_bytes: int) -> int:
    """What so many bytes of a connection take on a wire."""
    return size_bytes + HEADERS_BYTES * (1 + size_bytes // SEGMENT_BYTES)


def us_per_byte(rate_bits_per_s: float | None) -> float:
    """How long a byte takes."""
    return 8 * US_PER_S / rate_bits_per_s if rate_bits_per_s else 0.0


class Port:
    """One direction of a host's port. `free_us`: when all that it was given so far is through."""

    __slots__ = ("delay_us", "free_us", "us_per_byte")

    def __init__(self, line: Line) -> None:
        self.delay_us = line.delay_us
        self.us_per_byte = us_per_byte(line.rate_bits_per_s)
        self.free_us = 0.0


class Crossing(Protocol):
    """What crosses ways, and is told of their cuts."""

    def was_cut(self, way: "Way") -> None:
        """The way was cut."""

    def was_healed(self) -> None:
        """A cut of one of its ways has ended."""


class Way:
    """One direction of a link between two regions. `cuts`: how many hold it; `pipes`: who crosses it.

    random: uniform in [0, 1), for what is lost.
    """

    __slots__ = ("cuts", "delay_us", "free_us", "hop", "loss", "pipes", "random", "us_per_byte")

    def __init__(self, hop: Hop, line: Line, random: Callable[[], float]) -> None:
        self.hop = hop
        self.random = random
        self.cuts = 0
        self.free_us = 0.0
        self.pipes: dict[Crossing, None] = {}
        self.shape(line)

    def shape(self, line: Line) -> None:
        """From now on it behaves so."""
        self.delay_us = line.delay_us
        self.us_per_byte = us_per_byte(line.rate_bits_per_s)
        self.loss = line.loss
