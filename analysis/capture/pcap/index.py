"""The sidecar index of a capture: what makes one big file splittable, and lets a time filter skip most of it.

An index says where a record begins every 4 MB or so, how many records and which time span each split holds,
and how much of the file is good. It is exact: made by walking every record header from the beginning. It
stands beside its capture, is written atomically, and is made again when it is missing, unreadable, or older
than the capture. Nothing here depends on it being there.

A damaged header (a length or time that cannot be) or a cut-off tail ends the good part; what follows is not
read, because nothing says where the next record begins. `problem` says so in words. What is in the good part
and cannot be used all the same is counted by name in `unused`.
"""

import json
import mmap
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from analysis.capture.pcap.compressed import unpacking_problem
from analysis.capture.pcap.format import (
    FILE_HEADER_BYTES,
    PCAP,
    PCAPNG,
    RECORD_HEADER_BYTES,
    Bytes,
    Format,
    Integers,
    Interface,
    column,
    gather,
    parse_file_header,
)
from analysis.capture.pcap.fragments import Fragment, Fragments
from analysis.capture.pcap.link_types import is_known
from analysis.capture.pcap.pcapng import MAGIC, ChainCheck, begin_section, check_blocks
from analysis.capture.pcap.records import Records, read_records
from analysis.capture.pcap.walk import walk
from analysis.errors import CaptureError
from experiments.rundir import RunDirectory
from experiments.whole_files import write_whole

SCHEMA = 3
SPLIT_BYTES = 4 * 1024 * 1024
SECTIONS_MAX = 1_024
_WINDOW_BYTES = 64 * 1024 * 1024  # walked at once
_FIRST_WINDOW_BYTES = 4_096  # of a section of pcapng: another may begin anywhere, and the walk goes past it
_BATCH_RECORDS = 32_768  # looked at at once


@dataclass(frozen=True, slots=True)
class Split:
    """Consecutive records of a capture."""

    offset: int  # of the first record's header
    end: int  # where the next split begins
    packets: int
    first_ns: int  # smallest and largest time stamp in it
    last_ns: int
    section: int  # which of the capture's it is in


@dataclass(frozen=True, slots=True)
class CaptureIndex:
    """The index of a capture: its sections and splits."""

    sections: tuple[Format, ...]
    file_bytes: int
    file_mtime_ns: int
    good_bytes: int
    splits: tuple[Split, ...]
    problem: str | None  # what is wrong with the bytes from `good_bytes` on
    unused: dict[str, int]  # what cannot be used of those before, by name: how many
    fragments: tuple[Fragment, ...] = ()  # later fragments of TCP segments, in the order of the file

    @property
    def packets(self) -> int:
        """How many whole records the capture holds."""
        return sum(split.packets for split in self.splits)

    @property
    def first_ns(self) -> int | None:
        """Smallest time stamp, CLOCK_REALTIME ns."""
        return min((split.first_ns for split in self.splits), default=None)

    @property
    def last_ns(self) -> int | None:
        """Largest time stamp, CLOCK_REALTIME ns."""
        return max((split.last_ns for split in self.splits), default=None)


def map_bytes(path: Path) -> Bytes:
    """Map a file into memory, read-only. Raises CaptureError if it cannot be read or is empty.

    The mapping lasts as long as the array. The file must not shrink meanwhile.
    """
    if path.exists() and not path.is_file():  # a pipe would keep whoever opens it waiting
        raise CaptureError(f"{path.name}: is no file")
    try:
        with path.open("rb") as file:
            return np.frombuffer(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ), np.uint8)
    except ValueError as error:
        raise CaptureError(f"{path.name}: the file is empty") from error
    except OSError as error:
        raise CaptureError(f"{path.name}: cannot be read: {error.strerror}") from error


def sidecar(capture: Path) -> Path:
    """The path of a capture's index."""
    return RunDirectory(capture.parent.parent).capture_index(capture)


def load_index(capture: Path) -> CaptureIndex:
    """Read the index beside a capture, or build and store it. Raises CaptureError if it is not a capture."""
    with suppress(OSError, ValueError, TypeError, KeyError):  # missing, torn or of another schema: made again
        index = _from_json(sidecar(capture).read_text())
        if (index.file_bytes, index.file_mtime_ns) == _identity(capture):
            return index
    index = build_index(capture)
    with suppress(OSError):  # a read-only run directory: the index is only a saving of time
        write_whole(sidecar(capture), json.dumps({"schema": SCHEMA, **asdict(index)}), sync=False)
    return index


def build_index(capture: Path) -> CaptureIndex:
    """Walk a whole capture. Memory is bounded by the window, not by the file."""
    data = map_bytes(capture)
    status = capture.stat()
    scan = _Scan(data)
    kind, start, problem = PCAPNG if data[:4].tobytes() == MAGIC else PCAP, 0, None
    while start < data.size and problem is None:
        if len(scan.sections) == SECTIONS_MAX:
            problem = f"more than {SECTIONS_MAX} sections, at byte {start}"
        elif kind == PCAPNG:
            begun = begin_section(data, start)
            if isinstance(begun, str):
                problem = begun
            else:
                start, problem = scan.section(*begun)
        else:
            form = parse_file_header(data[:FILE_HEADER_BYTES].tobytes(), capture.name)
            start, problem = scan.section(form, FILE_HEADER_BYTES)
    if not scan.sections:
        raise CaptureError(f"{capture.name}: {problem}")
    problem = "; ".join(filter(None, (unpacking_problem(capture), problem))) or None
    fragments = scan.fragments.finish()
    if scan.fragments.lost:
        scan.unused["fragments of TCP segments whose beginning is missing"] = scan.fragments.lost
    return CaptureIndex(
        sections=tuple(scan.sections),
        file_bytes=status.st_size,
        file_mtime_ns=status.st_mtime_ns,
        good_bytes=start,
        splits=tuple(scan.splits),
        problem=problem,
        unused=dict(scan.unused),
        fragments=fragments,
    )


@dataclass(slots=True)
class _Scan:
    """One walk through a capture, and what was found so far."""

    data: Bytes
    sections: list[Format] = field(default_factory=list)
    splits: list[Split] = field(default_factory=list)
    unused: Counter[str] = field(default_factory=Counter)
    fragments: Fragments = field(default_factory=Fragments)

    def section(self, form: Format, start: int) -> tuple[int, str | None]:
        """Walk to the end of a section. Returns where its good part ends, and what is wrong there if
        anything is."""
        self.sections.append(form)
        window = _WINDOW_BYTES if form.kind == PCAP else min(_FIRST_WINDOW_BYTES, _WINDOW_BYTES)
        while start < self.data.size:
            offsets, following = walk(self.data, start, start + window, form)
            start, checked = self._window(offsets, following)
            release(self.data)
            if checked.problem or checked.section:
                return start, checked.problem
            window = min(window * 2, _WINDOW_BYTES)
        return start, None

    def _window(self, offsets: Integers, following: int) -> tuple[int, ChainCheck]:
        """Look at the records of a walk, as far as they are good. Returns where the next begins."""
        found: list[tuple[Integers, Integers]] = []
        checked, end = ChainCheck(0, self.sections[-1]), following
        for first in range(0, max(offsets.size, 1), _BATCH_RECORDS):
            batch = offsets[first : first + _BATCH_RECORDS]
            last = first + batch.size >= offsets.size
            behind = following if last else int(offsets[first + batch.size])
            check = check_blocks if self.sections[-1].kind == PCAPNG else _check_records
            checked = check(self.data, batch, behind, self.sections[-1])
            self.sections[-1] = checked.form
            records = read_records(self.data, batch[: checked.good], checked.form)
            found.append((records.at, records.t_ns))
            self._count(records)
            self.fragments.collect(self.data, records)
            if checked.good < batch.size:
                end = int(batch[checked.good])
                break
        at, times = (np.concatenate(columns) for columns in zip(*found, strict=True))
        self.splits.extend(_split(at, times, end, len(self.sections) - 1))
        return end, checked

    def _count(self, records: Records) -> None:
        """Count the records that cannot be used, by the reason, and those that were not captured whole."""
        self.unused.update(records.unused)
        snapped = int(np.count_nonzero(records.length < records.wire_length))
        if snapped:
            self.unused["packets that were not captured whole"] += snapped
        link_types, counts = np.unique(records.link_type, return_counts=True)
        if isinstance(records.link_type, int):
            counts = np.array([records.at.size])
        for link_type, count in zip(link_types.tolist(), counts.tolist(), strict=True):
            if count and not is_known(link_type):
                self.unused[f"packets of link type {link_type}"] += count


def _check_records(data: Bytes, offsets: Integers, following: int, form: Format) -> ChainCheck:
    """Tell how many records of a walk through classic pcap are good, and what is wrong with the next."""
    headers = gather(data, offsets, RECORD_HEADER_BYTES)
    fraction, length = column(headers, 4, form.order + "u4"), column(headers, 8, form.order + "u4")
    damaged = np.flatnonzero((length > form.record_bytes_max) | (fraction >= form.fraction_max))
    if damaged.size:
        good = int(damaged[0])
        end = int(offsets[good])
        said = f"damaged record header at byte {end}: length {length[good]}, fraction {fraction[good]}"
        return ChainCheck(good, form, said)
    if following > data.size:
        end = int(offsets[-1])
        said = f"cut off: the record at byte {end} needs {following - data.size} bytes more"
        return ChainCheck(offsets.size - 1, form, said)
    tail = data.size - following
    if 0 < tail < RECORD_HEADER_BYTES:
        return ChainCheck(offsets.size, form, f"cut off: {tail} bytes of a record header at byte {following}")
    return ChainCheck(offsets.size, form)


def _split(offsets: Integers, times: Integers, end: int, section: int) -> Iterator[Split]:
    """Cut consecutive records about every SPLIT_BYTES."""
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


def _identity(capture: Path) -> tuple[int, int]:
    status = capture.stat()
    return status.st_size, status.st_mtime_ns


def _from_json(text: str) -> CaptureIndex:
    fields = json.loads(text)
    if fields.pop("schema") != SCHEMA:
        raise ValueError("another schema")
    sections = tuple(_format(**section) for section in fields.pop("sections"))
    splits = tuple(Split(**split) for split in fields.pop("splits"))
    fragments = tuple(Fragment(**fragment) for fragment in fields.pop("fragments"))
    return CaptureIndex(sections=sections, splits=splits, fragments=fragments, **fields)


def _format(interfaces: list[dict[str, Any]], **rest: Any) -> Format:
    return Format(interfaces=tuple(Interface(**interface) for interface in interfaces), **rest)


def release(data: Bytes) -> None:
    """Let go of all pages of a file that `map_bytes` mapped; they are mapped again when touched (madvise(2)).

    Of an array that is no mapping, nothing.
    """
    owner = getattr(data.base, "obj", None)
    if isinstance(owner, mmap.mmap):
        owner.madvise(mmap.MADV_DONTNEED)
