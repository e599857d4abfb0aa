"""Matching messages with their place on the wire, and how long their packets may be seen."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from analysis.packets.filters import Filter
from analysis.packets.reading import transfers
from analysis.packets.wire import read_openings
from analysis.pcap.batches import TimeRange
from analysis.schemas import ARRIVED
from experiments.rundir import RunDirectory

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
