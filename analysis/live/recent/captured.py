"""The messages in the newest parts of one host's growing capture (`experiments.capture_parts`).

The parts are put together in a temporary file, every direction is made to begin with a message
(`analysis.live.recent.beginnings`), and the analysis' own machinery does the rest.
"""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from analysis.capture.pcap.batches import TimeRange, read_columns, spans_of
from analysis.capture.pcap.fields import Columns
from analysis.capture.pcap.index import build_index, map_bytes
from analysis.capture.pcap.streams import Conversations, HostCapture
from analysis.errors import CaptureError
from analysis.jobs.matching import Key, key_of
from analysis.live.recent.beginnings import Direction, begin_at_messages
from analysis.schemas import MESSAGES
from experiments import capture_parts
from node.core.layout import Codec

LEAD_S = 1  # read before what is asked for, to find where messages begin


@dataclass(frozen=True, slots=True)
class Newest:
    """Rows of MESSAGES whose `stream_offset` is TCP's sequence number and whose connection is 0."""

    messages: pa.Table
    last_ns: int | None  # the last packet's stamp; None: nothing came yet
    undecoded: frozenset[Key] = frozenset()  # not, or not to the end


NOTHING = Newest(MESSAGES.empty_table(), None)


def newest(capture: Path, host: HostCapture, codec: Codec, from_ns: int) -> Newest:
    """What a host sent and got since `from_ns`, and a little before. capture: the file that will be there."""
    with tempfile.TemporaryDirectory(prefix="cutset-recent-") as folder:
        path = Path(folder) / capture.name
        _join(_newest_parts(capture_parts.folder_of(capture), from_ns), path)
        return _messages(path, host, codec)


def _newest_parts(folder: Path, from_ns: int) -> list[Path]:
    """The parts that hold what came from LEAD_S before `from_ns` on."""
    parts = capture_parts.parts(folder)
    begun = [part for part in parts if capture_parts.number(part) <= from_ns // 10**9 - LEAD_S]
    return parts[max(0, len(begun) - 1) :]


def _join(parts: Sequence[Path], path: Path) -> None:
    """Parts as one capture; the last of them may still grow, and end within a packet."""
    with path.open("wb") as whole:
        for part in parts:
            content = part.read_bytes()
            whole.write(content[capture_parts.FILE_HEADER_BYTES if whole.tell() else 0 :])


def _messages(path: Path, host: HostCapture, codec: Codec) -> Newest:
    try:
        index = build_index(path)
    except CaptureError:
        return NOTHING
    data = map_bytes(path)
    windows = [columns for span in spans_of(path, index, TimeRange()) for columns in read_columns(span)]
    if not windows:
        return NOTHING
    columns: Columns = {name: np.concatenate([each[name] for each in windows]) for name in windows[0]}
    kept, bases = begin_at_messages(data, columns, host.port, frozenset(codec.by_type))
    undecoded = {
        (src, dst, sport, dport, 0) for (src, sport, dst, dport), base in bases.items() if base is None
    }
    batches: list[pa.RecordBatch] = []

    def take(table: str, batch: pa.RecordBatch) -> None:
        if table == "messages" and batch.num_rows:
            batches.append(_numbered(batch, bases))
        elif table == "decoding":
            undecoded.update(_unconnected(row) for row in batch.to_pylist() if row["stopped"])

    conversations = Conversations(data, host, codec, take)
    conversations.take([kept])
    conversations.end()
    return Newest(pa.Table.from_batches(batches, MESSAGES), index.last_ns, frozenset(undecoded))


def _unconnected(row: Mapping[str, Any]) -> Key:
    return key_of({**row, "connection": 0})


def _numbered(batch: pa.RecordBatch, bases: Mapping[Direction, int | None]) -> pa.RecordBatch:
    """With TCP's sequence numbers, which both ends see alike, in place of offsets from where each begins."""
    src, sport, dst, dport = (batch.column(name)[0].as_py() for name in ("src", "sport", "dst", "dport"))
    offsets = batch.column("stream_offset").to_numpy() + (bases[src, sport, dst, dport] or 0)
    columns = {name: batch.column(name) for name in MESSAGES.names}
    columns["stream_offset"] = pa.array(offsets & 0xFFFF_FFFF, pa.int64())
    columns["connection"] = pa.repeat(pa.scalar(0, columns["connection"].type), batch.num_rows)
    return pa.RecordBatch.from_arrays([columns[name] for name in MESSAGES.names], schema=MESSAGES)
