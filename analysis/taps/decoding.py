"""Messages in captures without a run: those of Cutset's systems by their tables, others by tshark.

Which end a tap is near is not known, so all messages are `in`. tshark gives a row for each packet that holds
a message, and keeps the state of connections in its own memory.
"""

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from analysis.capture.pcap.files.mapping import map_bytes, release
from analysis.capture.pcap.files.record_batches import read_columns, spans_of
from analysis.capture.pcap.streams import CaptureStreams, HostCapture
from analysis.capture.time_range import TimeRange
from analysis.capture.tls.tshark import PROGRAM, protocols
from analysis.errors import AnalysisError
from analysis.schemas import MESSAGES
from analysis.taps.opening import Tap
from experiments import child_processes
from node.core.message_layout import Codec
from node.systems import codec_of, codecs
from topologies.errors import InputError

ROWS: Final = 4_096
TYPE_MAX: Final = 120
"""Characters of tshark's description of a packet that are its type."""
_FIELDS: Final = (
    "frame.time_epoch", "ip.src", "ipv6.src", "tcp.srcport", "udp.srcport", "ip.dst", "ipv6.dst",
    "tcp.dstport", "udp.dstport", "tcp.seq", "tcp.len", "tcp.stream",
    "tcp.analysis.retransmission", "_ws.col.Info",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class MessageDecoding:
    """How messages are decoded: by a system's codec, or else by a protocol of tshark."""

    system: str
    protocol: str | None = None

    def messages(self, tap: Tap, times: TimeRange) -> Iterator[pa.RecordBatch]:
        """Yield MESSAGES of a capture, about in order of time. Raises AnalysisError if tshark fails."""
        codec = None if self.protocol else codec_of(self.system)
        if codec is None:
            yield from _dissected(tap, str(self.protocol), times)
            return
        for batch in _decoded(tap, codec):
            inside = times.within(batch.column("t_first_ns").to_numpy())
            yield batch.filter(pa.array(inside))


def decoding_of(system: str) -> MessageDecoding:
    """Return how the messages of a system are decoded. Raises InputError if nothing here knows them."""
    if codec_of(system) is not None:
        return MessageDecoding(system)
    path, option = shutil.which(PROGRAM), f"--system {system}"
    if path is None:
        problem = f"is none of {', '.join(codecs())}; {PROGRAM}, for others, is not installed"
        raise InputError(option, None, "", problem)
    known = protocols(path)
    named = [name for title, name in known if system in {name, *title.lower().split()}]
    if not named:
        problem = f"is none of {', '.join(codecs())}, and this {PROGRAM} has no dissector of that name"
        raise InputError(option, None, "", problem)
    protocol = system if system in named else named[0]
    return MessageDecoding(system, protocol)


def _decoded(tap: Tap, codec: Codec) -> Iterator[pa.RecordBatch]:
    """Decode the frames of every TCP connection; those of other protocols end at their first bytes."""
    data = map_bytes(tap.path)
    found: list[pa.RecordBatch] = []

    def emit(table: str, batch: pa.RecordBatch) -> None:
        if table == "messages":
            place = MESSAGES.get_field_index("capture")
            names = pa.repeat(tap.name, batch.num_rows)
            found.append(batch.set_column(place, MESSAGES.field(place), names))

    streams = CaptureStreams(data, HostCapture(str(tap.path), tap.name, "", None, tap.clock), codec, emit)
    for span in spans_of(tap.path, tap.index, clock=tap.clock):
        streams.take(read_columns(span))
        yield from found
        found.clear()
        release(data)
    streams.end()
    yield from found


def _dissected(tap: Tap, protocol: str, times: TimeRange) -> Iterator[pa.RecordBatch]:
    command = [PROGRAM, "-n", "-r", str(tap.path), "-Y", protocol, "-T", "fields", "-E", "occurrence=f"]
    command += [part for name in _FIELDS for part in ("-e", name)]
    process = child_processes.start(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        text=True, encoding="utf-8", errors="replace",
    )  # fmt: skip
    assert process.stdout is not None
    try:
        rows: list[dict[str, Any]] = []
        for line in process.stdout:
            row = _row(tap, line.rstrip("\n").split("\t"))
            if times.meets(row["t_first_ns"], row["t_first_ns"]):
                rows.append(row)
            if len(rows) == ROWS:
                yield pa.RecordBatch.from_pylist(rows, MESSAGES)
                rows.clear()
        yield pa.RecordBatch.from_pylist(rows, MESSAGES)
        if process.wait() != 0 and tap.index.problem is None:
            raise AnalysisError(f"{PROGRAM} ended with code {process.returncode} on {tap.path}")
    finally:
        process.kill()  # no effect unless the reader stopped early
        process.wait()
        process.stdout.close()


def _row(tap: Tap, values: list[str]) -> dict[str, Any]:
    found = dict(zip(_FIELDS, values, strict=True))
    seconds, _, fraction = found["frame.time_epoch"].partition(".")
    t_ns = tap.clock.at(int(seconds) * 10**9 + int(fraction.ljust(9, "0")[:9] or 0))
    return {
        "capture": tap.name,
        "host": tap.name,
        "direction": "in",
        "src": found["ip.src"] or found["ipv6.src"],
        "sport": int(found["tcp.srcport"] or found["udp.srcport"] or 0),
        "dst": found["ip.dst"] or found["ipv6.dst"],
        "dport": int(found["tcp.dstport"] or found["udp.dstport"] or 0),
        "connection": int(found["tcp.stream"] or 0),
        "stream_offset": max(int(found["tcp.seq"] or 1) - 1, 0),
        "length": int(found["tcp.len"] or 0),
        "t_first_ns": t_ns,
        "t_complete_ns": t_ns,
        "type": found["_ws.col.Info"].strip()[:TYPE_MAX],
        "retransmitted": bool(found["tcp.analysis.retransmission"]),
    }
