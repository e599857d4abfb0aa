"""Finds the offsets of a capture's records by following the chain of record lengths, exactly and fast.

Each record's header (in pcapng, each block's) has its length, so record n is only known after record n - 1; a
plain loop reads about three million records per second. Here several lanes walk in parallel, with one NumPy
step for all. The start of a lane is guessed and then verified: a lane is used only if the chain of the
previous lane lands exactly on its start; otherwise that part is walked again. (A guess alone is not enough: a
TCP transfer of a pcap file contains plausible record headers.) So the result always equals that of the plain
loop.
"""

import struct
from array import array
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice

import numpy as np

from analysis.capture.pcap.files.format import PCAPNG, Bytes, Format, Integers

LANE_BYTES = 262_144
LANES_MIN = 8  # fewer do not repay the set-up
SEARCH_BYTES = 4_096  # searched for a plausible start of a lane; if none is found, the previous lane goes on
CANDIDATES_MAX = 16
CHAIN = 3  # consecutive records that must look plausible
_PACKET_BLOCKS = (6, 3, 2)  # types of pcapng's packet blocks: enhanced, simple, obsolete


def walk(data: Bytes, start: int, stop: int, form: Format) -> tuple[Integers, int]:
    """Follow the chain from `start` (a record's beginning) while records begin before `stop`.

    Only lengths are read, so a damaged header continues the chain with its wrong length. Returns the offsets
    of the records, and the offset of the next one. Only the last record may end after `stop`.
    """
    stop = min(stop, data.size - form.chain.header_bytes + 1)
    if stop - start < LANES_MIN * LANE_BYTES:
        return _walk_plainly(data, start, stop, form, frozenset())
    starts = np.array([start, *_lane_starts(data, start, stop, form)], np.int64)
    matrix, landings = _walk_lanes(data, starts, np.append(starts[1:], stop), form)
    if (landings[:-1] == starts[1:]).all() and landings[-1] >= stop:
        lanes, ends = matrix.T, np.append(starts[1:], stop)[:, None]
        return lanes[lanes < ends], int(landings[-1])
    plainly = partial(_walk_plainly, data, stop=stop, form=form)
    return _join(starts, matrix, landings, stop, plainly)


def _walk_plainly(
    data: Bytes, start: int, stop: int, form: Format, until: frozenset[int]
) -> tuple[Integers, int]:
    """Walk one record at a time, to `stop` or to an offset in `until`."""
    read_length = struct.Struct(form.order + "I").unpack_from
    buffer = data.data
    length_at, beside, least = form.chain.length_at, form.chain.beside, form.chain.least
    offsets = array("q")
    offset = start
    while offset < stop and offset not in until:
        offsets.append(offset)
        offset += max(beside + read_length(buffer, offset + length_at)[0], least)
    return np.frombuffer(offsets, np.int64), offset


def _walk_lanes(data: Bytes, starts: Integers, stops: Integers, form: Format) -> tuple[Integers, Integers]:
    """Walk all lanes in step. Row n of the matrix has each lane's n-th offset; ended lanes repeat their last.

    The number of steps is limited to the records that fit into LANE_BYTES, so that one long lane of short
    records cannot make the matrix huge.
    """
    chain = form.chain
    lengths = np.ndarray((data.size - 3,), form.order + "u4", data, strides=(1,))
    offsets = starts
    rows: list[Integers] = []
    while (walking := offsets < stops).any() and len(rows) < LANE_BYTES // chain.least:
        rows.append(offsets)
        steps = lengths[np.where(walking, offsets, starts) + chain.length_at] + np.int64(chain.beside)
        if chain.beside < chain.least:
            steps = np.maximum(steps, chain.least)
        offsets = np.where(walking, offsets + steps, offsets)
    return np.stack(rows), offsets


def _join(
    starts: Integers,
    matrix: Integers,
    landings: Integers,
    stop: int,
    plainly: Callable[..., tuple[Integers, int]],
) -> tuple[Integers, int]:
    """Join the lanes that the chain reaches, and walk the others one record at a time."""
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
    candidates, plausible = (
        _guessing_pcapng(data, start, form) if form.kind == PCAPNG else _guessing_pcap(data, start, form)
    )
    for lane in range(start + LANE_BYTES, stop - SEARCH_BYTES, LANE_BYTES):
        some: Sequence[int] = (candidates(lane)[:CANDIDATES_MAX] + lane).tolist()
        yield from islice((offset for offset in some if plausible(offset)), 1)


Guesses = tuple[Callable[[int], Integers], Callable[[int], bool]]
"""Returns candidates for a record's start, relative to an offset; and checks if a plausible chain follows."""


def _guessing_pcap(data: Bytes, start: int, form: Format) -> Guesses:
    """Guess by the upper half of the seconds, which is constant for 18 hours and then increases by one."""
    halves = np.ndarray((data.size - 1,), form.order + "u2", data, strides=(1,))
    high_at = 2 if form.order == "<" else 0
    seconds_high = halves[start + high_at]

    def candidates(lane: int) -> Integers:
        return np.flatnonzero(halves[lane + high_at : lane + high_at + SEARCH_BYTES] - seconds_high <= 1)

    return candidates, partial(_plausible_pcap, data, form, int(seconds_high))


def _plausible_pcap(data: Bytes, form: Format, seconds_high: int, offset: int) -> bool:
    header, chain = struct.Struct(form.order + "IIII"), form.chain
    for _ in range(CHAIN):
        if offset + chain.header_bytes > data.size:
            return False
        fields = header.unpack_from(data.data, offset)
        seconds, fraction = fields[:2]
        length, wire_length = fields[chain.length_at // 4], fields[chain.wire_length_at // 4]
        if not 0 <= (seconds >> 16) - seconds_high <= 1 or fraction > form.fraction_end:
            return False
        if length > min(wire_length, form.record_bytes_max):
            return False
        offset += chain.beside + length
    return True


def _guessing_pcapng(data: Bytes, start: int, form: Format) -> Guesses:
    """Guess by the block type of packet blocks, and verify that both length fields agree."""
    kinds = [np.array(kind, form.order + "u4").tobytes() for kind in _PACKET_BLOCKS]
    enhanced, simple, obsolete = (np.frombuffer(kind, np.uint32)[0] for kind in kinds)

    def candidates(lane: int) -> Integers:
        shift = (start - lane) % 4  # all blocks are multiples of 4 bytes
        words = data[lane + shift : lane + shift + SEARCH_BYTES].view(np.uint32)
        return np.flatnonzero((words == enhanced) | (words == simple) | (words == obsolete)) * 4 + shift

    return candidates, partial(_plausible_pcapng, data, form)


def _plausible_pcapng(data: Bytes, form: Format, offset: int) -> bool:
    header = struct.Struct(form.order + "II")
    for _ in range(CHAIN):
        if offset + header.size > data.size:
            return False
        _, length = header.unpack_from(data.data, offset)
        end = offset + length
        if length < form.chain.least or length % 4 or end > data.size:
            return False
        if header.unpack_from(data.data, end - header.size)[1] != length:
            return False
        offset = end
    return True
