"""The MTU-sized segments that cross a link, and their matching on both sides of its emulator.

An offloaded frame counts as the segments that it stands for, since a rate or a loss splits it: each segment
has its own sequence number and IP id. A segment is identified on both sides by (flow, sequence number,
acknowledgement, payload length, IP id, digest of a UDP payload: the IP ids of bundled datagrams overlap, and
16 bits are used again after a while). A key that occurs more than once on one side matches nothing: packets
without an IP id of their own repeat the key, and matching them crosswise once gave a delay of -1,418 ms. Such
segments are *unclear*.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from analysis.timelines.arrays import Bools, Ints, begins, ints, offsets
from topologies.link_parameters import ETHERNET_BYTES

PROTO_TCP = 6
KEY_COLUMNS = (
    "wire_length", "src_lo", "dst_lo", "sport", "dport", "proto", "seq", "ack", "ip_id", "payload_length",
    "payload_offset", "digest",
)  # fmt: skip
"""Columns of packets that `segments` needs."""
SEQUENCE_NUMBERS, IP_IDS = 1 << 32, 1 << 16


@dataclass(frozen=True, slots=True)
class LinkSide:
    """Segments on one side, sorted by time, as parallel arrays.

    key: a column per part of the key. frame: the frame that each was part of.
    """

    t_ns: Ints
    wire_bytes: Ints
    key: Ints
    frame: Ints


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
    """

    near: Ints
    far: Ints
    unclear: Bools
    strays: Ints  # indices on the far side


def segments(packets: Mapping[str, Ints], mtu_bytes: int) -> LinkSegments:
    """Return the segments of packets, in their order. packets: columns of PACKETS, among them
    `KEY_COLUMNS`.
    """
    payload, header = (packets[name].astype(np.int64) for name in ("payload_length", "payload_offset"))
    data = (payload > 0) & (packets["proto"] == PROTO_TCP)
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
    return LinkSide(ints(packets, "t_ns")[found.row], found.wire_bytes, found.key, found.row)


def match(near: LinkSide, far: LinkSide) -> SegmentMatch:
    """Return pairs of the same segment as seen on both sides of a link."""
    first, second, repeated = _same(near.key, far.key)
    order = np.argsort(first, kind="stable")
    unmatched = ~repeated[len(near.key) :]
    unmatched[second] = False
    return SegmentMatch(first[order], second[order], repeated[: len(near.key)], np.flatnonzero(unmatched))


def same(near: Ints, far: Ints) -> tuple[Ints, Ints]:
    """Return the rows of keys that occur once on either side, in no order."""
    first, second, _ = _same(near, far)
    return first, second


def _same(near: Ints, far: Ints) -> tuple[Ints, Ints, Bools]:
    """Return as `same`, and which rows, near before far, have a key that occurs more than once on one side.

    Rows are sorted by a hash, which is ten times as fast as by all columns, and compared afterwards.
    """
    hashes = _hashes(np.concatenate((near, far)))
    order = np.argsort(hashes, kind="stable")  # so that near comes first
    ordered = hashes[order]
    starts = np.flatnonzero(begins(ordered))
    sizes = np.diff(np.append(starts, len(order)))
    pairs = starts[sizes == 2]
    first, second = order[pairs], order[pairs + 1] - len(near)
    across = (first < len(near)) & (second >= 0)
    repeated = np.zeros(len(order), np.bool_)
    repeated[order] = np.repeat(sizes > 2, sizes)
    repeated[order[pairs[~across]]] = repeated[order[pairs[~across] + 1]] = True
    first, second = first[across], second[across]
    equal = (near[first] == far[second]).all(axis=1)
    return first[equal], second[equal], repeated


def _hashes(keys: Ints) -> npt.NDArray[np.uint64]:
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
