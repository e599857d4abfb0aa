"""Where the first message begins, in a TCP direction that is seen from its middle on.

Bytes of the first segments are put in order, and every place that looks like a frame's header is tried: it
counts if the chain of frame lengths from there holds for a few frames more, or comes out exactly at the end
of what is there. What lies before it is taken away from the segments, and the one that it is in is marked as
the connection's first, so that decoding begins there.

A guess stays a guess: events whose payload holds whole chains of frames could fool it. The analysis of the
whole run, which reads from the beginning, does not guess.
"""

from collections.abc import Collection
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from analysis.capture.pcap.fields import Columns
from analysis.capture.pcap.format import Bytes, Integers
from analysis.capture.pcap.reassemble import SYN
from analysis.capture.pcap.streams import TCP, format_address
from node.core.errors import RemoteProtocolError
from node.core.framing import FRAME_LIMIT_BYTES, HEADER_BYTES, LENGTH_BYTES, VERSION, read_header

CHAIN = 3  # frames, one after the other, that are enough
SEARCH_BYTES = 2 * FRAME_LIMIT_BYTES
FIRST_BYTES = 1 << 15  # tried alone first: mostly a message begins there
_KEY = ("src_hi", "src_lo", "sport", "dst_hi", "dst_lo", "dport")

Direction: TypeAlias = tuple[str, int, str, int]
"""Source and destination, address and port each."""


def begin_at_messages(
    data: Bytes, columns: Columns, port: int, types: Collection[int]
) -> tuple[Columns, dict[Direction, int | None]]:
    """Leave out of each direction of this port what comes before its first whole message.

    columns: of packets in the order of capture. types: of messages. Returns the columns, and the TCP sequence
    number of each direction's first byte; None of one in which nothing begins, of which no payload is left.
    """
    at_port = (columns["proto"] == TCP) & ((columns["sport"] == port) | (columns["dport"] == port))
    rows = np.flatnonzero(at_port & ((columns["payload_length"] > 0) | (columns["flags"] & SYN != 0)))
    found = {name: values[rows] for name, values in columns.items()}
    keys = np.stack([found[name].astype(np.int64) for name in _KEY], axis=1)
    directions, groups = np.unique(keys, axis=0, return_inverse=True)
    order = np.argsort(groups.ravel(), kind="stable")
    bounds = np.flatnonzero(np.diff(groups.ravel()[order], prepend=-1, append=-1))
    bases: dict[Direction, int | None] = {}
    for number, (first, following) in enumerate(pairwise(bounds.tolist())):
        src_hi, src_lo, sport, dst_hi, dst_lo, dport = directions[number].tolist()
        ends = format_address(src_hi, src_lo), sport, format_address(dst_hi, dst_lo), dport
        bases[ends] = _begin(data, found, order[first:following], types)
    return found, bases


def _begin(data: Bytes, columns: Columns, rows: Integers, types: Collection[int]) -> int | None:
    """Take away what comes before the first message of one direction; its sequence number."""
    syns = np.flatnonzero(columns["flags"][rows] & SYN != 0)
    if syns.size:
        columns["payload_length"][rows[: syns[-1]]] = 0  # of connections before
        columns["flags"][rows[: syns[-1]]] &= ~SYN
        return int(columns["seq"][rows[syns[-1]]] + 1) & 0xFFFF_FFFF
    positions = unwrap(columns["seq"][rows].astype(np.int64))
    begin = _first_message(data, columns, rows, positions, types)
    length = columns["payload_length"][rows]
    if begin is None:
        columns["payload_length"][rows] = 0
        return None
    cut = np.clip(begin - positions, 0, length).astype(length.dtype)
    columns["payload_length"][rows] -= cut
    columns["payload_offset"][rows] += cut.astype(columns["payload_offset"].dtype)
    columns["seq"][rows] = (columns["seq"][rows] + cut) & 0xFFFF_FFFF
    opening = rows[np.flatnonzero((positions <= begin) & (positions + length > begin))[0]]
    base = int(columns["seq"][opening])
    columns["seq"][opening] = (base - 1) & 0xFFFF_FFFF  # as if the connection began with this segment
    columns["flags"][opening] |= SYN
    return base


def unwrap(seq: Integers) -> Integers:
    """Positions relative to the first: each is within 2 GiB of the one before, whichever way (RFC 9293)."""
    steps: Integers = np.diff(seq, prepend=seq[:1])
    positions: Integers = np.cumsum((steps + 0x8000_0000) % 0x1_0000_0000 - 0x8000_0000)
    return positions


def _first_message(
    data: Bytes, columns: Columns, rows: Integers, positions: Integers, types: Collection[int]
) -> int | None:
    """Where a message begins, counted as `positions` are."""
    at = columns["offset"][rows] + columns["payload_offset"][rows]
    captured = np.clip(
        columns["length"][rows].astype(np.int64) - columns["payload_offset"][rows],
        0,
        columns["payload_length"][rows],
    )
    run, run_start, enough = bytearray(), 0, FIRST_BYTES
    for row in np.argsort(positions, kind="stable").tolist():
        skipped = run_start + len(run) - int(positions[row])
        if not run or skipped < 0:  # the first one, or a hole before this one
            begin = _in_run(bytes(run), types)
            if begin is not None:
                return run_start + begin
            run, run_start, enough, skipped = bytearray(), int(positions[row]), FIRST_BYTES, 0
        first, last = int(at[row]) + skipped, int(at[row] + captured[row])
        run += data[first : max(first, last)].tobytes()
        if len(run) > SEARCH_BYTES:
            break
        if len(run) > enough:
            begin = _in_run(bytes(run), types)
            if begin is not None:
                return run_start + begin
            enough *= 8
    begin = _in_run(bytes(run), types)
    return None if begin is None else run_start + begin


def _in_run(content: bytes, types: Collection[int]) -> int | None:
    """The first place in bytes without a hole where a chain of frames begins."""
    if len(content) < HEADER_BYTES:
        return None
    octets = np.frombuffer(content, np.uint8)
    last = octets.size - HEADER_BYTES + 1
    likely = octets[LENGTH_BYTES : LENGTH_BYTES + last] == VERSION
    likely &= np.isin(octets[LENGTH_BYTES + 1 : LENGTH_BYTES + 1 + last], list(types))
    view = memoryview(content)
    return next((at for at in np.flatnonzero(likely).tolist() if _chain(view, at, types)), None)


def _chain(view: memoryview, at: int, types: Collection[int]) -> bool:
    for _ in range(CHAIN):
        if at + HEADER_BYTES > len(view):
            return False
        try:
            length, message_type = read_header(view, at, FRAME_LIMIT_BYTES)
        except RemoteProtocolError:
            return False
        if message_type not in types:
            return False
        at += length
        if at == len(view):
            return True
    return True
