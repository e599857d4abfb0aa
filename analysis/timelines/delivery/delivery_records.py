"""The nodes' records of deliveries as a table: each client's deliveries and each driver's publications.

A file is read as a whole, vectorised, by the field list of node.core.deliveries. A truncated record at its
end (a crash) is omitted.

`RecordedDeliveries` and `RecordedPublications` hold the same data of many hosts as parallel arrays;
`deliveries` arranges them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from analysis.arrays import Bools, Ints, ints
from analysis.capture.clocks.machine_clocks import ONE_CLOCK, MachineClocks
from analysis.errors import AnalysisError
from analysis.timelines import schemas
from analysis.timelines.delivery.sequence_intervals import Batches
from experiments.files.whole_files import replacing
from node.core.deliveries import HEADER, RECORD_FIELDS, RecordKind, check_file_header
from node.core.epochs import SEQ_MAX

RECORD = np.dtype(list(RECORD_FIELDS))
_MOST = {
    **dict.fromkeys(("stream", "count"), (1 << 31) - 1),
    "kind": max(RecordKind),
    "first_seq": SEQ_MAX,
    "time_ns": (1 << 62) - 1,
}
"""Largest valid value of fields that have more bits."""
SUBSCRIPTIONS = (
    RecordKind.SUBSCRIBING,
    RecordKind.SUBSCRIBED,
    RecordKind.UNSUBSCRIBING,
    RecordKind.UNSUBSCRIBED,
)
DELIVERED_KINDS = (RecordKind.DELIVERED, RecordKind.TOMBSTONE, RecordKind.SPARSE)
"""Kinds of records of what a client received: events, placeholders of collected events, or both."""
ROWS_TOGETHER = 16_384
"""Rows per row group of a file sorted by stream: the least that following one stream reads."""


def read_files(
    files: Sequence[tuple[str, Path]],
    streams: Sequence[int] | None = None,
    *,
    clocks: MachineClocks = ONE_CLOCK,
) -> pa.Table:
    """Return hosts' files as rows of `schemas.RECORDS`, host by host; only some streams, if given.

    Times are by the run's reference clock. A file that does not exist has no rows. Raises AnalysisError for a
    file that is not a record of deliveries.
    """
    parts = []
    for host, path in files:
        rows = read_rows(path)
        session, position = sessions_of(rows), np.arange(len(rows))
        if streams is not None:
            wanted = np.isin(rows["stream"], streams)
            rows, session, position = rows[wanted], session[wanted], position[wanted]
        clock = clocks.clock_of_host(host)
        if not clock.is_reference:
            rows = rows.copy()
            rows["time_ns"] = clock.corrected(rows["time_ns"].astype(np.int64))
        parts.append(HostRecords(host, rows, session, position))
    return as_table(parts)


@dataclass(frozen=True, slots=True)
class HostRecords:
    """Some records of one host as in its file, with the session and the position of each."""

    host: str
    rows: npt.NDArray[np.void]
    session: Ints
    position: Ints


def host_records(host: str, data: bytes | bytearray) -> HostRecords:
    """Return the complete records of one host in `data`, which has no file header."""
    rows = np.frombuffer(data, RECORD, len(data) // RECORD.itemsize)
    return HostRecords(host, rows, sessions_of(rows), np.arange(len(rows)))


def sessions_of(rows: npt.NDArray[np.void], before: int = -1) -> Ints:
    """Return the session of each record of one host: the number of starts of its process before, from 0.

    A session that ended before it wrote anything has no records. before: the session preceding these records.
    """
    begins = rows["kind"] == RecordKind.SESSION
    recorded = rows["first_seq"].astype(np.int64)  # 0 if the writer does not know it
    number = np.where(begins, np.maximum(before + np.cumsum(begins), recorded), max(before, 0))
    return np.maximum.accumulate(number)


def as_table(parts: Sequence[HostRecords]) -> pa.Table:
    """Return rows of `schemas.RECORDS`, host by host."""
    nothing = np.zeros(0, np.int64)
    rows = np.concatenate([np.zeros(0, RECORD), *(part.rows for part in parts)])
    session, position = (
        np.concatenate([nothing, *(getattr(part, name) for part in parts)])
        for name in ("session", "position")
    )
    place = np.repeat(np.arange(len(parts)), [len(part.rows) for part in parts])
    columns = [
        pa.array([part.host for part in parts], pa.string()).take(pa.array(place)),
        session.astype(np.int32),
        position,
        *(rows[name].astype(np.int32) for name in ("kind", "stream")),
        *(
            rows[name].astype(np.int64)
            for name in ("first_seq", "count", "time_ns", "batch_crc", "running_crc", "covered")
        ),
    ]
    return pa.Table.from_arrays([pa.array(column) for column in columns], schema=schemas.RECORDS)


def write_by_stream(table: pa.Table, path: Path) -> None:
    """Write rows of `schemas.RECORDS` sorted by stream, so that following few streams reads few rows."""
    order = np.argsort(table.column("stream").to_numpy(), kind="stable")
    with replacing(path, sync=False) as stream:
        pq.write_table(table.take(pa.array(order)), stream, compression="lz4", row_group_size=ROWS_TOGETHER)


def read_streams(paths: Sequence[Path], streams: Sequence[int]) -> dict[int, pa.Table]:
    """Return the rows of each of some streams from files of `write_by_stream`, in the order of the files."""
    wanted = (pc.field("stream") >= min(streams)) & (pc.field("stream") <= max(streams))
    tables = [pq.read_table(path, filters=wanted) for path in paths]
    records = pa.concat_tables([schemas.RECORDS.empty_table(), *tables])
    return by_stream(records, streams)


def by_stream(table: pa.Table, streams: Sequence[int]) -> dict[int, pa.Table]:
    """Return the rows of each stream, in their order."""
    ordered = table.take(pa.array(np.argsort(ints(table, "stream"), kind="stable")))
    wanted = np.array(streams, np.int64)
    low, high = (np.searchsorted(ints(ordered, "stream"), wanted, side=side) for side in ("left", "right"))
    return {
        stream: ordered.slice(first, end - first)
        for stream, first, end in zip(streams, low.tolist(), high.tolist(), strict=True)
    }


def read_rows(path: Path, skip: int = 0) -> npt.NDArray[np.void]:
    """Return the complete records of a file without the first `skip`; none if the file does not exist.

    Raises AnalysisError if it is not a record of deliveries.
    """
    if not path.is_file():
        return np.zeros(0, RECORD)
    with path.open("rb") as file:
        header = file.read(HEADER.size)
        if len(header) == HEADER.size:
            try:
                check_file_header(header)
            except ValueError as error:
                raise AnalysisError(f"{path}: {error}") from None
        file.seek(HEADER.size + skip * RECORD.itemsize)
        data = file.read()
    rows = np.frombuffer(data, RECORD, len(data) // RECORD.itemsize)
    for name, most in _MOST.items():
        invalid = np.flatnonzero(rows[name] > most)
        if len(invalid):
            problem = f"record {skip + int(invalid[0])} has a {name} of {rows[name][invalid[0]]}"
            raise AnalysisError(f"{path}: not a record of deliveries: {problem}")
    return rows


@dataclass(frozen=True, slots=True)
class RecordedDeliveries:
    """Clients' records as parallel arrays: group by group, session by session, in order of delivery.

    group: a client and a stream, numbered densely. session: a group split by session, numbered densely.
    stream: an index in the run's list. of_group: the stream of each group. reach: sequence numbers from
    `first` on; `events` of them arrived as events.
    """

    group: Ints
    session: Ints
    stream: Ints
    of_group: Ints
    first: Ints
    reach: Ints
    events: Ints
    whole: Bools  # a batch of events without tombstones: its CRC can be compared
    t_ns: Ints
    crc: Ints
    running: Ints


@dataclass(frozen=True, slots=True)
class RecordedPublications:
    """Published batches as parallel arrays, ordered by stream (an index in the run's list) and number.

    batches: in their streams' spans (`sequence_intervals`), with the times of their records. runs: everything
    known to be published. unacknowledged: the part whose publisher died before the acknowledgement; empty if
    the contract has no acknowledgements.
    """

    stream: Ints
    batches: Batches
    crc: Ints
    running: Ints
    driver: Ints
    session: Ints
    runs: tuple[Ints, Ints]
    unacknowledged: tuple[Ints, Ints]
