"""How simulated regions are joined, as plain data."""

from collections.abc import Mapping
from dataclasses import dataclass

Region = str


@dataclass(frozen=True, slots=True)
class Wires:
    """One-way delays in microseconds: within a region, and between pairs of regions (either order)."""

    lan_us: int
    wan_us: Mapping[tuple[Region, Region], int]
    rate_bits_per_s: float | None = None  # of every connection and direction

    def delay_us(self, a: Region, b: Region) -> int:
        """From a host in `a` to a host in `b`."""
        if a == b:
            return 2 * self.lan_us
        wan_us = self.wan_us.get((a, b), self.wan_us.get((b, a)))
        if wan_us is None:
            raise ValueError(f"no way between {a} and {b}")
        return 2 * self.lan_us + wan_us
