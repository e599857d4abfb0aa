"""Where the first message begins, in a TCP direction that is seen from its middle on.

Bytes of the first segments are put in order, and every place that looks like a frame's header is tried: it
counts if the chain of frame lengths from there holds for a few frames more, or comes out exactly at the end
of what is there. What lies before it is taken away from the segments, and the one that it is in is marked as
the connection's first, so that decoding begins there.

A guess stays a guess: events whose payload holds whole chains of frames could fool it. The analysis of the
whole run, which reads from the beginning, does not guess.
"""

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from analysis.capture.pcap.files.byte_ranges import Segments
from analysis.capture.pcap.files.format import Bytes, Integers
from analysis.capture.pcap.reassemble import SYN, distance
from node.core.errors import RemoteProtocolError
from node.core.framing import FRAME_LIMIT_BYTES, HEADER_BYTES, LENGTH_BYTES, VERSION, read_header

CHAIN = 3  # frames, one after the other, that are enough
SEARCH_BYTES = 2 * FRAME_LIMIT_BYTES
FIRST_BYTES = 1 << 15  # tried alone first: mostly a message begins there
SEQUENCE_MASK = 0xFFFF_FFFF


def begin_at_message(data: Bytes, segments: Segments, types: Collection[int]) -> tuple[Segments, int | None]:
    """Leave out of a direction what comes before its first whole message.

    segments: one or more. types: of messages. Returns what is left, and the TCP sequence number of its first
    byte; nothing and None where no message begins.
    """
    syns = np.flatnonzero(segments.flags & SYN)
    if syns.size:  # connections before do not count
        return segments.take(slice(int(syns[-1]), None)), int(segments.seq[syns[-1]] + 1) & SEQUENCE_MASK
    positions = np.cumsum(distance(np.diff(segments.seq, prepend=segments.seq[:1])))
    begin = _first_message(data, segments, positions, types)
    if begin is None:
        return segments.take(slice(0)), None
    return _from(segments, positions, begin)


def begin_at_first(segments: Segments) -> tuple[Segments, int]:
    """A direction in which messages may begin anywhere, as those of programs, from its first byte or its last
    connection on; and the TCP sequence number of that byte.
    """
    syns = np.flatnonzero(segments.flags & SYN)
    if syns.size:
        return segments.take(slice(int(syns[-1]), None)), int(segments.seq[syns[-1]] + 1) & SEQUENCE_MASK
    positions = np.cumsum(distance(np.diff(segments.seq, prepend=segments.seq[:1])))
    return _from(segments, positions, int(positions.min()))


def _from(segments: Segments, positions: Integers, begin: int) -> tuple[Segments, int]:
    """What comes from a byte on, as if the connection began there; and its TCP sequence number."""
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
    data: Bytes, segments: Segments, positions: Integers, types: Collection[int]
) -> int | None:
    """Where a message begins, counted as `positions` are."""
    run, run_start, enough = bytearray(), 0, FIRST_BYTES
    for row in np.argsort(positions, kind="stable").tolist():
        skipped = run_start + len(run) - int(positions[row])
        if not run or skipped < 0:  # the first one, or a hole before this one
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
