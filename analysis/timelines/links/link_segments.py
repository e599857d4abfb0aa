"""The MTU-sized segments that cross a link, and their matching on both sides of its emulator.

An offloaded frame counts as the segments that it contains, since a rate or a loss splits it: each segment
has its own sequence number and IP id. A segment is identified on both sides by (flow, sequence number,
acknowledgement, payload length, IP id, digest of a UDP payload: the IP ids of bundled datagrams overlap, and
16 bits are used again after a while). A segment that occurs once on the near side and twice on the far one
was duplicated. Any other key that occurs more than once on one side matches nothing: packets without an IP id
of their own repeat the key, and matching them crosswise once gave a delay of -1,418 ms. Such segments are
*unclear*. One flipped bit changes at most one part of the key, so a segment that left with a wrong checksum
is the one that entered and equals it in all other parts.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from analysis.arrays import Bools, Ints, begins, ints, offsets
from analysis.capture.pcap.fields import TCP
from topologies.link_parameters import ETHERNET_BYTES

KEY_COLUMNS = (
    "wire_length", "src_lo", "dst_lo", "sport", "dport", "proto", "seq", "ack", "ip_id", "payload_length",
    "payload_offset", "digest",
)  # fmt: skip
"""Columns of packets that `segments` needs."""
SEQUENCE_NUMBERS, IP_IDS = 1 << 32, 1 << 16


@dataclass(frozen=True, slots=True)
class LinkSide:
    """Segments on one side, sorted by time, as parallel arrays.

    key: a column per part of the key. frame: the frame that each was part of. checksum: as in PACKETS.
    """

    t_ns: Ints
    wire_bytes: Ints
    key: Ints
    frame: Ints
    checksum: Ints


@dataclass(frozen=True, slots=True)
class LinkSegments:
    """The segments of some packets. row: the packet of each."""

    row: Ints
    wire_bytes: Ints
    key: Ints


@dataclass(frozen=True, slots=True)
class SegmentMatch:
    """Indices of segments on the near side and of the same ones on the far side, in order of the near side.
    Also the near segments with an ambiguous key, and the far segments that did not enter.

    copied, copies: of duplicated segments, and of their second arrivals on the far side.
    """

    near: Ints
    far: Ints
    unclear: Bools
    strays: Ints  # indices on the far side
    copied: Ints
    copies: Ints


def segments(packets: Mapping[str, Ints], mtu_bytes: int | Ints) -> LinkSegments:
    """Return the segments of packets, in their order. packets: columns of PACKETS, among them
    `KEY_COLUMNS`. mtu_bytes: of all packets, or of each.
    """
    payload, header = (packets[name].astype(np.int64) for name in ("payload_length", "payload_offset"))
    data = (payload > 0) & (packets["proto"] == TCP)
    segment = np.maximum(mtu_bytes + ETHERNET_BYTES - header, 1)
    intervals = np.where(data, -(-payload // segment), 1)
    row = np.repeat(np.arange(len(intervals)), intervals)
    number = offsets(intervals)
    size = np.minimum(segment[row], payload[row] - number * segment[row])
    flow = [packets[name][row].astype(np.int64) for name in ("src_lo", "dst_lo", "sport", "dport")]
    seq = (packets["seq"][row] + number * segment[row]) % SEQUENCE_NUMBERS
    ack = packets["ack"][row].astype(np.int64)
    ip_id = (packets["ip_id"][row] + number) % IP_IDS
    return LinkSegments(
        row=row,
        wire_bytes=np.where(data[row], size + header[row], packets["wire_length"][row]),
        key=np.stack([*flow, seq, ack, size, ip_id, packets["digest"][row]], axis=1),
    )


def link_side(packets: pa.Table, mtu_bytes: int) -> LinkSide:
    """Return the segments of some packets (rows with `traversals.PACKET_COLUMNS`)."""
    packets = packets.sort_by("t_ns")
    found = segments({name: ints(packets, name) for name in KEY_COLUMNS}, mtu_bytes)
    t_ns, checksum = (ints(packets, name)[found.row] for name in ("t_ns", "checksum"))
    return LinkSide(t_ns, found.wire_bytes, found.key, found.row, checksum)


def match(near: LinkSide, far: LinkSide) -> SegmentMatch:
    """Return pairs of the same segment as seen on both sides of a link."""
    first, second, repeated, (copied, copies) = _same(near.key, far.key)
    unclear, came = repeated[: len(near.key)], repeated[len(near.key) :].copy()
    came[second] = came[copies] = True
    damaged = np.flatnonzero(~came & (far.checksum < 0))
    if damaged.size and first.size:
        origin = _origins(near, far, (first, second), damaged)
        is_known = (origin >= 0) & ~unclear[origin]
        gone = np.ones(len(near.key), np.bool_)
        gone[first] = False
        here, there = origin[is_known], damaged[is_known]
        is_first = gone[here] & ~_repeats(here)
        first, second = np.append(first, here[is_first]), np.append(second, there[is_first])
        is_copy = ~is_first & ~np.isin(here, copied)
        is_copy[is_copy] = ~_repeats(here[is_copy])
        copied, copies = np.append(copied, here[is_copy]), np.append(copies, there[is_copy])
        came[second] = came[copies] = True
    order = np.argsort(first, kind="stable")
    first, second = first[order], second[order]
    place = np.searchsorted(first, copied)  # the damaged one of two arrivals may be the earlier one
    second[place], copies = np.minimum(second[place], copies), np.maximum(second[place], copies)
    return SegmentMatch(first, second, unclear, np.flatnonzero(~came), copied, copies)


def _origins(near: LinkSide, far: LinkSide, pairs: tuple[Ints, Ints], damaged: Ints) -> Ints:
    """Return for each damaged far segment the near one that differs in one part of the key only, or -1.

    If several do, it is the one nearest to its place in the order of departure, as the segments that arrived
    before and after it tell. (Times of departure do not suffice: datagrams sent together have one.)
    """
    order = np.lexsort((pairs[0], far.t_ns[pairs[1]]))
    sent, arrived_ns = pairs[0][order], far.t_ns[pairs[1]][order]
    at_ns, last = far.t_ns[damaged], len(sent) - 1
    before = np.maximum(np.searchsorted(arrived_ns, at_ns, "left") - 1, 0)
    after = np.minimum(np.searchsorted(arrived_ns, at_ns, "right"), last)
    part_passed = (at_ns - arrived_ns[before]) / np.maximum(arrived_ns[after] - arrived_ns[before], 1)
    due = sent[before] + part_passed * (sent[after] - sent[before])
    found = np.full(len(damaged), -1)
    for part in reversed(range(near.key.shape[1])):
        rest = np.flatnonzero(found < 0)
        if not rest.size:
            break
        known, wanted = (hashes(np.delete(key, part, 1)) for key in (near.key, far.key[damaged[rest]]))
        order = np.argsort(known, kind="stable")
        first, end = (np.searchsorted(known[order], wanted, side) for side in ("left", "right"))
        for place in np.flatnonzero(first < end):
            alike = order[first[place] : end[place]]
            found[rest[place]] = alike[np.abs(alike - due[rest[place]]).argmin()]
    return found


def _repeats(values: Ints) -> Bools:
    """Return which values occurred before."""
    found = np.ones(len(values), np.bool_)
    found[np.unique(values, return_index=True)[1]] = False
    return found


def with_copies(near: LinkSide, far: LinkSide, found: SegmentMatch) -> tuple[LinkSide, SegmentMatch, Bools]:
    """Return near segments with a copy behind each duplicated one, their match, and which are copies.

    A segment that was duplicated or damaged left as a frame of its own.
    """
    alone = np.zeros(len(near.t_ns), np.bool_)
    damaged = (far.checksum[found.far] < 0) & (near.checksum[found.near] >= 0)
    alone[found.near[damaged]] = alone[found.copied] = True
    if not alone.any():
        return near, found, np.zeros(len(near.t_ns), np.bool_)
    counts = np.ones(len(near.t_ns), np.int64)
    counts[found.copied] = 2
    row, place = np.repeat(np.arange(len(counts)), counts), np.cumsum(counts) - counts
    starts = begins(near.frame[row]) | alone[row]
    starts[1:] |= alone[row][:-1]
    there = np.concatenate((place[found.near], place[found.copied] + 1))
    order = np.argsort(there, kind="stable")
    both = replace(
        found,
        near=there[order],
        far=np.concatenate((found.far, found.copies))[order],
        unclear=found.unclear[row],
    )
    columns = near.t_ns, near.wire_bytes, near.key, near.checksum
    t_ns, wire_bytes, key, checksum = (column[row] for column in columns)
    return LinkSide(t_ns, wire_bytes, key, np.cumsum(starts), checksum), both, offsets(counts) > 0


def same(near: Ints, far: Ints) -> tuple[Ints, Ints]:
    """Return the rows of keys that occur once on either side, in no order."""
    first, second, *_ = _same(near, far)
    return first, second


def _same(near: Ints, far: Ints) -> tuple[Ints, Ints, Bools, tuple[Ints, Ints]]:
    """Return as `same`, and which rows, near before far, have a key that occurs more than once on one side.

    Rows of a key that occurs once near and twice far are not among these: the first of them match, and the
    near one is returned with the second. Rows are sorted by a hash, which is ten times as fast as by all
    columns, and compared afterwards.
    """
    found = hashes(np.concatenate((near, far)))
    order = np.argsort(found, kind="stable")  # so that near comes first
    ordered = found[order]
    starts = np.flatnonzero(begins(ordered))
    sizes = np.diff(np.append(starts, len(order)))
    pairs = starts[sizes == 2]
    first, second = order[pairs], order[pairs + 1] - len(near)
    across = (first < len(near)) & (second >= 0)
    threes = starts[sizes == 3]
    twice = threes[(order[threes] < len(near)) & (order[threes + 1] >= len(near))]
    repeated = np.zeros(len(order), np.bool_)
    repeated[order] = np.repeat(sizes > 2, sizes)
    repeated[order[pairs[~across]]] = repeated[order[pairs[~across] + 1]] = True
    repeated[order[twice[:, None] + np.arange(3)]] = False
    copied, came, again = (order[twice + place] for place in range(3))
    first, second = np.append(first[across], copied), np.append(second[across], came - len(near))
    equal = (near[first] == far[second]).all(axis=1)
    return first[equal], second[equal], repeated, (copied, again - len(near))


def hashes(keys: Ints) -> npt.NDArray[np.uint64]:
    """Return a hash of each row, by MurmurHash3's mixer (A. Appleby, fmix64) for each column."""
    found = np.zeros(len(keys), np.uint64)
    for column in keys.T:
        found ^= column.astype(np.uint64)
        for multiplier in _MIX:
            found ^= found >> np.uint64(33)
            found *= np.uint64(multiplier)
        found ^= found >> np.uint64(33)
    return found


_MIX = (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53)
