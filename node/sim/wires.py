"""Links of simulated hosts and regions, as plain data.

A message goes from its host's port over the LAN of its region, over the wide-area links to the other region,
and over the LAN there to the receiver's port; `node.sim.pipe` defines which of their rates apply. All delays
are one-way, and a link is always one direction.

Messages queue at hosts' ports and at links between regions, each with its rate. All traffic through one of
them shares its rate, first come, first served. A link can be cut, and its delay, rate and loss can change
while connections cross it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

Region = str
Hop = tuple[Region, Region]
US_PER_S = 1_000_000
SEGMENT_BYTES = 1448  # of a connection's bytes in a packet of 1500 bytes
QUEUE_US = 250_000
"""Limit of a link's queue (`topologies.link_parameters`: a round trip, 100 ms at least). Further data waits
at its senders, where connections do not wait for each other.
"""
HEADERS_BYTES = 66  # of Ethernet, IP and TCP with a timestamp, before each segment


@dataclass(frozen=True, slots=True)
class LinkLine:
    """Parameters of one direction of a link.

    loss: share of MTU-sized segments, 0 to 1. bursts: if losses come in bursts, the probabilities that a
    burst begins after a segment that passed, and that it ends. A rate of None is unlimited. jitter_us:
    messages deviate from the delay by up to this much; deviation: the part of it for a uniform draw from 0 to
    1, by default uniform from -1 to 1; jitter_correlation, 0 to 1, is the
    share of the last message's deviation in the next one's. corrupt: share of segments that arrive damaged,
    which TCP repairs like losses. sent_us: for a rate that varies over time, the
    end of a transmission of a number of bytes that begins at a time. delay_at_us: for a delay that varies,
    its value at a time.
    """

    delay_us: int
    rate_bits_per_s: float | None = None
    loss: float = 0.0
    bursts: tuple[float, float] | None = None
    sent_us: Callable[[float, int], float] | None = None
    delay_at_us: Callable[[int], int] | None = None
    jitter_us: int = 0
    jitter_correlation: float = 0.0
    deviation: Callable[[float], float] | None = None
    corrupt: float = 0.0


@dataclass(frozen=True, slots=True)
class SimulatedLan:
    """A region's LAN: the links from and to each of its hosts."""

    outward: LinkLine
    inward: LinkLine


@dataclass(frozen=True, slots=True)
class Wires:
    """Delays in microseconds: of a host's link, and between pairs of regions (either order).

    rate_bits_per_s: of every link between two regions. lans, lines: override these, by region and by hop from
    one region to another. routes: the hops between regions that no link joins. apart: pairs of hosts of one
    region, in both orders, between which the LAN can be cut. selected: for a hop, the hops that replace it
    for connections from or to a host; the first match counts.
    """

    lan_us: int
    wan_us: Mapping[Hop, int]
    rate_bits_per_s: float | None = None
    lans: Mapping[Region, SimulatedLan] = field(default_factory=dict)
    lines: Mapping[Hop, LinkLine] = field(default_factory=dict)
    routes: Mapping[Hop, tuple[Hop, ...]] = field(default_factory=dict)
    apart: frozenset[Hop] = frozenset()
    selected: Mapping[tuple[Hop, str], Hop] = field(default_factory=dict)

    def lan(self, region: Region) -> SimulatedLan:
        """Return the links between the hosts of a region and its LAN."""
        return self.lans.get(region) or SimulatedLan(LinkLine(self.lan_us), LinkLine(self.lan_us))

    def line(self, hop: Hop) -> LinkLine:
        """Return the parameters of this hop's link. Raises ValueError if no link joins its ends."""
        line = self.lines.get(hop)
        if line is not None:
            return line
        delay_us = self.wan_us.get(hop, self.wan_us.get((hop[1], hop[0])))
        if delay_us is None:
            raise ValueError(f"no link between {hop[0]} and {hop[1]}")
        return LinkLine(delay_us, self.rate_bits_per_s)

    def route(self, a: Region, b: Region) -> tuple[Hop, ...]:
        """Return the hops from a region to another; none within a region."""
        if a == b:
            return ()
        return self.routes.get((a, b), ((a, b),))

    def hop_of(self, hop: Hop, hosts: tuple[str, str]) -> Hop:
        """Return the hop for a connection between two hosts: itself, or that of one of the hosts."""
        mine = (each for (its, host), each in self.selected.items() if its == hop and host in hosts)
        return next(mine, hop)


def wire_bytes(size_bytes: int) -> int:
    """Return the number of bytes on the wire for `size_bytes` of a connection."""
    return size_bytes + HEADERS_BYTES * (1 + size_bytes // SEGMENT_BYTES)


def us_per_byte(rate_bits_per_s: float | None) -> float:
    """Return the time of one byte at this rate; 0 if it is unlimited."""
    return 8 * US_PER_S / rate_bits_per_s if rate_bits_per_s else 0.0


class SimulatedPort:
    """One direction of a host's port. `free_us`: when everything sent so far has passed."""

    __slots__ = ("delay_us", "free_us", "us_per_byte")

    def __init__(self, line: LinkLine) -> None:
        self.delay_us = line.delay_us
        self.us_per_byte = us_per_byte(line.rate_bits_per_s)
        self.free_us = 0.0


class Traversal(Protocol):
    """A connection's direction that crosses links and is notified of their cuts."""

    def note_cut(self, link: "SimulatedLinkDirection") -> None:
        """Handle a cut of the link."""

    def note_heal(self) -> None:
        """Handle the end of a cut of one of its links."""


class SimulatedLinkDirection:
    """One direction of a link between two regions. `cuts`: number of cuts in effect; `pipes`: the connections
    that cross it.

    random: uniform in [0, 1), for losses and jitter.
    """

    def __init__(self, hop: Hop, line: LinkLine, random: Callable[[], float]) -> None:
        self.hop = hop
        self.random = random
        self.cuts = 0
        self.free_us = 0.0
        self._segments_us = 0.0  # when all single segments would have passed if there were no others
        self._deviation = 0.0  # of the last message, as a part of the jitter
        self.pipes: dict[Traversal, None] = {}
        self.change(line)

    def change(self, line: LinkLine) -> None:
        """Use these parameters from now on."""
        self.delay_us = line.delay_us
        self.us_per_byte = us_per_byte(line.rate_bits_per_s)
        self.loss = line.loss
        self.corrupt = line.corrupt
        self.bursts = line.bursts
        self.in_burst = False
        self._sent_us = line.sent_us
        self._delay_at_us = line.delay_at_us
        self._deviates = line.deviation
        self._jitter_us, self._jitter_correlation = line.jitter_us, line.jitter_correlation

    def take(self, now_us: int, size_bytes: int, came_us_per_byte: float = 0.0) -> float:
        """Send a message whose last bit is at the link's beginning now; return when the link has taken it.

        A single segment does not wait for all long messages of other connections. came_us_per_byte: time per
        byte on the link before; it leaves as it arrives.
        """
        begin_us = max(self.free_us, now_us - size_bytes * came_us_per_byte)
        if self._sent_us is not None:
            done_us = max(self._sent_us(begin_us, size_bytes), float(now_us))
        else:
            done_us = max(begin_us + size_bytes * self.us_per_byte, float(now_us))
        self.free_us = done_us
        if size_bytes > SEGMENT_BYTES + HEADERS_BYTES:
            return done_us
        segments_us = max(self._segments_us, now_us) + size_bytes * self.us_per_byte
        self._segments_us = segments_us
        return min(done_us, max(segments_us, now_us + QUEUE_US + size_bytes * self.us_per_byte))

    def delay_at_us(self, now_us: int) -> int:
        """Return the delay of a message that enters now."""
        return self.delay_us if self._delay_at_us is None else self._delay_at_us(now_us)

    def travels_us(self, now_us: int) -> int:
        """Return the propagation time of a message that enters now: the delay and the jitter."""
        delay_us = self.delay_at_us(now_us)
        if not self._jitter_us:
            return delay_us
        drawn = self.random()
        new = 2 * drawn - 1 if self._deviates is None else self._deviates(drawn)
        self._deviation = new + self._jitter_correlation * (self._deviation - new)
        return max(0, delay_us + int(self._deviation * self._jitter_us))

    def loses(self, segments: int) -> bool:
        """Return whether at least one of this number of segments is lost or damaged."""
        if self.corrupt and self.random() >= (1 - self.corrupt) ** segments:
            return True
        if self.bursts is None:
            return self.random() >= (1 - self.loss) ** segments
        begins, ends = self.bursts
        lost = False
        for _ in range(segments):
            lost = lost or self.in_burst
            self.in_burst = self.random() >= ends if self.in_burst else self.random() < begins
        return lost
