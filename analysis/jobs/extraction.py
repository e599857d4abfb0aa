"""Independent tasks that extract tables from a run's captures.

Each task writes one Parquet file per table, under a temporary name first. A task that runs again, or twice at
once, leaves the same files. This module does not know Spark; `analysis.tables` distributes the tasks.

Only captures of hosts are decoded to messages (those of links show the same messages again), and only for
systems with known messages or markers. A capture that cannot be used is skipped and listed in the table of
captures with the reason.
"""

import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from analysis.capture.clocks.machine_clocks import MachineClocks, clock_of_capture, read_clocks
from analysis.capture.markers import MarkerSearch
from analysis.capture.pcap.decode import Emit
from analysis.capture.pcap.files.compressed import capture_name, readable, unpack
from analysis.capture.pcap.files.index import CaptureIndex, load_index
from analysis.capture.pcap.files.record_batches import RecordSpan, pack, read_span, spans_of
from analysis.capture.pcap.streams import HostCapture, extract_messages
from analysis.capture.time_range import EVER
from analysis.capture.tls.events import NO_KEY_LOG, TlsConnections, TlsKeys
from analysis.errors import CaptureError
from analysis.messages.searched import message_port, messages_of
from analysis.schemas import CAPTURES, DECODING, GAPS, MEMBERSHIPS, MESSAGES, PACKETS
from experiments.archives.packing import KEYS
from experiments.files.plain_name import plain_name
from experiments.files.whole_files import replacing
from experiments.records.observations import CaptureRecord
from experiments.records.run_record import RunRecord
from experiments.records.rundir import RUN_JSON, RunDirectory
from node.systems import codec_of

SCHEMAS = {
    "packets": PACKETS, "messages": MESSAGES, "gaps": GAPS, "decoding": DECODING, "memberships": MEMBERSHIPS,
    "captures": CAPTURES,
}  # fmt: skip
COMPRESSION = "lz4"
ROW_GROUP_ROWS = 262_144
# Columns with few different values. For others, building a dictionary costs more than it saves.
_DICTIONARY = (
    "capture", "host", "direction", "src", "dst", "src_hi", "src_lo", "dst_hi", "dst_lo", "sport", "dport",
    "proto", "flags", "payload_offset", "connection", "length", "type", "stream", "kind", "count", "cause",
    "payload_length", "sender", "receiver", "fate",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PacketsTask:
    """Writes the packets of some spans."""

    number: int
    spans: tuple[RecordSpan, ...]

    @property
    def weight(self) -> int:
        """Approximate cost, in bytes of capture."""
        return sum(span.end - span.start for span in self.spans)

    def run(self, folders: Mapping[str, Path]) -> None:
        """Write the packets to the folder of the table."""
        with _table_parts(folders, f"{self.number:05d}") as write:
            for span in self.spans:
                for batch in read_span(span):
                    write("packets", batch)


@dataclass(frozen=True, slots=True)
class MessagesTask:
    """Writes the messages, gaps and decoding results of one host's capture."""

    capture: HostCapture
    system: str
    markers: MarkerSearch | None  # searched for instead of the system's own messages
    weight: int
    tls: TlsKeys | None = None  # keys, if they may be in TLS

    def run(self, folders: Mapping[str, Path]) -> None:
        """Write the results to the folders of messages, gaps and decoding."""
        with _table_parts(folders, self.capture.host) as write:
            messages = self.markers or codec_of(self.system)
            assert messages is not None  # `_messages_tasks` creates tasks only for known messages
            if self.tls is None or self.markers is None:
                extract_messages(self.capture, messages, write)
                return
            with (
                tempfile.TemporaryDirectory(prefix=".tls-", dir=folders["messages"]) as scratch,
                TlsConnections(self.markers, self.tls, Path(scratch)) as tls,
            ):
                extract_messages(self.capture, messages, write, tls)


Task = PacketsTask | MessagesTask


def part_name(name: str) -> str:
    """Return the file name of a part of a table: by a number, or by the host that it describes."""
    return f"part-{plain_name(name, RUN_JSON)}.parquet"


@contextmanager
def _table_parts(folders: Mapping[str, Path], name: str) -> Iterator[Emit]:
    """Yield a function that adds a batch to one task's file of a table; the files appear on success.

    Batches are collected until they fill a row group.
    """
    writers: dict[str, pq.ParquetWriter] = {}
    waiting: dict[str, list[pa.RecordBatch]] = defaultdict(list)

    def flush(table: str) -> None:
        writers[table].write_table(pa.Table.from_batches(waiting.pop(table), SCHEMAS[table]))

    with ExitStack() as files:

        def write(table: str, batch: pa.RecordBatch) -> None:
            if table not in writers:
                stream = files.enter_context(replacing(folders[table] / part_name(name), sync=False))
                writers[table] = files.enter_context(open_table(stream, table))
            waiting[table].append(batch)
            if sum(one.num_rows for one in waiting[table]) >= ROW_GROUP_ROWS:
                flush(table)

        yield write
        for table in tuple(waiting):
            flush(table)


def open_table(file: Path | BinaryIO, table: str) -> pq.ParquetWriter:
    """Open a Parquet file for batches of this table."""
    schema = SCHEMAS[table]
    dictionary = [name for name in _DICTIONARY if name in schema.names]
    return pq.ParquetWriter(file, schema, compression=COMPRESSION, use_dictionary=dictionary)


def load_indices(run: RunDirectory) -> tuple[dict[Path, CaptureIndex], dict[Path, str]]:
    """Load the index of each capture of a run, created if missing. Also return why captures cannot be used.

    The first time takes about a second for five million packets; it can run while Spark starts.
    """
    indices: dict[Path, CaptureIndex] = {}
    unusable: dict[Path, str] = {}
    for path in (run.capture(capture.name) for capture in run.read_run().listed_captures):
        try:
            unpacked = unpack(path)
            indices[unpacked] = load_index(unpacked)
        except CaptureError as error:
            unusable[path] = str(error)
    return indices, unusable


def plan_tasks(run: RunDirectory, indices: Mapping[Path, CaptureIndex]) -> list[Task]:
    """Return all tasks of the extraction, the longest first."""
    record = run.read_run()
    clocks, wires = read_clocks(run, record), record.wires
    spans = (
        span
        for path, capture in _listed(run, record)
        if path in indices and capture.name not in wires
        for span in spans_of(path, indices[path], EVER, clock_of_capture(capture, record, clocks))
    )
    tasks: list[Task] = [PacketsTask(number, together) for number, together in enumerate(pack(spans))]
    tasks += _messages_tasks(run, indices, record, clocks)
    return sorted(tasks, key=lambda task: -task.weight)


def _listed(run: RunDirectory, record: RunRecord) -> Iterator[tuple[Path, CaptureRecord]]:
    """Yield the captures that run.json names, each once, with the path of its readable file."""
    captures = {run.capture(capture.name): capture for capture in record.listed_captures}
    for path, capture in captures.items():
        yield readable(path), capture


def _messages_tasks(
    run: RunDirectory, indices: Mapping[Path, CaptureIndex], record: RunRecord, clocks: MachineClocks
) -> Iterator[MessagesTask]:
    plan = record.plan
    messages, port = messages_of(plan), message_port(plan)
    markers = messages if isinstance(messages, MarkerSearch) else None
    if messages is None or (port is None and markers is None):
        return
    tls = _tls_keys(run, record)
    addresses = {host.name: host.address for host in record.plan.hosts}
    for path, listed in _listed(run, record):
        host = listed.host
        if path in indices and host in addresses:
            clock = clock_of_capture(listed, record, clocks)
            capture = HostCapture(str(path), host, addresses[host], port, clock)
            yield MessagesTask(capture, plan.system, markers, indices[path].good_bytes, tls)


def _tls_keys(run: RunDirectory, record: RunRecord) -> TlsKeys | None:
    """Return the keys of a run's TLS connections if events may be inside TLS."""
    if not record.plan.declared.logs_keys:
        return None
    if run.key_log.is_file():
        return TlsKeys(run.key_log)
    why = record.left_out.get(KEYS)
    return TlsKeys(None, f"{NO_KEY_LOG} ({why})" if why else NO_KEY_LOG)


def describe_captures(indices: Mapping[Path, CaptureIndex], unusable: Mapping[Path, str]) -> pa.Table:
    """Return the table of captures."""
    return captures_table(
        {path.stem: index for path, index in indices.items()},
        {capture_name(path): problem for path, problem in unusable.items()},
    )


def captures_table(indices: Mapping[str, CaptureIndex], unusable: Mapping[str, str]) -> pa.Table:
    """Return CAPTURES from the indices, and the problems of other captures, by name."""
    rows: list[dict[str, Any]] = [
        {
            "capture": name,
            "packets": index.packets,
            "bytes": index.file_bytes,
            "good_bytes": index.good_bytes,
            "first_ns": index.first_ns,
            "last_ns": index.last_ns,
            "problem": index.problem,
            "unused": [{"what": what, "count": count} for what, count in index.unused.items()],
        }
        for name, index in indices.items()
    ]
    nothing: dict[str, Any] = {"packets": 0, "bytes": 0, "good_bytes": 0, "unused": []}
    rows += [{"capture": name, "problem": problem} | nothing for name, problem in unusable.items()]
    return pa.Table.from_pylist(rows, schema=CAPTURES)
