"""How simulated hosts and regions are joined, as plain data.

A message goes from its host's port over the LAN of its region, over the wide-area ways to the other region,
and over the LAN there to the receiver's port; whose rates count is said in `node.sim.pipe`. Delays are
one-way, everywhere.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

Region = str
Hop = tuple[Region, Region]


@dataclass(frozen=True, slots=True)
class Line:
    """One direction of a link. loss: of MTU-sized segments, 0 to 1; `None` as rate is unlimited."""

    delay_us: int
    rate_bits_per_s: float | None = None
    loss: float = 0.0


@dataclass(frozen=True, slots=True)
class Lan:
    """A region's network: what joins each of its hosts, from the host and to it."""

    outward: Line
    inward: Line


@dataclass(frozen=True, slots=True)
class Wires:
    """Delays in microseconds: of a host's link, and between pairs of regions (either order).

    rate_bits_per_s: of every way between two regions. lans, lines: what stands in for that, by region and by
    hop from one region to another. routes: the hops between regions that no way joins. apart: pairs of
    hosts of one region, in both orders, between which the LAN can be cut.
    """

    lan_us: int
    wan_us: Mapping[Hop, int]
    rate_bits_per_s: float | None = None
    lans: Mapping[Region, Lan] = field(default_factory=dict)
    lines: Mapping[Hop, Line] = field(default_factory=dict)
    routes: Mapping[Hop, tuple[Hop, ...]] = field(default_factory=dict)
    apart: frozenset[Hop] = frozenset()

    def lan(self, region: Region) -> Lan:
        """Of the hosts of a region."""
        return self.lans.get(region) or Lan(Line(self.lan_us), Line(self.lan_us))

    def line(self, hop: Hop) -> Line:
        """The way over which this hop goes. Raises ValueError if there is none."""
        line = self.lines.get(hop)
        if line is not None:
            return line
        delay_us = self.wan_us.get(hop, self.wan_us.get((hop[1], hop[0])))
        if delay_us is None:
            raise ValueError(f"no way between {hop[0]} and {hop[1]}")
        return Line(delay_us, self.rate_bits_per_s)

    def route(self, a: Region, b: Region) -> tuple[Hop, ...]:
        """The hops from a region to another; none within one."""
        if a == b:
            return ()
        return self.routes.get((a, b), ((a, b),))
