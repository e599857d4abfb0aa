"""The table of transfers: each message once, with what the captures of its sender and its receiver saw.

Both captures show the same bytes of one TCP direction, so connection and stream offset identify a message.
One task computes the transfers of one sender: it joins the outgoing messages of the sender's capture with the
incoming ones at all hosts that it sent to. A message that left and never arrived completely is lost, or
unseen if the receiver's capture cannot show it (see `analysis.jobs.matching`). Messages from hosts without a
capture have only their receiver's values.

A task reads both sides row group by row group. Rows arrive in no order and are written sorted by time, in
bounded memory: they are partitioned at bounds that split them about evenly, and each share waits in a
temporary file next to the result and is sorted alone.

This table serves debugging: `cutset packets`, `follow`, `diagram` and the report's moments read it.
"""

import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial, reduce
from operator import and_
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.ipc
import pyarrow.parquet as pq

from analysis.capture.groups import members_of
from analysis.capture.pcap.files.compressed import capture_name
from analysis.capture.time_range import TimeRange
from analysis.errors import check_transfers
from analysis.jobs.extraction import COMPRESSION, part_name
from analysis.jobs.matching import (
    COLUMNS,
    CONNECTION,
    LastOffsets,
    Matcher,
    Receivers,
    at_receivers,
    key_of,
    to_receivers,
)
from analysis.jobs.work import Task
from analysis.schemas import MESSAGES, TRANSFERS
from experiments.files.whole_files import replacing
from experiments.records.rundir import RunDirectory

ROW_GROUP_ROWS = 32_768  # about a second of a busy host: the unit that a query for one moment reads
SHARES_MAX = 256  # open files


@contextmanager
def sorted_file(
    path: Path, schema: pa.Schema, by: str, bounds: Sequence[int]
) -> Iterator[Callable[[pa.Table], None]]:
    """Yield a function that takes rows; they are written, sorted, at the end of the block on success.

    by: the integer column to sort by. bounds: values that split the rows about evenly.
    """
    step = -(-len(bounds) // SHARES_MAX) or 1
    splits = np.array(bounds[step - 1 :: step], np.int64)
    shares: dict[int, pa.ipc.RecordBatchFileWriter] = {}
    waiting = [schema.empty_table()]  # if there is only one share
    with tempfile.TemporaryDirectory(prefix=".", dir=path.parent) as folder, ExitStack() as files:

        def take(table: pa.Table) -> None:
            if not splits.size:
                waiting.append(table)
                return
            share_of = np.searchsorted(splits, table.column(by).to_numpy(), side="right")
            for share in np.unique(share_of).tolist():
                if share not in shares:
                    shares[share] = files.enter_context(pa.ipc.new_file(f"{folder}/{share}", schema))
                shares[share].write_table(table.filter(pa.array(share_of == share)))

        yield take
        files.close()
        with (
            replacing(path, sync=False) as stream,
            pq.ParquetWriter(stream, schema, compression=COMPRESSION) as writer,
        ):
            if not splits.size:
                writer.write_table(pa.concat_tables(waiting).sort_by(by), row_group_size=ROW_GROUP_ROWS)
            for share in sorted(shares):
                rows = pa.ipc.open_file(f"{folder}/{share}").read_all()
                writer.write_table(rows.sort_by(by), row_group_size=ROW_GROUP_ROWS)


_OF_REACH = ("host", *CONNECTION, "stream_offset")


def match_transfers(
    host: str, messages: Path, folder: Path, hosts: Mapping[str, str], receivers: Receivers
) -> dict[str, pa.Table]:
    """Match the transfers that one host sent, and those it received from hosts without a capture.

    messages: the table's folder. folder: for a file of the transfers sorted by time, which are too many to
    return. hosts: address -> host, of the whole run.
    """
    own = messages / part_name(host)
    known = [address for address, host in hosts.items() if host in receivers.captured]
    sent = pc.field("direction") == "out"
    from_elsewhere = (pc.field("direction") == "in") & ~pc.field("src").isin(known)
    sent_reach = _reach(own, sent, partial(to_receivers, hosts=hosts, members=receivers.members))
    elsewhere = _reach(own, from_elsewhere, at_receivers)
    addresses = {key[0] for key in sent_reach.last}
    arrived = (pc.field("direction") == "in") & pc.field("src").isin(sorted(addresses))
    names = {key[-1] or "" for key in sent_reach.last}
    files = [messages / part_name(name) for name in sorted(names.intersection(receivers.captured))]
    arrived_reach = elsewhere
    for file in files:
        arrived_reach |= _reach(file, arrived, at_receivers)
    matcher = Matcher(sent_reach, arrived_reach, hosts, receivers)
    coming = _PendingMessage([_stretches(file, arrived) for file in files])
    nothing = MESSAGES.empty_table()
    with sorted_file(folder / part_name(host), TRANSFERS, "t_ns", _bounds(own)) as write:
        for stretch in _stretches(own, sent | from_elsewhere):
            write(matcher.from_uncaptured(stretch.filter(from_elsewhere)))
            write(matcher.take(stretch.filter(sent), nothing))
            for come in coming.until(_latest(stretch)):
                write(matcher.take(nothing, come))
        for come in coming.until(None):
            write(matcher.take(nothing, come))
    return {}


class _PendingMessage:
    """Messages that arrived at several hosts, read about as far as the sent ones."""

    def __init__(self, sources: list[Iterator[pa.Table]]) -> None:
        self._sources = dict(enumerate(sources))
        self._read_until = dict.fromkeys(self._sources, 0)

    def until(self, t_ns: int | None) -> Iterator[pa.Table]:
        """Read on for each host until it is past this time; None: to the end."""
        for number, source in tuple(self._sources.items()):
            while t_ns is None or self._read_until[number] <= t_ns:
                stretch = next(source, None)
                if stretch is None:
                    del self._sources[number]
                    break
                self._read_until[number] = max(self._read_until[number], _latest(stretch))
                yield stretch


def _latest(stretch: pa.Table) -> int:
    return int(pc.max(stretch.column("t_first_ns")).as_py() or 0)


def _stretches(path: Path, chosen: ds.Expression, columns: Collection[str] = COLUMNS) -> Iterator[pa.Table]:
    """Yield the rows of a file of messages that match, row group by row group."""
    with pq.ParquetFile(path) as file:
        needed = list(dict.fromkeys((*columns, "direction", "src")))
        for group in range(file.num_row_groups):
            yield file.read_row_group(group, needed).filter(chosen)


def _reach(path: Path, chosen: ds.Expression, with_receivers: Callable[[pa.Table], pa.Table]) -> LastOffsets:
    reach = LastOffsets({})
    for stretch in _stretches(path, chosen, _OF_REACH):
        reach |= LastOffsets.from_table(with_receivers(stretch))
    return reach


def _bounds(path: Path) -> list[int]:
    """Return times that split a file of messages at about its row groups."""
    with pq.ParquetFile(path) as file:
        place = file.schema_arrow.get_field_index("t_first_ns")
        groups = [file.metadata.row_group(number).column(place) for number in range(file.num_row_groups)]
        return sorted(group.statistics.min for group in groups[1:] if group.statistics is not None)


def tasks(run: RunDirectory, hosts: Mapping[str, str], folder: Path) -> list[Task[dict[str, pa.Table]]]:
    """Return one task for each host whose messages were extracted."""
    messages = run.table("messages")
    there = [name for name in hosts.values() if (messages / part_name(name)).is_file()]
    receivers = _receivers(run, frozenset(there))
    return [partial(match_transfers, name, messages, folder, hosts, receivers) for name in there]


def _receivers(run: RunDirectory, captured: frozenset[str]) -> Receivers:
    """Return which losses a run's captures can show, from its tables and tcpdump's final statistics."""
    decoding, captures, memberships = (
        pq.read_table(run.table(name)) for name in ("decoding", "captures", "memberships")
    )
    stopped = decoding.filter((pc.field("direction") == "in") & pc.field("stopped").is_valid())
    damaged = {
        row["capture"] for row in captures.select(["capture", "problem"]).to_pylist() if row["problem"]
    }
    with_drops, truncated = set(), set()
    record = run.read_run()
    for capture in record.listed_captures:
        if capture.kernel_drops:
            with_drops.add(str(capture.host))
        unreported = capture.kernel_drops is None and bool(record.captures)
        if unreported or capture_name(Path(capture.file)) in damaged:
            truncated.add(str(capture.host))
    return Receivers(
        captured,
        frozenset(with_drops),
        frozenset(truncated),
        frozenset(key_of(row) for row in stopped.to_pylist()),
        members_of(memberships),
    )


def read(
    run: RunDirectory,
    times: TimeRange | None = None,
    columns: Collection[str] = tuple(TRANSFERS.names),
    chosen: ds.Expression | None = None,
) -> pa.Table:
    """Return transfers whose `t_ns` lies within `times` and that match `chosen`, sorted by time.

    Only the row groups that overlap the times are read. Raises InputError if the run was not analysed.
    """
    check_transfers(run)
    wanted = [] if chosen is None else [chosen]
    if times is not None and times.first_ns is not None:
        wanted.append(pc.field("t_ns") >= times.first_ns)
    if times is not None and times.end_ns is not None:
        wanted.append(pc.field("t_ns") < times.end_ns)
    needed = list(dict.fromkeys((*columns, "t_ns")))
    found = ds.dataset(run.table("transfers"), TRANSFERS, format="parquet").to_table(
        columns=needed, filter=reduce(and_, wanted) if wanted else None
    )
    return found.sort_by("t_ns").select(list(columns))
