"""TCP segments of one part of a capture, as rows that tasks hand on: numbers and places, no payload."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from analysis.capture.pcap.batches import TimeRange, read_columns, spans_of
from analysis.capture.pcap.fields import Columns
from analysis.capture.pcap.index import build_index
from analysis.capture.pcap.reassemble import SYN
from analysis.capture.pcap.streams import TCP
from analysis.errors import CaptureError
from experiments import capture_parts

KEY = ("src_hi", "src_lo", "sport", "dst_hi", "dst_lo", "dport")
"""What tells TCP directions apart."""
_KEY_TYPES = {"sport": pa.int32(), "dport": pa.int32()}
SEGMENTS = pa.schema(
    [
        ("folder", pa.string()),  # of the parts of one capture
        ("part", pa.int64()),
        ("t_ns", pa.int64()),
        *((name, _KEY_TYPES.get(name, pa.int64())) for name in KEY),
        ("seq", pa.int64()),
        ("flags", pa.int32()),
        ("at", pa.int64()),  # where the payload stands in the part
        ("length", pa.int64()),  # payload bytes on the wire
        ("captured", pa.int64()),  # of which the part has this many
    ]
)


def read_segments(part: Path, port: int) -> Iterator[pa.RecordBatch]:
    """Segments from or to a port that carry payload or begin a connection, in the order of capture.

    A part that holds nothing, or nothing that can be read, has none: the analysis of the whole capture says
    what is wrong with it.
    """
    try:
        index = build_index(part)
    except CaptureError:
        return
    for span in spans_of(part, index, TimeRange()):
        for columns in read_columns(span):
            yield _batch(part, columns, port)


def _batch(part: Path, columns: Columns, port: int) -> pa.RecordBatch:
    wanted = (columns["proto"] == TCP) & ((columns["sport"] == port) | (columns["dport"] == port))
    wanted &= (columns["payload_length"] > 0) | (columns["flags"] & SYN != 0)
    rows = np.flatnonzero(wanted)
    payload_at = columns["payload_offset"][rows].astype(np.int64)
    length = columns["payload_length"][rows].astype(np.int64)
    values = {name: columns[name][rows] for name in (*KEY, "t_ns", "seq", "flags")}
    values |= {
        "at": columns["offset"][rows] + payload_at,
        "length": length,
        "captured": np.clip(columns["length"][rows] - payload_at, 0, length),
    }
    folder, number = str(part.parent), capture_parts.number(part)
    arrays = [
        pa.repeat(pa.scalar(folder), rows.size)
        if field.name == "folder"
        else pa.repeat(pa.scalar(number, pa.int64()), rows.size)
        if field.name == "part"
        else pa.array(values[field.name]).cast(field.type)
        for field in SEGMENTS
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=SEGMENTS)
