"""Where the records of a capture begin: the chain of record lengths, followed exactly and fast.

Each record's header says how long it is, so record n is only known after record n - 1: a plain loop does
about three million records a second. Here many lanes walk at once, one NumPy step for all. Where a lane
might start is guessed, but a guess is never believed: a lane counts only if the chain from the one before
lands exactly on its start, and is walked again from there otherwise. (A guess alone is not enough: a TCP
transfer of a pcap file holds perfectly plausible record headers.) So the result is that of the plain loop,
whatever is in the file.
"""

import struct
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice

import numpy as np

from analysis.pcap.format import RECORD_HEADER_BYTES, Bytes, Format, Integers

LANE_BYTES = 262_144
LANES_MIN = 8  # fewer are not worth the set-up
SEARCH_BYTES = 4_096  # of each lane for a plausible start; none found: the lane before walks on through it
CANDIDATES_MAX = 16
CHAIN = 3  # records that must look plausible, one after the other
_LENGTH_AT = 8


def walk(data: Bytes, start: int, stop: int, form: Format) -> tuple[Integers, int]:
    """Follow the chain from `start` (a record's beginning) while records begin before `stop`.

    Only lengths are looked at, so after a damaged header the chain is that of its wrong length. Returns the
    offsets of the records, of which only the last may reach beyond `stop`, and where the next would begin.
    """
    stop = min(stop, data.size - RECORD_HEADER_BYTES + 1)
    if stop - start < LANES_MIN * LANE_BYTES:
        return _walk_plainly(data, start, stop, form, frozenset())
    starts = np.array([start, *_lane_starts(data, start, stop, form)], np.int64)
    matrix, landings = _walk_lanes(data, starts, np.append(starts[1:], stop), form)
    if (landings[:-1] == starts[1:]).all():
        lanes, ends = matrix.T, np.append(starts[1:], stop)[:, None]
        return lanes[lanes < ends], int(landings[-1])
    plainly = partial(_walk_plainly, data, stop=stop, form=form)
    return _join(starts, matrix, landings, stop, plainly)


def _walk_plainly(
    data: Bytes, start: int, stop: int, form: Format, until: frozenset[int]
) -> tuple[Integers, int]:
    """Walk as the file format says, one record at a time, to `stop` or to an offset in `until`."""
    length_at = struct.Struct(form.order + "I").unpack_from
    buffer = data.data
    offsets: list[int] = []
    offset = start
    while offset < stop and offset not in until:
        offsets.append(offset)
        offset += RECORD_HEADER_BYTES + length_at(buffer, offset + _LENGTH_AT)[0]
    return np.array(offsets, np.int64), offset


def _walk_lanes(data: Bytes, starts: Integers, stops: Integers, form: Format) -> tuple[Integers, Integers]:
    """Walk all lanes in step. Row n of the matrix holds each lane's n-th offset; ended lanes repeat their
    last."""
    lengths = np.ndarray((data.size - 3,), form.order + "u4", data, strides=(1,))
    offsets = starts
    rows = []
    while (walking := offsets < stops).any():
        rows.append(offsets)
        reading = np.where(walking, offsets, starts) + _LENGTH_AT
        offsets = np.where(walking, offsets + lengths[reading] + RECORD_HEADER_BYTES, offsets)
    return np.stack(rows), offsets


def _join(
    starts: Integers,
    matrix: Integers,
    landings: Integers,
    stop: int,
    plainly: Callable[..., tuple[Integers, int]],
) -> tuple[Integers, int]:
    """Keep the lanes that the chain reaches, and walk plainly through those that it does not."""
    lanes = {int(start): lane for lane, start in enumerate(starts)}
    reachable = frozenset(lanes)
    pieces: list[Integers] = []
    offset = int(starts[0])
    while offset < stop:
        lane = lanes.get(offset)
        if lane is None:
            piece, offset = plainly(offset, until=reachable)
        else:
            end = stop if lane + 1 == starts.size else int(starts[lane + 1])
            piece, offset = matrix[matrix[:, lane] < end, lane], int(landings[lane])
        pieces.append(piece)
    return np.concatenate(pieces), offset


def _lane_starts(data: Bytes, start: int, stop: int, form: Format) -> Iterator[int]:
    """Guess a record's beginning near the beginning of each lane, in ascending order."""
    halves = np.ndarray((data.size - 1,), form.order + "u2", data, strides=(1,))
    high_at = 2 if form.order == "<" else 0  # the upper half of the seconds stays the same for 18 hours
    seconds_high = halves[start + high_at]
    for lane in range(start + LANE_BYTES, stop - SEARCH_BYTES, LANE_BYTES):
        same = halves[lane + high_at : lane + high_at + SEARCH_BYTES] == seconds_high
        candidates: Sequence[int] = (np.flatnonzero(same)[:CANDIDATES_MAX] + lane).tolist()
        found = (offset for offset in candidates if _plausible(data, offset, int(seconds_high), form))
        yield from islice(found, 1)


def _plausible(data: Bytes, offset: int, seconds_high: int, form: Format) -> bool:
    """Whether a few records seem to follow each other from here."""
    header = struct.Struct(form.order + "IIII")
    for _ in range(CHAIN):
        if offset + header.size > data.size:
            return False
        seconds, fraction, length, wire_length = header.unpack_from(data.data, offset)
        if seconds >> 16 != seconds_high or fraction >= form.fraction_max or length > form.record_bytes_max:
            return False
        if wire_length < length:
            return False
        offset += header.size + length
    return True
