"""Finds the first message in a TCP direction that is seen from its middle on.

The bytes of the first segments are put in order, and every place that looks like a frame header is tried. It
is accepted if the chain of frame lengths from there is valid for a few frames, or ends exactly at the end of
the bytes. Earlier bytes are removed from the segments, and the segment with the message is marked as the
connection's first, so that decoding begins there.

This is a heuristic: events whose payload contains chains of frames can mislead it. The analysis of the whole
run reads from the beginning and does not guess.
"""

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from analysis.capture.pcap.files.byte_ranges import TcpSegments
from analysis.capture.pcap.files.format import Bytes, Integers
from analysis.capture.pcap.reassemble import SYN, distance
from node.core.errors import RemoteProtocolError
from node.core.framing import FRAME_LIMIT_BYTES, HEADER_BYTES, LENGTH_BYTES, VERSION, read_header

CHAIN = 3  # consecutive valid frames that are sufficient
SEARCH_BYTES = 2 * FRAME_LIMIT_BYTES
FIRST_BYTES = 1 << 15  # searched first: usually a message begins there
SEQUENCE_MASK = 0xFFFF_FFFF


def begin_at_message(
    data: Bytes, segments: TcpSegments, types: Collection[int]
) -> tuple[TcpSegments, int | None]:
    """Remove the bytes before a direction's first whole message.

    segments: one or more. types: message types. Returns the remaining segments, and the TCP sequence number
    of their first byte; no segments and None if no message begins.
    """
    syns = np.flatnonzero(segments.flags & SYN)
    if syns.size:  # ignore earlier connections
        return segments.take(slice(int(syns[-1]), None)), int(segments.seq[syns[-1]] + 1) & SEQUENCE_MASK
    positions = np.cumsum(distance(np.diff(segments.seq, prepend=segments.seq[:1])))
    begin = _first_message(data, segments, positions, types)
    if begin is None:
        return segments.take(slice(0)), None
    return _from(segments, positions, begin)


def begin_at_first_byte(segments: TcpSegments) -> tuple[TcpSegments, int]:
    """Return the last connection of a direction in which messages may begin anywhere (those of programs), and
    the TCP sequence number of its first byte.
    """
    syns = np.flatnonzero(segments.flags & SYN)
    if syns.size:
        return segments.take(slice(int(syns[-1]), None)), int(segments.seq[syns[-1]] + 1) & SEQUENCE_MASK
    positions = np.cumsum(distance(np.diff(segments.seq, prepend=segments.seq[:1])))
    return _from(segments, positions, int(positions.min()))


def _from(segments: TcpSegments, positions: Integers, begin: int) -> tuple[TcpSegments, int]:
    """Return the segments from a byte on, as if the connection began there; and its TCP sequence number."""
    skipped = np.clip(begin - positions, 0, segments.length)
    seq, flags = (segments.seq + skipped) & SEQUENCE_MASK, segments.flags.copy()
    opening = np.flatnonzero((positions <= begin) & (positions + segments.length > begin))[0]
    base = int(seq[opening])
    seq[opening] = (base - 1) & SEQUENCE_MASK  # as if the connection began with this segment
    flags[opening] |= SYN
    rest = replace(
        segments,
        seq=seq,
        flags=flags,
        at=segments.at + skipped,
        length=segments.length - skipped,
        captured=np.maximum(segments.captured - skipped, 0),
    )
    return rest.take(rest.length > 0), base


def _first_message(
    data: Bytes, segments: TcpSegments, positions: Integers, types: Collection[int]
) -> int | None:
    """Return the position of the first message, on the scale of `positions`; None if there is none."""
    run, run_start, enough = bytearray(), 0, FIRST_BYTES
    for row in np.argsort(positions, kind="stable").tolist():
        skipped = run_start + len(run) - int(positions[row])
        if not run or skipped < 0:  # the first segment, or a gap before this one
            begin = _in_run(bytes(run), types)
            if begin is not None:
                return run_start + begin
            run, run_start, enough, skipped = bytearray(), int(positions[row]), FIRST_BYTES, 0
        first, last = int(segments.at[row]) + skipped, int(segments.at[row] + segments.captured[row])
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
    """Return the first offset in contiguous bytes at which a chain of frames begins."""
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
