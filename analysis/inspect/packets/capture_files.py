"""The captures of a run and the packets in them, by time: what takes bytes from captures reads through this.

A capture that cannot be used is left out, as the analysis does; its table of captures says why.

A message's place on the wire is where its packets may be seen, and for how long.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.capture.clocks.clock import REFERENCE, Clock
from analysis.capture.clocks.machine_clocks import clock_of_capture, read_clocks
from analysis.capture.pcap.fields import Columns
from analysis.capture.pcap.files.compressed import capture_name, readable
from analysis.capture.pcap.files.index import CaptureIndex
from analysis.capture.pcap.files.record_batches import read_columns, spans_of
from analysis.capture.time_range import TimeRange
from analysis.inspect.packets.filters import Filter, within
from analysis.inspect.packets.transfer_reader import transfers
from analysis.inspect.packets.wire import read_openings
from analysis.jobs.extraction import load_indices
from analysis.schemas import ARRIVED
from analysis.timelines.run_metadata import RunMetadata
from experiments.records.rundir import RunDirectory
from topologies.errors import InputError


@dataclass(frozen=True, slots=True)
class CaptureFile:
    """The capture of a host, or of one side of an emulated link."""

    name: str
    path: Path
    host: str | None
    link: str | None
    index: CaptureIndex
    clock: Clock = REFERENCE

    @property
    def place(self) -> str:
        """What people call it by: the host, or the link and its side."""
        return self.host or self.name

    @property
    def link_types(self) -> tuple[int, ...]:
        """Of its packets; of a capture of several interfaces there may be several."""
        found = (interface.link_type for form in self.index.sections for interface in form.interfaces)
        return tuple(dict.fromkeys(found))

    def packets(self, times: TimeRange, names: Collection[str]) -> Iterator[Columns]:
        """Its packets of these times, in the order of capture, some at a time: columns of PACKETS, and
        `link_type`.
        """
        for span in spans_of(self.path, self.index, times, self.clock):
            for columns in read_columns(span, names):
                inside = within(columns["t_ns"], times)
                if inside.any():
                    yield columns if inside.all() else {n: values[inside] for n, values in columns.items()}


def captures_of(run: RunDirectory) -> list[CaptureFile]:
    """The captures of a run that can be read, in the order in which the run lists them."""
    indices, _ = load_indices(run)
    record = run.read_run()
    clocks = read_clocks(run, record)
    listed = {readable(run.capture(each.name)): each for each in record.listed_captures}
    return [
        CaptureFile(
            capture_name(path),
            path,
            each.host,
            each.link,
            indices[path],
            clock_of_capture(each, record, clocks),
        )
        for path, each in listed.items()
        if path in indices
    ]


def at_place(captures: Sequence[CaptureFile], place: str, metadata: RunMetadata) -> list[CaptureFile]:
    """Those of a host (by its own name or its process's), or of one side of a link, as r2-r3@r2.

    Raises InputError for another place, with those that there are.
    """
    wanted = metadata.host_of.get(place, place)
    found = [capture for capture in captures if wanted in {capture.place, capture.name}]
    if not found:
        known = ", ".join(dict.fromkeys(capture.place for capture in captures))
        said = f"known are {known}" if known else "there are none in this run"
        raise InputError(f"--at {place}", None, "", f"no such place with a capture: {said}")
    return found


Row = Mapping[str, Any]

_COLUMNS = (
    "t_ns", "sender", "receiver", "src", "dst", "sport", "dport", "connection", "stream_offset", "length",
    "t_left_ns", "t_arrived_ns", "t_complete_ns", "fate", "retransmitted",
)  # fmt: skip


def placed(run: RunDirectory, wanted: Filter, columns: Iterable[str] = ()) -> Iterator[tuple[Row, int]]:
    """Each matching message, and the sequence number of its first byte.

    columns: of TRANSFERS, besides those that say where it was. Messages whose SYN was not captured are left
    out. Raises InputError if the run was not analysed.
    """
    openings = read_openings(run)
    for table in transfers(run, wanted, tuple(dict.fromkeys((*columns, *_COLUMNS)))):
        for row in table.to_pylist():
            first = openings.first_byte(row)
            if first is not None:
                yield row, first


@dataclass(slots=True)
class Extent:
    """From when to when packets of some messages may have been seen."""

    first_ns: int | None = None
    end_ns: int | None = None
    open: bool = False  # some were lost or sent again: nobody knows until when

    def add(self, row: Row) -> None:
        """Take a message's times."""
        times = (row[name] for name in ("t_ns", "t_left_ns", "t_arrived_ns", "t_complete_ns"))
        known = [t_ns for t_ns in times if t_ns is not None]
        self.first_ns = min(known) if self.first_ns is None else min(self.first_ns, *known)
        self.end_ns = max(known) + 1 if self.end_ns is None else max(self.end_ns, max(known) + 1)
        self.open |= bool(row["retransmitted"]) or row["fate"] != ARRIVED

    @property
    def times(self) -> TimeRange:
        """As a range of times."""
        return TimeRange(self.first_ns, None if self.open else self.end_ns)
