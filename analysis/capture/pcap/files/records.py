"""The records of a range of a capture, independent of its format: offset of the captured bytes, time,
captured length, original length and link type. Later steps know no file formats.
"""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from analysis.arrays import Bools, Bytes, Ints, ParallelArrays, RowSelection
from analysis.capture.pcap.files.format import PCAPNG, Format, column, gather
from analysis.capture.pcap.files.pcapng import Blocks, read_blocks

HEAD_BYTES = 40
NS = 1_000_000_000
PYTHON_UNITS = (
    10 * NS
)  # per second; finer time stamps are computed one by one, since their fractions overflow
SECONDS_MAX = (1 << 63) // NS - 1  # limit of a bigint of nanoseconds: until the year 2262

Units = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class PacketRecords(ParallelArrays):
    """Packets of a capture, in the order of the file."""

    at: Ints  # offset of each record's header in the file
    begin: Ints  # offset of its captured bytes
    t_ns: Ints  # 0 if the record has no time
    length: Ints  # captured bytes
    wire_length: Ints
    link_type: int | Ints  # one for all, or one for each
    head: Bytes  # the first HEAD_BYTES from `begin`; beyond `length` they belong to what follows
    unused: dict[str, int] = field(default_factory=dict)  # counts of unreadable records by reason


def read_records(data: Bytes, offsets: Ints, form: Format) -> PacketRecords:
    """Read the records whose headers are at these offsets of one section; `walk` finds the offsets."""
    if form.kind == PCAPNG:
        return _of_blocks(read_blocks(data, offsets, form, HEAD_BYTES), form)
    chain, word = form.chain, form.order + "u4"
    rows = gather(data, offsets, chain.header_bytes + HEAD_BYTES)
    fraction = column(rows, 4, word)
    carried = int(np.count_nonzero(fraction >= form.fraction_end))
    return PacketRecords(
        at=offsets,
        begin=offsets + chain.header_bytes,
        t_ns=column(rows, 0, word) * NS + fraction * (NS // form.interfaces[0].units_per_s),
        length=column(rows, chain.length_at, word),
        wire_length=column(rows, chain.wire_length_at, word),
        link_type=form.interfaces[0].link_type,
        head=rows[:, chain.header_bytes :],
        unused={"time stamps with a whole second in their fraction": carried} if carried else {},
    )


def _of_blocks(blocks: Blocks, form: Format) -> PacketRecords:
    """Return the packets of pcapng blocks, with time and link type by their interface."""
    t_ns = np.zeros(blocks.at.size, np.int64)
    possible = np.ones(blocks.at.size, np.bool_)
    for (units_per_s, offset_s), rows in _by(
        blocks.interface, [(i.units_per_s, i.offset_s) for i in form.interfaces]
    ):
        t_ns[rows], possible[rows] = to_ns(blocks.time[rows], units_per_s, offset_s)
    t_ns[~blocks.timed], possible[~blocks.timed] = 0, True
    link_types = np.array([interface.link_type for interface in form.interfaces] or [0], np.int64)
    unused = blocks.unused | {
        "packets without a time": int(np.count_nonzero(~blocks.timed)),
        "packets with an impossible time": int(np.count_nonzero(~possible)),
    }
    records = PacketRecords(
        at=blocks.at,
        begin=blocks.begin,
        t_ns=t_ns,
        length=blocks.length,
        wire_length=blocks.wire_length,
        link_type=int(link_types[0]) if (link_types == link_types[0]).all() else link_types[blocks.interface],
        head=blocks.head,
        unused={name: count for name, count in unused.items() if count},
    )
    return records if possible.all() else records.take(possible)


def _by(interface: Ints, meanings: list[tuple[int, int]]) -> list[tuple[tuple[int, int], RowSelection]]:
    """Return the rows of each distinct meaning of interfaces; most files have only one."""
    different = list(dict.fromkeys(meanings))
    if len(different) <= 1:
        return [(meaning, slice(None)) for meaning in different]
    number = np.array([different.index(meaning) for meaning in meanings])[interface]
    return [(different[n], np.flatnonzero(number == n)) for n in np.unique(number).tolist()]


def to_ns(units: Units, units_per_s: int, offset_s: int) -> tuple[Ints, Bools]:
    """Convert time stamps to nanoseconds, rounded down. Also return which ones fit into a bigint."""
    if units_per_s > PYTHON_UNITS:
        exact = [int(value) * NS // units_per_s + offset_s * NS for value in units.tolist()]
        possible = np.array([abs(value) < SECONDS_MAX * NS for value in exact], np.bool_)
        return np.array(
            [value if abs(value) < SECONDS_MAX * NS else 0 for value in exact], np.int64
        ), possible
    if offset_s == 0 and NS % units_per_s == 0:  # nearly always
        possible = units < np.uint64(SECONDS_MAX * units_per_s)
        return np.where(possible, units, 0).astype(np.int64) * (NS // units_per_s), possible
    seconds, rest = np.divmod(units, np.uint64(units_per_s))
    fraction = (rest * np.uint64(NS) // np.uint64(units_per_s)).astype(np.int64)
    least, most = -SECONDS_MAX - offset_s, SECONDS_MAX - offset_s
    if abs(offset_s) > SECONDS_MAX:
        return np.zeros(units.size, np.int64), np.zeros(units.size, np.bool_)
    possible = (seconds >= max(least, 0)) & (seconds < most)
    whole = np.where(possible, seconds, 0).astype(np.int64) + offset_s
    return whole * NS + fraction, possible
