"""Opens any captures: files, folders, patterns, URLs and standard input.

A capture from a URL or standard input, and a compressed one in a folder that cannot be written, is placed in
a temporary folder, which exists as long as the captures are open.
"""

import os
import sys
import tempfile
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from analysis.capture.clocks.clock import REFERENCE, OffsetBounds
from analysis.capture.pcap.fields import Columns
from analysis.capture.pcap.files.compressed import capture_name, readable, unpack
from analysis.capture.pcap.files.index import CaptureIndex, load_index
from analysis.capture.pcap.files.naming import find_captures
from analysis.capture.pcap.files.record_batches import read_columns, read_span, spans_of
from analysis.capture.pcap.files.stores import COPIED_BYTES, is_url
from analysis.capture.time_range import EVER, TimeRange
from analysis.errors import CaptureError
from experiments.files.scratch import scratch

STANDARD_INPUT = "-"
_OPENED, _PIPED = "cutset-taps-", "stdin.pcap"


@dataclass(frozen=True, slots=True)
class Tap:
    """One capture: its name in tables, its file, and its index. clock: of its time stamps."""

    name: str
    path: Path
    index: CaptureIndex
    clock: OffsetBounds = REFERENCE

    @property
    def reach(self) -> tuple[int, int] | None:
        """The times of the first and the last packet; None without packets."""
        if self.index.first_ns is None or self.index.last_ns is None:
            return None
        first, last = (self.clock.at(t_ns) for t_ns in (self.index.first_ns, self.index.last_ns))
        return first, last

    @property
    def link_types(self) -> tuple[int, ...]:
        """Link types of its packets; a capture of several interfaces may have several."""
        found = (interface.link_type for form in self.index.sections for interface in form.interfaces)
        return tuple(dict.fromkeys(found))

    def packets(self, times: TimeRange, names: Collection[str]) -> Iterator[Columns]:
        """Yield the packets in this time range, in the order of capture, in chunks.

        A chunk has columns of PACKETS, and `link_type`.
        """
        for span in spans_of(self.path, self.index, times, self.clock):
            for columns in read_columns(span, names):
                inside = times.within(columns["t_ns"])
                if inside.any():
                    yield columns if inside.all() else {n: values[inside] for n, values in columns.items()}

    def batches(self, schema: pa.Schema, times: TimeRange = EVER) -> Iterator[pa.RecordBatch]:
        """Yield rows of PACKETS with the columns of a schema."""
        for span in spans_of(self.path, self.index, times, self.clock):
            yield from read_span(replace(span, capture=self.name), schema, times)


@dataclass(frozen=True, slots=True)
class Taps:
    """The captures of a query, in the user's order. unusable: the problems of unusable ones, by name. names:
    as the user named them.
    """

    names: tuple[str, ...]
    taps: tuple[Tap, ...]
    unusable: dict[str, str] = field(default_factory=dict)

    @property
    def zero_ns(self) -> int:
        """The time of the first packet of all, by the clock of the first tap; 0 without packets."""
        return min((tap.reach[0] for tap in self.taps if tap.reach), default=0)

    @property
    def end_ns(self) -> int:
        """The time of the last packet of all."""
        return max((tap.reach[1] for tap in self.taps if tap.reach), default=0)


@contextmanager
def opened(names: Sequence[str]) -> Iterator[Taps]:
    """Open captures for the length of a block. Raises CaptureError if none can be used."""
    with scratch(_OPENED, Path(tempfile.gettempdir())) as folder:
        taps: list[Tap] = []
        unusable: dict[str, str] = {}
        paths = list(dict.fromkeys(path for name in names for path in _located(name, folder)))
        for path, name in zip(paths, _tap_names(paths), strict=True):
            try:
                plain = unpack(_writable(path, folder))
                taps.append(Tap(name, plain, load_index(plain)))
            except CaptureError as error:
                unusable[name] = str(error)
        if not taps:
            raise CaptureError("; ".join(unusable.values()))
        yield Taps(tuple(names), tuple(taps), unusable)


def _located(name: str, folder: Path) -> Iterator[Path]:
    if name == STANDARD_INPUT:
        yield _piped(folder / _PIPED)
    elif is_url(name):
        from analysis.capture.pcap.files.stored import fetch_captures  # noqa: PLC0415 - slow, and rarely needed

        yield from fetch_captures(name, folder)
    else:
        yield from (path.absolute() for path in find_captures(name))


def _piped(file: Path) -> Path:
    """Write standard input to a file."""
    with file.open("wb") as target:
        while some := sys.stdin.buffer.read(COPIED_BYTES):
            target.write(some)
    return file


def _writable(path: Path, folder: Path) -> Path:
    """Return a path of the capture in whose folder it can be decompressed, if that is necessary."""
    if readable(path) == path or os.access(path.parent, os.W_OK):
        return path
    link = folder / f"{len(list(folder.iterdir()))}" / path.name
    link.parent.mkdir()
    link.symlink_to(path)
    return link


def _tap_names(paths: Sequence[Path]) -> list[str]:
    """Return the name of each capture: its file's without suffixes, with its folder if that is not unique."""
    names = [capture_name(path) for path in paths]
    count = Counter(names)
    named = [
        name if count[name] == 1 else f"{path.parent.name}/{path.name}"
        for name, path in zip(names, paths, strict=True)
    ]
    count = Counter(named)
    return [name if count[name] == 1 else str(path) for name, path in zip(named, paths, strict=True)]


def time_zero(zero_ns: int) -> str:
    """Return time 0 as UTC and as seconds since 1970, the two formats of Wireshark."""
    seconds, fraction = divmod(zero_ns, 10**9)
    utc = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"time 0 is {utc}.{fraction:09d}Z ({seconds}.{fraction:09d} s since 1970)"
