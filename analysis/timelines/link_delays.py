"""What one direction of a link really did to its packets, from both sides of its middle: delay, loss, rate.

The same packet is found on both sides by (flow, sequence number, payload length, IP id). Only TCP segments
with payload take part, and a key that one side has more than once is dropped: pure ACKs repeat the key, and
matching them crosswise once gave a delay of -1,418 ms. Behind a rate limiter offloaded frames are cut up and
do not match; their bytes still add up, so loss is counted in bytes: what did not match on the near side less
what did not match on the far side.

Everything is told apart by the period of the direction's configuration in which a packet *entered* the link.
Packets that entered within `GUARD_NS` of a period's borders, or so late that they were in flight at its end,
belong to none: what a cut swallows is no infidelity. A cut period must let nothing through; what it does is
counted as leaked.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analysis.timelines.arrays import Ints
from analysis.timelines.percentiles import weighted
from analysis.timelines.periods import Period

Bools = npt.NDArray[np.bool_]

GUARD_NS = 10_000_000
"""A change takes hold and heals within 10 ms of its applied time (DESIGN, Links)."""
SECOND_NS = 1_000_000_000
QUEUE_DEFAULT_NS = 100_000_000
FRAME_HEADER_BYTES = 66
"""Ethernet, IPv4, and TCP with time stamps: what each segment of an offloaded frame carries of its own."""


@dataclass(frozen=True, slots=True)
class Side:
    """Packets with payload on one side, as parallel arrays. `key` has a column per part of the key."""

    t_ns: Ints
    wire_bytes: Ints
    key: Ints


@dataclass(frozen=True, slots=True)
class Delays:
    """One-way delays of the packets seen on both sides."""

    min_ns: int
    p50_ns: int
    p99_ns: int


@dataclass(frozen=True, slots=True)
class Behaviour:
    """One period of one direction, measured; None where nothing was there to be measured."""

    packets: int
    matched: int
    leaked: int
    delays: Delays | None = None
    loss: float | None = None
    rate_bits_per_s: float | None = None


def wire_bytes(captured: Ints, payload: Ints, mtu_bytes: int) -> Ints:
    """Bytes on the wire with the headers of every segment that an offloaded frame stands for."""
    segment = mtu_bytes - (FRAME_HEADER_BYTES - 14)
    extra = np.maximum(-(-payload // segment) - 1, 0)
    whole: Ints = captured + extra * FRAME_HEADER_BYTES
    return whole


def match(near: Side, far: Side) -> tuple[Ints, Ints]:
    """Indices of packets on the near side, and of the same packets on the far side; repeated keys dropped."""
    both = np.concatenate((near.key, far.key))
    if not len(both):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    order = np.lexsort(both.T)
    ordered = both[order]
    same = np.append((ordered[1:] == ordered[:-1]).all(axis=1), False)
    starts = np.concatenate(([True], ~same[:-1]))
    sizes = np.diff(np.append(np.flatnonzero(starts), len(order)))
    pairs = np.flatnonzero(starts)[sizes == 2]
    first, second = order[pairs], order[pairs + 1]
    across = (first < len(near.key)) & (second >= len(near.key))  # lexsort is stable: near comes first
    return first[across], second[across] - len(near.key)


def measure(near: Side, far: Side, periods: Sequence[Period], span_ns: tuple[int, int]) -> list[Behaviour]:
    """One Behaviour per period. span_ns: when both sides were being captured."""
    near_index, far_index = match(near, far)
    delay_ns = far.t_ns[far_index] - near.t_ns[near_index]
    near_left, far_left = np.ones(len(near.t_ns), bool), np.ones(len(far.t_ns), bool)
    near_left[near_index], far_left[far_index] = False, False
    found = []
    for period in periods:
        start_ns, end_ns = bounds(period, span_ns)
        inside = (near.t_ns >= start_ns) & (near.t_ns < end_ns)
        mine = inside[near_index]
        if not period.up:
            leaked = int(mine.sum())
            found.append(Behaviour(int(inside.sum()), leaked, leaked))
            continue
        came = (far.t_ns >= start_ns + period.delay_us * 1000) & (far.t_ns < end_ns + period.delay_us * 1000)
        sent_bytes = int(near.wire_bytes[inside].sum())
        missing = int(near.wire_bytes[inside & near_left].sum()) - int(far.wire_bytes[came & far_left].sum())
        behaviour = Behaviour(
            packets=int(inside.sum()),
            matched=int(mine.sum()),
            leaked=0,
            delays=_delays(delay_ns[mine]),
            loss=max(0, missing) / sent_bytes if sent_bytes else None,
            rate_bits_per_s=_peak_rate(far, came),
        )
        found.append(behaviour)
    return found


def bounds(period: Period, span_ns: tuple[int, int]) -> tuple[int, int]:
    """From when until when a packet that enters the link is surely treated as this period says."""
    start_ns = span_ns[0] if period.start_ns is None else max(period.start_ns + GUARD_NS, span_ns[0])
    end_ns = span_ns[1] if period.end_ns is None else min(period.end_ns, span_ns[1])
    flight_ns = (period.delay_us + period.jitter_us) * 1000 + queue_ns(period) if period.up else 0
    return start_ns, max(start_ns, end_ns - flight_ns - GUARD_NS)


def queue_ns(period: Period) -> int:
    """The longest that a packet can wait for the rate: a full queue, or the round trip (at least 100 ms) that
    the links allow for where no queue is configured; 0 without a rate.
    """
    if not period.rate_bits_per_s:
        return 0
    if not period.queue_packets:
        return max(2 * period.delay_us * 1000, QUEUE_DEFAULT_NS)
    return int(period.queue_packets * period.mtu_bytes * 8 * SECOND_NS / period.rate_bits_per_s)


def _delays(delay_ns: Ints) -> Delays | None:
    ones = np.ones(len(delay_ns), np.int64)
    p50_ns, p99_ns = weighted(delay_ns, ones, 50), weighted(delay_ns, ones, 99)
    return None if p50_ns is None or p99_ns is None else Delays(int(delay_ns.min()), p50_ns, p99_ns)


def _peak_rate(far: Side, came: Bools) -> float | None:
    """Bits a second in the busiest second."""
    t_ns = far.t_ns[came]
    if not len(t_ns):
        return None
    seconds = np.bincount((t_ns - t_ns.min()) // SECOND_NS, far.wire_bytes[came])
    return float(seconds.max()) * 8
