"""The places and the time range in which the packets of a message may be captured."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from analysis.capture.time_range import TimeRange
from analysis.inspect.packets.filters import Filter
from analysis.inspect.packets.transfer_reader import transfers
from analysis.inspect.packets.wire import read_syns
from analysis.schemas import ARRIVED
from analysis.taps.run_captures import CaptureFile
from analysis.timelines.run_metadata import RunMetadata
from experiments.records.rundir import RunDirectory
from topologies.errors import InputError


def at_place(captures: Sequence[CaptureFile], place: str, metadata: RunMetadata) -> list[CaptureFile]:
    """Return the captures of a host or of one side of a link, as r2-r3@r2.

    A host is given by its own name or its process's.

    Raises InputError, with the known places, for any other place.
    """
    wanted = metadata.host_of.get(place, place)
    found = [capture for capture in captures if wanted in {capture.place, capture.name}]
    if not found:
        known = ", ".join(dict.fromkeys(capture.place for capture in captures))
        known_text = f"known are {known}" if known else "there are none in this run"
        raise InputError(f"--at {place}", None, "", f"no such place with a capture: {known_text}")
    return found


Row = Mapping[str, Any]

_COLUMNS = (
    "t_ns", "sender", "receiver", "src", "dst", "sport", "dport", "connection", "stream_offset", "length",
    "t_left_ns", "t_arrived_ns", "t_complete_ns", "fate", "retransmitted",
)  # fmt: skip


def located_messages(
    run: RunDirectory, wanted: Filter, columns: Iterable[str] = ()
) -> Iterator[tuple[Row, int]]:
    """Yield each matching message and the sequence number of its first byte.

    columns: columns of TRANSFERS in addition to those that locate the message. Messages whose SYN was not
    captured are left out. Raises InputError if the run was not analysed.
    """
    openings = read_syns(run)
    for table in transfers(run, wanted, tuple(dict.fromkeys((*columns, *_COLUMNS)))):
        for row in table.to_pylist():
            first = openings.first_byte(row)
            if first is not None:
                yield row, first


@dataclass(slots=True)
class Extent:
    """The time range in which packets of some messages may have been captured."""

    first_ns: int | None = None
    end_ns: int | None = None
    open: bool = False  # some were lost or retransmitted, so the end is unknown

    def add(self, row: Row) -> None:
        """Extend the range by a message's times."""
        times = (row[name] for name in ("t_ns", "t_left_ns", "t_arrived_ns", "t_complete_ns"))
        known = [t_ns for t_ns in times if t_ns is not None]
        self.first_ns = min(known) if self.first_ns is None else min(self.first_ns, *known)
        self.end_ns = max(known) + 1 if self.end_ns is None else max(self.end_ns, max(known) + 1)
        self.open |= bool(row["retransmitted"]) or row["fate"] != ARRIVED

    @property
    def times(self) -> TimeRange:
        """The extent as a time range."""
        return TimeRange(self.first_ns, None if self.open else self.end_ns)
