"""The logs and records of deliveries of simulated processes: the same files that real ones write.

Times are those of a fixed epoch. The same batch is put on record by thousands of clients, so its CRC, and
that of all before it, is computed once and looked up afterwards. Files are written a few megabytes at a
time, and hold what was recorded so far when the simulation breaks off.
"""

import json
import zlib
from dataclasses import dataclass, field
from pathlib import Path

from experiments.rundir import RunDirectory
from node.core import machine as m
from node.core.collection_marks import MARKS_SUFFIX
from node.core.deliveries import RECORD, encode_file_header
from node.sim.process import Node

EPOCH_NS = 946_684_800 * 10**9  # the beginning of virtual time: 2000-01-01, as CLOCK_REALTIME has it
KEPT_BYTES = 64 << 20  # over all files, before they are written
KNOWN_CRCS = 8192


def time_ns(time_us: int) -> int:
    """A virtual time as the run directory has it."""
    return EPOCH_NS + time_us * 1000


@dataclass(slots=True)
class NodeFiles:
    """Of one process, from its start to its end."""

    deliveries: Path
    log: Path
    records: bytearray = field(default_factory=bytearray)
    marks: bytearray = field(default_factory=bytearray)
    lines: list[bytes] = field(default_factory=list)
    running_crc: dict[int, int] = field(default_factory=dict)  # by stream


class Files:
    """All processes' files. `record` and `log` are for a simulation's observer."""

    def __init__(self, run: RunDirectory) -> None:
        self._run = run
        self._files: dict[Node, NodeFiles] = {}
        self._bytes = 0
        self._known: dict[tuple[int, int], tuple[bytes | memoryview, int, int]] = {}

    def record(self, node: Node, time_us: int, effect: m.Record) -> None:
        """Put a batch on record."""
        files = self._files.get(node) or self._begin(node)
        if effect.mark:
            files.marks += effect.mark
            self._bytes += len(effect.mark)
        stream = effect.stream
        batch_crc, running_crc = self._crcs(effect.payload, files.running_crc.get(stream, 0))
        files.running_crc[stream] = running_crc
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

    def write(self) -> None:
        """Write what is kept to the files. Raises OSError."""
        for files in self._files.values():
            if files.records:
                with files.deliveries.open("ab") as stream:
                    stream.write(files.records)
                files.records.clear()
            if files.marks:
                with files.deliveries.with_suffix(MARKS_SUFFIX).open("ab") as stream:
                    stream.write(files.marks)
                files.marks.clear()
            if files.lines:
                with files.log.open("ab") as stream:
                    stream.writelines(files.lines)
                files.lines.clear()
        self._bytes = 0

    def begin(self, host: str) -> None:
        """A host's empty files. Raises OSError."""
        self._run.log(host).touch()
        self._run.host_deliveries(host).write_bytes(encode_file_header())

    def _begin(self, node: Node) -> NodeFiles:
        host = node.spec.host
        files = self._files[node] = NodeFiles(self._run.host_deliveries(host), self._run.log(host))
        return files

    def _crcs(self, payload: bytes | memoryview, running_crc: int) -> tuple[int, int]:
        """Of the batch, and of all up to it. What is known keeps its payload, so its id stays its own."""
        key = (id(payload), running_crc)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= KNOWN_CRCS:
                for old in list(self._known)[: KNOWN_CRCS // 2]:
                    del self._known[old]
            known = self._known[key] = (payload, zlib.crc32(payload), zlib.crc32(payload, running_crc))
        return known[1], known[2]
