"""What one direction of a link really did to its packets, from both sides of its middle: delay, loss, rate.

A frame that was offloaded counts as the MTU-sized segments that it stands for, since a rate limiter cuts it
up: each has its own sequence number and IP id. The same segment is found on both sides by (flow, sequence
number, payload length, IP id). Only TCP segments with payload take part, and a key that one side has more
than once is dropped: pure ACKs repeat the key, and matching them crosswise once gave a delay of -1,418 ms.

A rate makes packets wait for each other. How long is computed from when they entered: each leaves after the
one before it, and takes its size divided by the rate. What a packet took beyond that and the configured delay
is its *excess*: what the link did that nobody asked for.

Everything is told apart by the period of the direction's configuration in which a packet *entered* the link.
Packets that entered within `GUARD_NS` of a period's borders, or so late that they were in flight at its end,
belong to none: what a cut swallows is no infidelity. A cut period must let nothing through; what it does is
counted as leaked.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from analysis.timelines.arrays import Ints, ints
from analysis.timelines.percentiles import weighted
from analysis.timelines.periods import Period

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

GUARD_NS = 10_000_000
"""A change takes hold and heals within 10 ms of its applied time (DESIGN, Links)."""
SECOND_NS = 1_000_000_000
QUEUE_DEFAULT_NS = 100_000_000
ETHERNET_BYTES = 14
PROTO_TCP = 6
KEY_COLUMNS = (
    "wire_length", "src_lo", "dst_lo", "sport", "dport", "proto", "seq", "ip_id", "payload_length",
    "payload_offset",
)  # fmt: skip
"""What `segments` needs of packets."""
SEQUENCE_NUMBERS, IP_IDS = 1 << 32, 1 << 16


@dataclass(frozen=True, slots=True)
class Side:
    """Segments on one side in order of time, as parallel arrays.

    key: a column per part of the key. data: whether it is a TCP segment with payload.
    """

    t_ns: Ints
    wire_bytes: Ints
    key: Ints
    data: Bools


@dataclass(frozen=True, slots=True)
class Delays:
    """Of the segments seen on both sides."""

    min_ns: int
    p50_ns: int
    p99_ns: int


@dataclass(frozen=True, slots=True)
class Behaviour:
    """One period of one direction, measured; None where nothing was there to be measured."""

    packets: int  # segments with payload that entered
    matched: int
    leaked: int
    delays: Delays | None = None
    excess: Delays | None = None
    loss: float | None = None
    rate_bits_per_s: float | None = None
    clocks: "Uncertain | None" = None  # where two machines' clocks measured it


@dataclass(frozen=True, slots=True)
class Uncertain:
    """What is sure of delays that two clocks measured: each packet's has its bar."""

    bar_ns: int  # in the median
    least_ns: int  # some packet took no more than this, whatever the clocks showed
    excess: Delays  # packets took at least this beyond what was asked for


@dataclass(frozen=True, slots=True)
class Segments:
    """The MTU-sized segments that some packets stand for. row: which packet each is of."""

    row: Ints
    wire_bytes: Ints
    key: Ints
    data: Bools


def segments(packets: Mapping[str, Ints], mtu_bytes: int) -> Segments:
    """The segments of packets, in their order. packets: columns of PACKETS, among them `KEY_COLUMNS`."""
    payload, header = (packets[name].astype(np.int64) for name in ("payload_length", "payload_offset"))
    data = (payload > 0) & (packets["proto"] == PROTO_TCP)
    segment = np.maximum(mtu_bytes + ETHERNET_BYTES - header, 1)
    pieces = np.where(data, -(-payload // segment), 1)
    row = np.repeat(np.arange(len(pieces)), pieces)
    number = np.arange(len(row)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    size = np.minimum(segment[row], payload[row] - number * segment[row])
    flow = [packets[name][row].astype(np.int64) for name in ("src_lo", "dst_lo", "sport", "dport")]
    seq = (packets["seq"][row] + number * segment[row]) % SEQUENCE_NUMBERS
    ip_id = (packets["ip_id"][row] + number) % IP_IDS
    return Segments(
        row=row,
        wire_bytes=np.where(data[row], size + header[row], packets["wire_length"][row]),
        key=np.stack([*flow, seq, size, ip_id], axis=1),
        data=data[row],
    )


def side(packets: pa.Table, mtu_bytes: int) -> Side:
    """The segments of some packets (rows with `crossings.PACKET_COLUMNS`)."""
    packets = packets.sort_by("t_ns")
    found = segments({name: ints(packets, name) for name in KEY_COLUMNS}, mtu_bytes)
    return Side(ints(packets, "t_ns")[found.row], found.wire_bytes, found.key, found.data)


def match(near: Side, far: Side) -> tuple[Ints, Ints]:
    """Indices of segments on the near side, and of the same ones on the far side; repeated keys dropped."""
    here, there = np.flatnonzero(near.data), np.flatnonzero(far.data)
    first, second = same(near.key[here], far.key[there])
    return here[first], there[second]


def same(near: Ints, far: Ints) -> tuple[Ints, Ints]:
    """Rows of keys that are there once on either side, and where; in no order.

    They are sorted by a hash, which is ten times as fast as by all columns, and compared afterwards.
    """
    hashes = _hashes(np.concatenate((near, far)))
    order = np.argsort(hashes, kind="stable")  # so that near comes first
    ordered = hashes[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1]))) if len(order) else order
    pairs = starts[np.diff(np.append(starts, len(order))) == 2]
    first, second = order[pairs], order[pairs + 1] - len(near)
    across = (first < len(near)) & (second >= 0)
    first, second = first[across], second[across]
    equal = (near[first] == far[second]).all(axis=1)
    return first[equal], second[equal]


def _hashes(keys: Ints) -> npt.NDArray[np.uint64]:
    """A number for each row, by the steps of MurmurHash3's mixer (A. Appleby, fmix64) for each column."""
    found = np.zeros(len(keys), np.uint64)
    for column in keys.T:
        found ^= column.astype(np.uint64)
        for multiplier in _MIX:
            found ^= found >> np.uint64(33)
            found *= np.uint64(multiplier)
        found ^= found >> np.uint64(33)
    return found


_MIX = (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53)


def measure(
    near: Side,
    far: Side,
    periods: Sequence[Period],
    span_ns: tuple[int, int],
    bars: Callable[[Ints], Floats] | None = None,
) -> list[Behaviour]:
    """One Behaviour per period. span_ns: when both sides were being captured. bars: by how much delays of
    these times may be wrong, where two clocks measured them.
    """
    near_index, far_index = match(near, far)
    delay_ns = far.t_ns[far_index] - near.t_ns[near_index]
    near_left, far_left = near.data.copy(), far.data.copy()
    near_left[near_index], far_left[far_index] = False, False
    found = []
    for period in periods:
        start_ns, end_ns = bounds(period, span_ns)
        inside = near.data & (near.t_ns >= start_ns) & (near.t_ns < end_ns)
        mine = inside[near_index]
        if not period.up:
            leaked = int(mine.sum())
            found.append(Behaviour(int(inside.sum()), leaked, leaked))
            continue
        wait_ns = waits(near, ~near_left, period)[near_index]
        out_ns = (start_ns + period.delay_us * 1000, end_ns + period.delay_us * 1000 + queue_ns(period))
        came = (far.t_ns >= out_ns[0]) & (far.t_ns < out_ns[1])
        sent, missing = int(inside.sum()), int((inside & near_left).sum()) - int((came & far_left).sum())
        excess_ns = (delay_ns - wait_ns - period.delay_us * 1000)[mine]
        behaviour = Behaviour(
            packets=sent,
            matched=int(mine.sum()),
            leaked=0,
            delays=_delays(delay_ns[mine]),
            excess=_delays(excess_ns),
            loss=max(0, missing) / sent if sent else None,
            rate_bits_per_s=_peak_rate(far, came),
            clocks=_uncertain(delay_ns[mine], excess_ns, bars(near.t_ns[near_index][mine])) if bars else None,
        )
        found.append(behaviour)
    return found


def waits(near: Side, passed: Bools, period: Period) -> Ints:
    """How long each segment takes to leave at the period's rate, behind those before it that came through."""
    wait_ns = np.zeros(len(near.t_ns), np.int64)
    if not period.rate_bits_per_s:
        return wait_ns
    start_ns, end_ns = (period.start_ns or 0), period.end_ns
    held = passed & (near.t_ns >= start_ns)
    held = held & (near.t_ns < end_ns) if end_ns is not None else held
    t_ns = near.t_ns[held]
    service_ns = near.wire_bytes[held] * 8 * SECOND_NS // period.rate_bits_per_s
    served_ns = np.cumsum(service_ns)
    if len(t_ns):
        wait_ns[held] = served_ns + np.maximum.accumulate(t_ns - served_ns + service_ns) - t_ns
    return wait_ns


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


def _uncertain(delay_ns: Ints, excess_ns: Ints, bar_ns: Floats) -> Uncertain | None:
    bar = np.ceil(bar_ns).astype(np.int64)
    excess = _delays(excess_ns - bar)
    if excess is None:
        return None
    return Uncertain(int(np.median(bar)), int((delay_ns + bar).min()), excess)


def _peak_rate(far: Side, came: Bools) -> float | None:
    """Bits a second in the busiest second."""
    t_ns = far.t_ns[came]
    if not len(t_ns):
        return None
    seconds = np.bincount((t_ns - t_ns.min()) // SECOND_NS, far.wire_bytes[came])
    return float(seconds.max()) * 8
