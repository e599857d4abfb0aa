"""Records of captures as Arrow batches of `PACKETS`, span by span; shared by all readers of captures.

A span is a range of whole records of one file, cut with the index. Files are mapped, never read whole. A span
needs memory for one window of offsets and one batch.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np
import pyarrow as pa

from analysis.arrays import Ints
from analysis.capture.clocks.clock import REFERENCE, OffsetBounds
from analysis.capture.pcap.fields import ALL, Column, Columns, read_fields
from analysis.capture.pcap.files.format import Format
from analysis.capture.pcap.files.index import CaptureIndex
from analysis.capture.pcap.files.mapping import map_bytes
from analysis.capture.pcap.files.records import read_records
from analysis.capture.pcap.files.scan import ScanFindings
from analysis.capture.pcap.fragments import Fragment, place, within
from analysis.capture.pcap.walk import walk
from analysis.capture.time_range import EVER, TimeRange
from analysis.schemas import PACKETS

BATCH_ROWS = 8_192  # columns of a batch fit the CPU's cache, and the allocator reuses their memory
SPAN_BYTES = 64 * 1024 * 1024
_WINDOW_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class RecordSpan:
    """Whole records of one section of a capture, from `start` to `end`."""

    path: str
    form: Format
    start: int
    end: int
    fragments: tuple[Fragment, ...] = ()  # later fragments of TCP segments among its packets
    clock: OffsetBounds = REFERENCE  # the clock of its time stamps
    capture: str = ""  # its name in tables; empty: the file's


class FileRange(Protocol):
    """A range of a file, for a task to read."""

    @property
    def start(self) -> int: ...

    @property
    def end(self) -> int: ...


S = TypeVar("S", bound=FileRange)


def spans_of(
    path: Path, index: CaptureIndex, times: TimeRange = EVER, clock: OffsetBounds = REFERENCE
) -> Iterator[RecordSpan]:
    """Cut a capture into spans of about SPAN_BYTES, leaving out splits outside the time range.

    times: by the run's reference clock. clock: the clock of the capture's time stamps.
    """
    return cut_into_spans(RecordSpan(str(path), index.sections[0], 0, 0, clock=clock), index, times)


def cut_into_spans(
    of: RecordSpan, found: CaptureIndex | ScanFindings, times: TimeRange = EVER
) -> Iterator[RecordSpan]:
    """Cut a capture into spans of about SPAN_BYTES at its splits. of: a span with file, name and clock."""
    start = end = 0
    form = of.form
    for split in found.splits:
        if not times.meets(*of.clock.reach(split.first_ns, split.last_ns)):
            continue
        if split.offset != end or end - start >= SPAN_BYTES or form is not found.sections[split.section]:
            if end > start:
                yield _span(of, form, start, end, found)
            start, form = split.offset, found.sections[split.section]
        end = split.end
    if end > start:
        yield _span(of, form, start, end, found)


def _span(
    of: RecordSpan, form: Format, start: int, end: int, found: CaptureIndex | ScanFindings
) -> RecordSpan:
    fragments = within(found.fragments, start, end)
    return replace(of, form=form, start=start, end=end, fragments=fragments)


def pack(spans: Iterable[S]) -> Iterator[tuple[S, ...]]:
    """Combine small spans into tasks of about SPAN_BYTES."""
    group: list[S] = []
    size = 0
    for span in spans:
        if group and size + span.end - span.start > SPAN_BYTES * 3 // 2:
            yield tuple(group)
            group, size = [], 0
        group.append(span)
        size += span.end - span.start
    if group:
        yield tuple(group)


def read_columns(span: RecordSpan, names: Collection[str] = ALL) -> Iterator[Columns]:
    """Read a span's packets as NumPy columns, BATCH_ROWS at a time. See `read_fields` for `names`.

    The columns are those of PACKETS and `link_type`. Times are by the run's reference clock.
    """
    data = map_bytes(Path(span.path))
    start = span.start
    while start < span.end:
        offsets, start = walk(data, start, min(start + _WINDOW_BYTES, span.end), span.form)
        for first in range(0, offsets.size, BATCH_ROWS):
            records = read_records(data, offsets[first : first + BATCH_ROWS], span.form)
            columns = read_fields(data, records, names)
            place(columns, span.fragments)
            if "t_ns" in columns:
                columns["t_ns"] = span.clock.corrected(columns["t_ns"].astype(np.int64, copy=False))
            columns["link_type"] = np.broadcast_to(records.link_type, records.t_ns.shape)
            yield columns


LINK_MARK, OF_LINKS = "@", frozenset({"checksum", "sender"})
"""The mark in the names of links' captures, and the columns that only these have."""
Pick = Callable[[Columns], Ints]
"""Returns the indices of the wanted packets. It may use columns of any layer."""


def read_span(
    span: RecordSpan, schema: pa.Schema = PACKETS, times: TimeRange | None = None, pick: Pick | None = None
) -> Iterator[pa.RecordBatch]:
    """Read a span's packets as Arrow batches of `schema`: some or all columns of PACKETS, in any order."""
    capture = span.capture or Path(span.path).stem
    names = set(schema.names if pick is None else ALL)
    names -= set() if LINK_MARK in capture else OF_LINKS
    for columns in read_columns(span, names):
        if pick is not None:
            rows = pick(columns)
            columns = {name: columns[name][rows] for name in {*schema.names, "t_ns"} - {"capture"}}  # noqa: PLW2901
        batch = _batch(columns, capture, schema)
        yield batch if times is None else _within(batch, columns["t_ns"], times)


def _batch(columns: Columns, capture: str, schema: pa.Schema) -> pa.RecordBatch:
    rows = columns["t_ns"].size
    arrays = [
        pa.repeat(capture, rows) if name == "capture" else pa.array(columns[name]) for name in schema.names
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _within(batch: pa.RecordBatch, t_ns: Column, times: TimeRange) -> pa.RecordBatch:
    inside = times.within(t_ns)
    return batch if inside.all() else batch.filter(pa.array(inside))
