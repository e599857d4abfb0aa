"""A resumable walk through a capture's record headers: finds splits, the length of the valid part, and the
problem with the rest. It can continue after the file has grown.

A damaged header (an impossible length or time) or a truncated tail ends the valid part. The rest is not read,
because the next record's offset is unknown. When the file grows, only a truncated tail can become valid.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from analysis.arrays import Bytes, Ints
from analysis.capture.pcap.files.format import PCAPNG, Format, column, gather, read_file_header
from analysis.capture.pcap.files.mapping import release
from analysis.capture.pcap.files.pcapng import MAGIC, ChainCheck, begin_section, check_blocks
from analysis.capture.pcap.files.records import PacketRecords, read_records
from analysis.capture.pcap.fragments import Fragment, FragmentCollector
from analysis.capture.pcap.uncommon import UnreadPackets, uncommon_packets
from analysis.capture.pcap.walk import walk

SPLIT_BYTES = 4 * 1024 * 1024
SECTIONS_MAX = 1_024
_WINDOW_BYTES = 64 * 1024 * 1024  # walked at once
_FIRST_WINDOW_BYTES = 4_096  # of a section of pcapng, since the walk may pass the begin of another section
_INT32_MAX = (1 << 31) - 1
_BATCH_RECORDS = 32_768  # checked at once


@dataclass(frozen=True, slots=True)
class Split:
    """Consecutive records of a capture."""

    offset: int  # of the first record's header
    end: int  # one past the last record
    packets: int
    first_ns: int  # smallest time stamp
    last_ns: int  # largest time stamp
    section: int  # index of its section


@dataclass(frozen=True, slots=True)
class ScanFindings:
    """The result of a walk between two offsets of a file."""

    sections: tuple[Format, ...]
    splits: tuple[Split, ...]
    fragments: tuple[Fragment, ...]


@dataclass(slots=True)
class CaptureScan:
    """A walk through a capture that may still grow, and its results so far."""

    name: str  # of the file, for messages
    end: int = 0
    """The valid bytes walked so far; a record or a section ends there."""
    problem: str | None = None
    """The problem at `end`; None if the walk reached the end of the file or its limit."""
    sections: list[Format] = field(default_factory=list)
    splits: list[Split] = field(default_factory=list)
    unused: Counter[str] = field(default_factory=Counter)
    unread: UnreadPackets = field(default_factory=UnreadPackets)
    fragments: FragmentCollector = field(default_factory=FragmentCollector)
    _between: bool = True  # a section header is next
    _window_bytes: int = 0

    @classmethod
    def within(cls, name: str, form: Format, start: int) -> "CaptureScan":
        """Return a walk that begins at a record in a section of this format."""
        return cls(name, end=start, sections=[form], _between=False, _window_bytes=_WINDOW_BYTES)

    def go_on(self, data: Bytes, stop: int | None = None) -> None:
        """Continue the walk while records begin before `stop`; None is the end of the file.

        data: the whole file. Raises CaptureError if its beginning is not that of a capture.
        """
        stop = data.size if stop is None else min(stop, data.size)
        self.problem = None
        while self.end < stop and self.problem is None:
            if self._between:
                self._begin(data)
            else:
                self._walk(data, stop)

    def forget(self, before: int) -> None:
        """Discard results before an offset of the file, except those that the rest needs."""
        self.splits = [split for split in self.splits if split.end > before]
        self.fragments.placed = [one for one in self.fragments.placed if one.at >= before]

    def between(self, start: int, end: int) -> ScanFindings:
        """Return the results between two ends of records."""
        splits = (split for split in self.splits if split.offset < end and split.end > start)
        return ScanFindings(
            tuple(self.sections),
            tuple(replace(one, offset=max(one.offset, start), end=min(one.end, end)) for one in splits),
            tuple(sorted(self.fragments.placed, key=lambda fragment: fragment.at)),
        )

    def _begin(self, data: Bytes) -> None:
        """Read the header of a section."""
        if len(self.sections) == SECTIONS_MAX:
            self.problem = f"more than {SECTIONS_MAX} sections, at byte {self.end}"
            return
        if self.end or data[: len(MAGIC)].tobytes() == MAGIC:
            begun = begin_section(data, self.end)
            if isinstance(begun, str):
                self.problem = begun
                return
        else:
            form = read_file_header(data, self.name)
            begun = form, form.chain.first
        form, self.end = begun
        self.sections.append(form)
        self._window_bytes = min(_FIRST_WINDOW_BYTES, _WINDOW_BYTES) if form.kind == PCAPNG else _WINDOW_BYTES
        self._between = False

    def _walk(self, data: Bytes, stop: int) -> None:
        """Walk through a window of a section."""
        offsets, following = walk(data, self.end, min(self.end + self._window_bytes, stop), self.sections[-1])
        self.end, checked = self._window(data, offsets, following)
        release(data)
        self.problem, self._between = checked.problem, checked.section
        self._window_bytes = min(self._window_bytes * 2, _WINDOW_BYTES)

    def _window(self, data: Bytes, offsets: Ints, following: int) -> tuple[int, ChainCheck]:
        """Check the records of a walk, and collect the valid ones. Returns the offset of the next record."""
        found: list[tuple[Ints, Ints]] = []
        checked, end = ChainCheck(0, self.sections[-1]), following
        for first in range(0, max(offsets.size, 1), _BATCH_RECORDS):
            batch = offsets[first : first + _BATCH_RECORDS]
            last = first + batch.size >= offsets.size
            behind = following if last else int(offsets[first + batch.size])
            check = check_blocks if self.sections[-1].kind == PCAPNG else _check_records
            checked = check(data, batch, behind, self.sections[-1])
            self.sections[-1] = checked.form
            records = read_records(data, batch[: checked.good], checked.form)
            found.append((records.at, records.t_ns))
            self._count(records)
            closer = uncommon_packets(data, records)
            if closer is not None:
                self.unread.add(closer)
                self.fragments.collect(closer)
            if checked.good < batch.size:
                end = int(batch[checked.good])
                break
        at, times = (np.concatenate(columns) for columns in zip(*found, strict=True))
        self.splits.extend(_split(at, times, end, len(self.sections) - 1))
        return end, checked

    def _count(self, records: PacketRecords) -> None:
        """Count the unusable records by reason, and the truncated ones."""
        self.unused.update(records.unused)
        snapped = int(np.count_nonzero(records.length < records.wire_length))
        if snapped:
            self.unused["packets that were not captured whole"] += snapped
        longer = int(np.count_nonzero(records.length > records.wire_length))
        if longer:
            self.unused["packets with more captured bytes than on the wire"] += longer


def _check_records(data: Bytes, offsets: Ints, following: int, form: Format) -> ChainCheck:
    """Check the records of a walk through classic pcap.

    A header is damaged if its length is impossible, its fraction of a second is negative, or its lengths
    contradict each other and the fraction is over a second. Such a fraction alone is carried over.
    """
    chain, word = form.chain, form.order + "u4"
    headers = gather(data, offsets, chain.header_bytes)
    fraction, length = column(headers, 4, word), column(headers, chain.length_at, word)
    twice = (fraction >= form.fraction_end) & (length > column(headers, chain.wire_length_at, word))
    damaged = np.flatnonzero((length > form.record_bytes_max) | (fraction > _INT32_MAX) | twice)
    if damaged.size:
        good = int(damaged[0])
        end = int(offsets[good])
        problem = f"damaged record header at byte {end}: length {length[good]}, fraction {fraction[good]}"
        return ChainCheck(good, form, problem)
    if following > data.size:
        end = int(offsets[-1])
        problem = f"cut off: the record at byte {end} needs {following - data.size} bytes more"
        return ChainCheck(offsets.size - 1, form, problem)
    tail = data.size - following
    if 0 < tail < chain.header_bytes:
        return ChainCheck(offsets.size, form, f"cut off: {tail} bytes of a record header at byte {following}")
    return ChainCheck(offsets.size, form)


def _split(offsets: Ints, times: Ints, end: int, section: int) -> Iterator[Split]:
    """Cut consecutive records into splits of about SPLIT_BYTES."""
    if offsets.size == 0:
        return
    begins = np.flatnonzero(np.diff((offsets - offsets[0]) // SPLIT_BYTES, prepend=-1))
    earliest, latest = np.minimum.reduceat(times, begins), np.maximum.reduceat(times, begins)
    packets = np.diff(begins, append=offsets.size)
    ends = np.append(offsets[begins[1:]], end)
    sections = np.full(begins.size, section)
    rows = zip(offsets[begins], ends, packets, earliest, latest, sections, strict=True)
    for row in rows:
        yield Split(*(int(value) for value in row))
