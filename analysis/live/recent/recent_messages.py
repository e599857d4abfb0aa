"""Messages of the last seconds of a running run, as rows of TRANSFERS.

Both ends of each message are matched by TCP sequence numbers, from the newest parts of the hosts' captures.
Packets still buffered by the kernel and tcpdump, about the last second, are not seen. A message without an
observed arrival is not called lost if it left just before the end of the receiver's capture, or if the
receiver's stream could not be followed.

The newest parts of a host's growing capture (`experiments.records.capture_parts`) are joined in a temporary
file, every direction is made to begin with a message (`analysis.live.recent.beginnings`), and the code of the
complete analysis does the rest.
"""

import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc

from analysis.capture.markers import MarkerSearch
from analysis.capture.pcap.files.byte_ranges import TcpSegments
from analysis.capture.pcap.files.format import Bytes
from analysis.capture.pcap.files.index import build_index
from analysis.capture.pcap.files.mapping import map_bytes
from analysis.capture.pcap.files.record_batches import read_columns, spans_of
from analysis.capture.pcap.streams import CaptureStreams, Direction, HostCapture, directions, format_address
from analysis.capture.time_range import EVER
from analysis.errors import AnalysisError, CaptureError
from analysis.jobs.matching import Key, Receivers, key_of, match
from analysis.live.recent.beginnings import begin_at_first_byte, begin_at_message
from analysis.schemas import LOST, MESSAGES, TRANSFERS, UNSEEN
from experiments.planned.plan import Plan
from experiments.records import capture_parts
from experiments.records.rundir import RunDirectory
from node.core.message_layout import Codec

GRACE_NS = 1_000_000_000  # after which a message without an observed arrival is called lost
TOGETHER_NS = 2_500_000_000
"""Captures of busy interfaces end within this time of each other; all are shown up to the earliest end."""

_Ends = tuple[str, int, str, int]
"""A TCP direction: source address and port, destination address and port."""
LEAD_S = 1  # read in addition before the requested time, to find where messages begin


@dataclass(frozen=True, slots=True)
class RecentBytes:
    """Rows of MESSAGES whose `stream_offset` is TCP's sequence number and whose connection is 0."""

    messages: pa.Table
    last_ns: int | None  # time stamp of the last packet; None: no packet yet
    undecoded: frozenset[Key] = frozenset()  # directions not decoded, or not to the end


NOTHING = RecentBytes(MESSAGES.empty_table(), None)


@dataclass(frozen=True, slots=True)
class RecentTransfers:
    """Rows of TRANSFERS by time, and the end of the captures (CLOCK_REALTIME ns; None: no packet yet)."""

    rows: pa.Table
    seen_until_ns: int | None


def recent_transfers(
    run: RunDirectory,
    plan: Plan,
    codec: Codec | MarkerSearch,
    from_ns: int,
    hosts: Collection[str] | None = None,
) -> RecentTransfers:
    """Return the messages sent or received since `from_ns`.

    codec: of the system's messages; for programs the markers of events, searched in TCP. hosts: at least one
    end of each message is among them (default: all); captures of other hosts are read only if they
    communicated with these. Raises AnalysisError if no host is captured.
    """
    addresses = {host.name: host.address for host in plan.hosts}
    names = {address: name for name, address in addresses.items()}
    captures = {capture.host: capture.file for capture in plan.captures if capture.host}
    port = None if isinstance(codec, MarkerSearch) else plan.port or 0
    if not captures:
        raise AnalysisError("no recent messages: no host of this experiment is captured")
    tables: list[pa.Table] = [MESSAGES.empty_table()]
    seen: dict[str, int] = {}
    undecoded: set[Key] = set()

    def read(some: Collection[str]) -> set[str]:
        """Read these hosts' captures, and return the hosts that they communicated with."""
        peers: set[str] = set()
        for name in some:
            path = run.captures / captures[name]
            host = HostCapture("", name, addresses[name], port)
            found = newest(path, host, codec, from_ns)
            tables.append(found.messages)
            undecoded.update(found.undecoded)
            if found.last_ns is not None:
                seen[name] = found.last_ns
            for end in ("src", "dst"):
                peers.update(names.get(each, "") for each in found.messages.column(end).unique().to_pylist())
        return peers

    first = [name for name in captures if hosts is None or name in hosts]
    peers = read(first)
    read([name for name in captures if name in peers and name not in first])
    messages = pa.concat_tables(tables)
    sides = [messages.filter(pc.equal(messages.column("direction"), side)) for side in ("out", "in")]
    if not messages.num_rows:
        return RecentTransfers(TRANSFERS.empty_table(), None)
    until_ns = min(last_ns for last_ns in seen.values() if last_ns >= max(seen.values()) - TOGETHER_NS)
    receivers = Receivers(frozenset(seen), undecoded=frozenset(undecoded))
    rows = _patient(match(sides[0], sides[1], names, receivers), seen)
    times = rows.column("t_ns")
    wanted = pc.and_(pc.greater_equal(times, from_ns), pc.less_equal(times, until_ns))
    return RecentTransfers(rows.filter(wanted).sort_by("t_ns"), until_ns)


def _patient(rows: pa.Table, seen: Mapping[str, int]) -> pa.Table:
    """Mark lost messages that left less than GRACE_NS before their receiver's capture ends as unseen."""
    hosts = pa.array(list(seen), pa.string())
    ends = pa.array(list(seen.values()), pa.int64())
    until = ends.take(pc.index_in(rows.column("receiver"), value_set=hosts).combine_chunks())
    late = pc.less(pc.subtract(until, rows.column("t_ns")), GRACE_NS)
    early = pc.and_(pc.equal(rows.column("fate"), LOST), pc.fill_null(late, fill_value=False))
    fate = pc.if_else(early, UNSEEN, rows.column("fate"))
    place = TRANSFERS.get_field_index("fate")
    return rows.set_column(place, TRANSFERS.field("fate"), fate.cast(TRANSFERS.field("fate").type))


def newest(capture: Path, host: HostCapture, codec: Codec | MarkerSearch, from_ns: int) -> RecentBytes:
    """Return a host's messages since shortly before `from_ns`. capture: the path of the joined capture."""
    with tempfile.TemporaryFile() as whole:  # without a name: it goes with the sandbox
        _join(_newest_parts(capture_parts.folder_of(capture), from_ns), whole)
        return _messages(Path(f"/proc/self/fd/{whole.fileno()}"), host, codec)


def _newest_parts(folder: Path, from_ns: int) -> list[Path]:
    """Return the parts with packets from LEAD_S before `from_ns` on."""
    parts = capture_parts.parts(folder)
    begun = [part for part in parts if capture_parts.number(part) <= from_ns // 10**9 - LEAD_S]
    return parts[max(0, len(begun) - 1) :]


def _join(parts: Sequence[Path], whole: IO[bytes]) -> None:
    """Join parts to one capture. The last part may still grow, and end within a packet."""
    for part in parts:
        content = part.read_bytes()
        whole.write(content[capture_parts.FILE_HEADER_BYTES if whole.tell() else 0 :])
    whole.flush()


def _messages(path: Path, host: HostCapture, codec: Codec | MarkerSearch) -> RecentBytes:
    try:
        index = build_index(path)
    except CaptureError:
        return NOTHING
    data = map_bytes(path)
    windows = [columns for span in spans_of(path, index, EVER) for columns in read_columns(span)]
    if not windows:
        return NOTHING
    bases: dict[_Ends, int] = {}
    undecoded: set[Key] = set()
    begun: list[tuple[Direction, TcpSegments]] = []
    for direction, segments in directions(windows, host.port):
        rest, base = _beginning(data, segments, codec)
        src_hi, src_lo, sport, dst_hi, dst_lo, dport = direction
        src, dst = format_address(src_hi, src_lo), format_address(dst_hi, dst_lo)
        if base is None:
            undecoded.add((src, dst, sport, dport, 0))
        else:
            bases[src, sport, dst, dport] = base
            begun.append((direction, rest))
    batches: list[pa.RecordBatch] = []

    def take(table: str, batch: pa.RecordBatch) -> None:
        if table == "messages" and batch.num_rows:
            batches.append(_numbered(batch, bases))
        elif table == "decoding":
            undecoded.update(_unconnected(row) for row in batch.to_pylist() if row["stopped"])

    conversations = CaptureStreams(data, host, codec, take)
    conversations.take_segments(begun)
    conversations.end()
    return RecentBytes(pa.Table.from_batches(batches, MESSAGES), index.last_ns, frozenset(undecoded))


def _beginning(
    data: Bytes, segments: TcpSegments, codec: Codec | MarkerSearch
) -> tuple[TcpSegments, int | None]:
    if isinstance(codec, MarkerSearch):
        return begin_at_first_byte(segments)
    return begin_at_message(data, segments, frozenset(codec.by_type))


def _unconnected(row: Mapping[str, Any]) -> Key:
    return key_of({**row, "connection": 0})


def _numbered(batch: pa.RecordBatch, bases: Mapping[_Ends, int]) -> pa.RecordBatch:
    """Replace stream offsets by TCP sequence numbers, which are equal at both ends."""
    src, sport, dst, dport = (batch.column(name)[0].as_py() for name in ("src", "sport", "dst", "dport"))
    offsets = batch.column("stream_offset").to_numpy() + bases[src, sport, dst, dport]
    columns = {name: batch.column(name) for name in MESSAGES.names}
    columns["stream_offset"] = pa.array(offsets & 0xFFFF_FFFF, pa.int64())
    columns["connection"] = pa.repeat(pa.scalar(0, columns["connection"].type), batch.num_rows)
    return pa.RecordBatch.from_arrays([columns[name] for name in MESSAGES.names], schema=MESSAGES)
