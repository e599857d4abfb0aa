"""All TCP streams of one host's capture, and the messages in them.

Segments that belong to a port are picked out of the capture (six numbers each, no payload), grouped by
direction, put together and decoded, one direction after the other. Memory holds those numbers for the whole
capture, and payload only in windows.
"""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from ipaddress import IPv4Address, IPv6Address
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from analysis.pcap.batches import TimeRange, read_columns, spans_of
from analysis.pcap.decode import Decoding, decode
from analysis.pcap.fields import Columns
from analysis.pcap.format import Integers
from analysis.pcap.index import load_index, map_bytes
from analysis.pcap.reassemble import SYN, Segments, Stream, reassemble
from analysis.schemas import DECODING, GAPS
from node.core.layout import Codec

TCP = 6
_KEY = ("src_hi", "src_lo", "sport", "dst_hi", "dst_lo", "dport")

Emit = Callable[[str, pa.RecordBatch], None]
"""Takes a batch of the table of this name: messages, gaps or decoding."""


@dataclass(frozen=True, slots=True)
class HostCapture:
    """A capture of one host. `address` tells in from out; `port` is where the system under test listens."""

    path: str
    host: str
    address: str
    port: int


def extract_messages(capture: HostCapture, codec: Codec, emit: Emit) -> None:
    """Decode every stream of a capture and hand out batches of MESSAGES, GAPS and DECODING.

    Raises CaptureError if the capture cannot be read at all.
    """
    path = Path(capture.path)
    data = map_bytes(path)
    decoding: list[dict[str, Any]] = []
    for direction, segments in directions(path, capture.port):
        names = _name(capture, direction)
        for stream in reassemble(segments):
            counts = Decoding()
            stream_names = names | {"connection": pa.scalar(stream.connection, pa.int32())}
            for batch in decode(data, stream, codec, stream_names, counts):
                emit("messages", batch)
            gaps = _gaps(stream, stream_names)
            if gaps.num_rows:
                emit("gaps", gaps)
            decoding.append(_count(stream, stream_names) | asdict(counts))
    emit("decoding", pa.RecordBatch.from_pylist(decoding, schema=DECODING))


def directions(path: Path, port: int) -> Iterator[tuple[tuple[int, ...], Segments]]:
    """The segments of each TCP direction from or to a port, in the order of capture."""
    parts = [
        _pick(columns, port)
        for span in spans_of(path, load_index(path), TimeRange())
        for columns in read_columns(span)
    ]
    if not parts:
        return
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    groups = _group(columns)
    order = np.argsort(groups, kind="stable")
    bounds = np.flatnonzero(np.diff(groups[order], prepend=-1, append=-1))
    for first, following in pairwise(bounds.tolist()):
        rows = order[first:following]
        payload_at = columns["payload_offset"][rows].astype(np.int64)
        length = columns["payload_length"][rows].astype(np.int64)
        yield (
            tuple(int(columns[name][rows[0]]) for name in _KEY),
            Segments(
                t_ns=columns["t_ns"][rows],
                seq=columns["seq"][rows],
                flags=columns["flags"][rows].astype(np.int64),
                at=columns["offset"][rows] + payload_at,
                length=length,
                captured=np.clip(columns["length"][rows] - payload_at, 0, length),
            ),
        )


def _pick(columns: Columns, port: int) -> Columns:
    """Keep segments of this port that have payload or begin a connection."""
    wanted = (columns["proto"] == TCP) & ((columns["sport"] == port) | (columns["dport"] == port))
    wanted &= (columns["payload_length"] > 0) | (columns["flags"] & SYN != 0)
    kept = (*_KEY, "t_ns", "seq", "flags", "offset", "length", "payload_offset", "payload_length")
    rows = np.flatnonzero(wanted)
    return {name: columns[name][rows] for name in kept}


def _group(columns: Columns) -> Integers:
    """Number each row's TCP direction, by hashing one key column after the other (exact, and no sort)."""
    groups = np.zeros(columns["sport"].size, np.int64)
    for name in _KEY:
        codes = pa.array(columns[name]).dictionary_encode()
        joined = groups * max(len(codes.dictionary), 1) + codes.indices.to_numpy()
        groups = pa.array(joined).dictionary_encode().indices.to_numpy().astype(np.int64)
    return groups


def _name(capture: HostCapture, direction: tuple[int, ...]) -> dict[str, pa.Scalar]:
    src_hi, src_lo, sport, dst_hi, dst_lo, dport = direction
    src, dst = format_address(src_hi, src_lo), format_address(dst_hi, dst_lo)
    return {
        "capture": pa.scalar(Path(capture.path).stem),
        "host": pa.scalar(capture.host),
        "direction": pa.scalar("out" if src == capture.address else "in"),
        "src": pa.scalar(src),
        "sport": pa.scalar(sport, pa.int32()),
        "dst": pa.scalar(dst),
        "dport": pa.scalar(dport, pa.int32()),
    }


def format_address(high: int, low: int) -> str:
    """An address as people write it, from its columns in PACKETS. All below 2^32 is taken for IPv4."""
    value = (high & 0xFFFF_FFFF_FFFF_FFFF) << 64 | low & 0xFFFF_FFFF_FFFF_FFFF
    return str(IPv4Address(value) if value < 1 << 32 else IPv6Address(value))


def _gaps(stream: Stream, names: dict[str, pa.Scalar]) -> pa.RecordBatch:
    parts = []
    for cause, (starts, lengths) in (("missing", stream.missing), ("snapped", stream.snapped)):
        columns = {name: pa.repeat(value, starts.size) for name, value in names.items()}
        columns |= {"stream_offset": pa.array(starts), "length": pa.array(lengths)}
        columns["cause"] = pa.repeat(cause, starts.size)
        parts.append(pa.RecordBatch.from_arrays([columns[name] for name in GAPS.names], schema=GAPS))
    return pa.concat_batches(parts)


def _count(stream: Stream, names: dict[str, pa.Scalar]) -> dict[str, Any]:
    repeated = stream.repeated_end - stream.repeated_start
    return {name: value.as_py() for name, value in names.items()} | {
        "segments": stream.segments,
        "bytes": int(stream.pieces.length.sum()),
        "retransmitted_bytes": int(repeated.sum()),
        "stray_segments": stream.stray_segments,
        "missing_bytes": int(stream.missing[1].sum()),
        "snapped_bytes": int(stream.snapped[1].sum()),
    }
