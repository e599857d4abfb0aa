"""Logs, delivery records and measures of simulated processes, in the same files as real processes.

Times count from a fixed epoch. Thousands of clients record the same batch, so its CRC, and that of all events
up to it, is computed once and cached. Files are written a few megabytes at a time. If the simulation is
aborted, they contain the records so far.
"""

import json
import zlib
from dataclasses import dataclass, field
from pathlib import Path

from experiments.records.rundir import RunDirectory
from node.core import machine as m
from node.core.collection_marks import MARKS_SUFFIX
from node.core.deliveries import RECORD, RecordKind, encode_file_header
from node.core.measures import MEASURES_SUFFIX, Columns
from node.sim.process import Node

EPOCH_NS = 946_684_800 * 10**9  # the start of virtual time, 2000-01-01, as CLOCK_REALTIME
KEPT_BYTES = 64 << 20  # buffered over all files before they are written
KNOWN_CRCS = 8192


def time_ns(time_us: int) -> int:
    """Return a virtual time as recorded in run directories, in CLOCK_REALTIME nanoseconds."""
    return EPOCH_NS + time_us * 1000


@dataclass(slots=True)
class NodeFiles:
    """The files of one process, from its start to its end."""

    deliveries: Path
    log: Path
    records: bytearray = field(default_factory=bytearray)
    marks: bytearray = field(default_factory=bytearray)
    measures: bytearray = field(default_factory=bytearray)
    columns: Columns = field(default_factory=Columns)
    lines: list[bytes] = field(default_factory=list)
    running_crc: dict[tuple[bool, int], int] = field(default_factory=dict)  # by whether published, and stream


class Files:
    """The files of all processes. `record` and `log` are passed to a simulation's observer."""

    def __init__(self, run: RunDirectory) -> None:
        self._run = run
        self._files: dict[Node, NodeFiles] = {}
        self._bytes = 0
        self._known: dict[tuple[int, int], tuple[bytes | memoryview, int, int]] = {}

    def record(self, node: Node, time_us: int, effect: m.Record) -> None:
        """Record the delivery of a batch."""
        files = self._files.get(node) or self._begin(node)
        if effect.mark:
            files.marks += effect.mark
            self._bytes += len(effect.mark)
        stream = effect.stream
        key = effect.kind == RecordKind.PUBLISHED, stream
        batch_crc, running_crc = self._crcs(effect.payload, files.running_crc.get(key, 0))
        files.running_crc[key] = running_crc
        files.records += RECORD.pack(
            stream,
            effect.count,
            effect.first_seq,
            EPOCH_NS + time_us * 1000,
            batch_crc,
            running_crc,
            effect.kind,
            effect.covered,
        )
        self._bytes += RECORD.size
        if self._bytes > KEPT_BYTES:
            self.write()

    def log(self, node: Node, time_us: int, line: m.Log) -> None:
        """Write a line, as `node.tcp.process` does."""
        files = self._files.get(node) or self._begin(node)
        record = {"t_ns": time_ns(time_us), "level": line.level, "event": line.event, **line.fields}
        encoded = json.dumps(record, separators=(",", ":")).encode() + b"\n"
        files.lines.append(encoded)
        self._bytes += len(encoded)

    def measure(self, node: Node, time_us: int, effect: m.Measure) -> None:
        """Record a measurement that the system made itself."""
        files = self._files.get(node) or self._begin(node)
        encoded = files.columns.encode([(time_ns(time_us), effect)])
        files.measures += encoded
        self._bytes += len(encoded)

    def write(self) -> None:
        """Write the buffered records to the files. Raises OSError."""
        for files in self._files.values():
            for path, kept in (
                (files.deliveries, files.records),
                (files.deliveries.with_suffix(MARKS_SUFFIX), files.marks),
                (files.deliveries.with_suffix(MEASURES_SUFFIX), files.measures),
            ):
                if kept:
                    with path.open("ab") as stream:
                        stream.write(kept)
                    kept.clear()
            if files.lines:
                with files.log.open("ab") as stream:
                    stream.writelines(files.lines)
                files.lines.clear()
        self._bytes = 0

    def begin(self, host: str) -> None:
        """Create a host's empty files. Raises OSError."""
        self._run.log(host).touch()
        self._run.host_deliveries(host).write_bytes(encode_file_header())

    def _begin(self, node: Node) -> NodeFiles:
        host = node.spec.host
        files = self._files[node] = NodeFiles(self._run.host_deliveries(host), self._run.log(host))
        return files

    def _crcs(self, payload: bytes | memoryview, running_crc: int) -> tuple[int, int]:
        """Return the CRC of a batch, and of all events up to its end.

        A cached payload is kept alive, so that its id stays unique.
        """
        key = (id(payload), running_crc)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= KNOWN_CRCS:
                for old in list(self._known)[: KNOWN_CRCS // 2]:
                    del self._known[old]
            known = self._known[key] = (payload, zlib.crc32(payload), zlib.crc32(payload, running_crc))
        return known[1], known[2]
