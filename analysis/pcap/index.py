"""The sidecar index of a capture: what makes one big file splittable, and lets a time filter skip most of it.

An index says where a record begins every 4 MB or so, how many records and which time span each split holds,
and how much of the file is good. It is exact: made by walking every record header from the beginning. It
stands beside its capture, is written atomically, and is made again when it is missing, unreadable, or older
than the capture. Nothing here depends on it being there.

A damaged header (a length or time that cannot be) or a cut-off tail ends the good part; what follows is not
read, because nothing says where the next record begins. `problem` says so in words.
"""

import json
import mmap
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from analysis.errors import CaptureError
from analysis.pcap.format import (
    FILE_HEADER_BYTES,
    RECORD_HEADER_BYTES,
    Bytes,
    Format,
    Integers,
    column,
    gather,
    parse_file_header,
)
from analysis.pcap.walk import walk
from experiments.rundir import RunDirectory

SCHEMA = 1
SPLIT_BYTES = 4 * 1024 * 1024
_WINDOW_BYTES = 64 * 1024 * 1024  # walked at once


@dataclass(frozen=True, slots=True)
class Split:
    """Some consecutive records of a capture."""

    offset: int  # of the first record's header
    end: int  # where the next split begins
    packets: int
    first_ns: int  # smallest and largest time stamp in it
    last_ns: int


@dataclass(frozen=True, slots=True)
class CaptureIndex:
    """What a capture holds."""

    form: Format
    file_bytes: int
    file_mtime_ns: int
    good_bytes: int
    splits: tuple[Split, ...]
    problem: str | None  # what is wrong with the bytes from `good_bytes` on

    @property
    def packets(self) -> int:
        """Whole records."""
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
    try:
        with path.open("rb") as file:
            return np.frombuffer(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ), np.uint8)
    except ValueError as error:
        raise CaptureError(f"{path.name}: the file is empty") from error
    except OSError as error:
        raise CaptureError(f"{path.name}: cannot be read: {error.strerror}") from error


def sidecar(capture: Path) -> Path:
    """Where the index of a capture stands."""
    return RunDirectory(capture.parent.parent).capture_index(capture)


def load_index(capture: Path) -> CaptureIndex:
    """Take the index beside a capture, or make it and leave it there. Raises CaptureError for no capture."""
    with suppress(OSError, ValueError, TypeError, KeyError):  # missing, torn or of another schema: made again
        index = _from_json(sidecar(capture).read_text())
        if (index.file_bytes, index.file_mtime_ns) == _identity(capture):
            return index
    index = build_index(capture)
    with suppress(OSError):  # a read-only run directory: the index is only a saving of time
        _write_atomically(sidecar(capture), json.dumps({"schema": SCHEMA, **asdict(index)}))
    return index


def build_index(capture: Path) -> CaptureIndex:
    """Walk a whole capture. Memory is bounded by the window, not by the file."""
    data = map_bytes(capture)
    form = parse_file_header(data[:FILE_HEADER_BYTES].tobytes(), capture.name)
    file_bytes, file_mtime_ns = _identity(capture)
    splits: list[Split] = []
    start = FILE_HEADER_BYTES
    problem: str | None = None
    while start < data.size and problem is None:
        offsets, following = walk(data, start, start + _WINDOW_BYTES, form)
        offsets, times, start, problem = check_records(data, offsets, following, form)
        splits.extend(_split(offsets, times, start))
    return CaptureIndex(form, file_bytes, file_mtime_ns, start, tuple(splits), problem)


def read_times(headers: Bytes, form: Format) -> Integers:
    """Take the time stamps from record headers, ns."""
    seconds = column(headers, 0, form.order + "u4")
    return seconds * 1_000_000_000 + column(headers, 4, form.order + "u4") * form.fraction_ns


def check_records(
    data: Bytes, offsets: Integers, following: int, form: Format
) -> tuple[Integers, Integers, int, str | None]:
    """Keep the good records of a walk: their offsets, their times, where they end, and what comes after if
    bad."""
    headers = gather(data, offsets, RECORD_HEADER_BYTES)
    fraction, length = column(headers, 4, form.order + "u4"), column(headers, 8, form.order + "u4")
    problem: str | None = None
    damaged = np.flatnonzero((length > form.record_bytes_max) | (fraction >= form.fraction_max))
    if damaged.size:
        good, end = int(damaged[0]), int(offsets[damaged[0]])
        problem = f"damaged record header at byte {end}: length {length[good]}, fraction {fraction[good]}"
    elif following > data.size:
        good, end = offsets.size - 1, int(offsets[-1])
        problem = f"cut off: the record at byte {end} needs {following - data.size} bytes more"
    else:
        good, end = offsets.size, following
        tail = data.size - end
        if 0 < tail < RECORD_HEADER_BYTES:
            problem = f"cut off: {tail} bytes of a record header at byte {end}"
    return offsets[:good], read_times(headers[:good], form), end, problem


def _split(offsets: Integers, times: Integers, end: int) -> Iterator[Split]:
    """Cut consecutive records about every SPLIT_BYTES."""
    if offsets.size == 0:
        return
    begins = np.flatnonzero(np.diff((offsets - offsets[0]) // SPLIT_BYTES, prepend=-1))
    earliest, latest = np.minimum.reduceat(times, begins), np.maximum.reduceat(times, begins)
    packets = np.diff(begins, append=offsets.size)
    ends = np.append(offsets[begins[1:]], end)
    rows = zip(offsets[begins], ends, packets, earliest, latest, strict=True)
    for row in rows:
        yield Split(*(int(value) for value in row))


def _identity(capture: Path) -> tuple[int, int]:
    status = capture.stat()
    return status.st_size, status.st_mtime_ns


def _from_json(text: str) -> CaptureIndex:
    fields = json.loads(text)
    if fields.pop("schema") != SCHEMA:
        raise ValueError("another schema")
    form = Format(**fields.pop("form"))
    splits = tuple(Split(**split) for split in fields.pop("splits"))
    return CaptureIndex(form=form, splits=splits, **fields)


def _write_atomically(path: Path, text: str) -> None:
    temporary = path.with_name(f"{path.name}.{os.getpid()}.part")
    temporary.write_text(text)
    temporary.replace(path)
