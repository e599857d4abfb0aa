"""All TCP streams of one host's capture, and their messages: those of a codec, or markers of events.

The capture is read window by window. The segments of a port are selected (six numbers each, no payload),
grouped by direction and reassembled. Messages that are complete and old enough are decoded and emitted.
Between windows memory holds only the segments that still wait, whatever the size of the capture.
"""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from functools import cache, partial
from ipaddress import IPv4Address, IPv6Address, ip_address
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from analysis.arrays import Bytes, Ints, group_numbers
from analysis.capture.clocks.clock import REFERENCE, OffsetBounds
from analysis.capture.datagrams import DatagramMarkers
from analysis.capture.groups import GroupMemberships
from analysis.capture.markers import MarkerDecoder, MarkerSearch
from analysis.capture.pcap.decode import Emit, MessageDecoder
from analysis.capture.pcap.fields import DIRECTION, Columns
from analysis.capture.pcap.files.byte_ranges import TcpSegments
from analysis.capture.pcap.files.index import load_index
from analysis.capture.pcap.files.mapping import map_bytes, release
from analysis.capture.pcap.files.record_batches import read_columns, spans_of
from analysis.capture.pcap.reassemble import (
    HORIZON_NS,
    PIECES_MAX,
    Numbering,
    ReassembledConnection,
    SettledRange,
)
from analysis.capture.pcap.segments import pick_segments
from analysis.capture.time_range import EVER
from analysis.capture.tls.events import TlsConnections, TlsDecoder
from analysis.schemas import DECODING, GAPS
from node.core.message_layout import Codec

Direction = tuple[int, ...]
"""A TCP direction in one capture: the values of `DIRECTION`."""

_COUNTS_ROWS = 4_096
MISDATED_MAX = 8
"""This many of a window's latest time stamps are ignored when its end is determined: they may be wrong."""


@dataclass(frozen=True, slots=True)
class HostCapture:
    """A capture of one host. address: the host's, to distinguish in from out. port: where the system under
    test listens; None is any. clock: the host's.
    """

    path: str
    host: str
    address: str
    port: int | None
    clock: OffsetBounds = REFERENCE


@dataclass(frozen=True, slots=True)
class WaitLimits:
    """How long segments wait for earlier ones: see `analysis.capture.pcap.reassemble`."""

    horizon_ns: int = HORIZON_NS
    pieces_max: int = PIECES_MAX


def extract_messages(
    capture: HostCapture, codec: Codec | MarkerSearch, emit: Emit, tls: TlsConnections | None = None
) -> None:
    """Decode every stream of a capture and emit batches of MESSAGES, GAPS and DECODING, roughly in order of
    time; messages in TLS connections come last.

    tls: reads TLS connections. Raises CaptureError if the capture cannot be read at all.
    """
    path = Path(capture.path)
    data = map_bytes(path)
    conversations = CaptureStreams(data, capture, codec, emit, tls=tls)
    groups = GroupMemberships(capture.host, capture.address)
    datagrams = (
        DatagramMarkers(data, codec, groups, partial(_name, capture), emit)
        if isinstance(codec, MarkerSearch)
        else None
    )
    for span in spans_of(path, load_index(path), EVER, capture.clock):
        window = read_columns(span)
        conversations.take(datagrams.passing(window) if datagrams else window)
        if datagrams:
            datagrams.settle()
        release(data)
    conversations.end()
    if datagrams:
        datagrams.end()


class CaptureStreams:
    """All streams of one host's capture, read window by window."""

    def __init__(
        self,
        data: Bytes,
        capture: HostCapture,
        codec: Codec | MarkerSearch,
        emit: Emit,
        patience: WaitLimits = WaitLimits(),
        *,
        tls: TlsConnections | None = None,
    ) -> None:
        self._data = data
        self._capture = capture
        self._codec = codec
        self._emit = emit
        self._patience = patience
        self._flows: dict[Direction, _Flow] = {}
        self._latest_ns = 0
        self._counts: list[dict[str, Any]] = []
        self._tls = tls
        self._tls_ended: list[tuple[dict[str, Any], TlsDecoder]] = []

    def take(self, window: Iterable[Columns]) -> None:
        """Take the next packets, and emit the messages that are complete and old enough."""
        times = []
        for direction, segments in directions(window, self._capture.port):
            times.append(segments.t_ns)
            self._follow(direction, segments)
        if times:
            self._latest_ns = _latest(np.concatenate(times))
        waiting = sum(flow.connection.waiting for flow in self._flows.values())
        share = self._patience.pieces_max
        if waiting > share:
            share //= len(self._flows)
        before_ns = self._latest_ns - self._patience.horizon_ns
        for flow in self._flows.values():
            self._give(flow, flow.connection.settle(before_ns, share), ended=False)
        if self._tls:
            self._tls.settled()

    def end(self) -> None:
        """Emit the rest, after the last packet."""
        for flow in self._flows.values():
            self._end(flow)
        self._flows.clear()
        self._write_counts()
        if self._tls:
            self._tls.end(self._emit, self._tls_ended)

    def _follow(self, direction: Direction, segments: TcpSegments) -> None:
        flow = self._flows.get(direction)
        numbering = flow.numbering if flow else Numbering()
        for number, share in numbering.split(segments):
            if flow is None or number != flow.connection.number:
                if flow is not None:
                    self._end(flow)
                flow = self._flows[direction] = self._begin(
                    direction, numbering, ReassembledConnection(number, share)
                )
            flow.connection.add(share)

    def _begin(
        self, direction: Direction, numbering: Numbering, connection: ReassembledConnection
    ) -> "_Flow":
        names = _name(self._capture, direction) | {"connection": pa.scalar(connection.number, pa.int32())}
        if self._tls is not None:
            tls = self._tls.decoder(self._data, names, synchronised=connection.synchronised)
            return _Flow(numbering, connection, tls, names)
        if isinstance(self._codec, MarkerSearch):
            return _Flow(numbering, connection, MarkerDecoder(self._data, self._codec, names), names)
        decoder = MessageDecoder(self._data, self._codec, names, synchronised=connection.synchronised)
        return _Flow(numbering, connection, decoder, names)

    def _give(self, flow: "_Flow", part: SettledRange | None, *, ended: bool) -> None:
        if part is not None:
            for gaps in _gaps(part, flow.names):
                self._emit("gaps", gaps)
        if part is not None or ended:
            for batch in flow.decoder.decode(part, ended=ended):
                self._emit("messages", batch)

    def _end(self, flow: "_Flow") -> None:
        self._give(flow, flow.connection.end(), ended=True)
        if isinstance(flow.decoder, TlsDecoder):
            self._tls_ended.append((_count(flow), flow.decoder))  # its counts are not known yet
            return
        self._counts.append(_count(flow))
        if len(self._counts) >= _COUNTS_ROWS:
            self._write_counts()

    def _write_counts(self) -> None:
        self._emit("decoding", pa.RecordBatch.from_pylist(self._counts, schema=DECODING))
        self._counts = []


@dataclass(slots=True)
class _Flow:
    """A TCP direction, and the connection that uses it now."""

    numbering: Numbering
    connection: ReassembledConnection
    decoder: MessageDecoder | MarkerDecoder | TlsDecoder
    names: dict[str, pa.Scalar]


def _latest(t_ns: Ints) -> int:
    """Return the latest time of a window, ignoring a few wrong time stamps."""
    place = max((t_ns.size - 1) // 2, t_ns.size - 1 - MISDATED_MAX)
    return int(np.partition(t_ns, place)[place])


def directions(window: Iterable[Columns], port: int | None) -> Iterator[tuple[Direction, TcpSegments]]:
    """Yield the segments of each TCP direction, from or to a port or all, in capture order."""
    parts = [pick_segments(columns, port) for columns in window]
    if not parts:
        return
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    groups = group_numbers([pa.array(columns[name]) for name in DIRECTION])
    order = np.argsort(groups, kind="stable")
    bounds = np.flatnonzero(np.diff(groups[order], prepend=-1, append=-1))
    for first, following in pairwise(bounds.tolist()):
        rows = order[first:following]
        segments = TcpSegments(**{field.name: columns[field.name][rows] for field in fields(TcpSegments)})
        yield tuple(int(columns[name][rows[0]]) for name in DIRECTION), segments


def _name(capture: HostCapture, direction: Direction) -> dict[str, pa.Scalar]:
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
    """Format an address from its two columns in PACKETS. Values below 2^32 are IPv4 addresses, except ::1."""
    value = (high & 0xFFFF_FFFF_FFFF_FFFF) << 64 | low & 0xFFFF_FFFF_FFFF_FFFF
    return str(IPv4Address(value) if value < 1 << 32 and value != 1 else IPv6Address(value))


@cache
def halves(address: str) -> tuple[int, int]:
    """Return an address as in PACKETS: two signed halves; the first is 0 for IPv4."""
    parsed = ip_address(address)
    if isinstance(parsed, IPv4Address):
        return 0, int(parsed)
    high, low = (int.from_bytes(parsed.packed[at : at + 8], signed=True) for at in (0, 8))
    return high, low


def _gaps(part: SettledRange, names: dict[str, pa.Scalar]) -> Iterator[pa.RecordBatch]:
    for cause, (starts, lengths) in (("missing", part.missing), ("snapped", part.pieces.snapped)):
        if not starts.size:
            continue
        columns = {name: pa.repeat(value, starts.size) for name, value in names.items()}
        columns |= {"stream_offset": pa.array(starts), "length": pa.array(lengths)}
        columns["cause"] = pa.repeat(cause, starts.size)
        yield pa.RecordBatch.from_arrays([columns[name] for name in GAPS.names], schema=GAPS)


_COUNTED = ("segments", "bytes", "stray_segments", "missing_bytes", "snapped_bytes", "reset")


def _count(flow: _Flow) -> dict[str, Any]:
    connection = flow.connection
    return {name: value.as_py() for name, value in flow.names.items()} | {
        **{name: getattr(connection, name) for name in _COUNTED},
        "retransmitted_segments": connection.repeated_segments,
        "retransmitted_bytes": connection.repeated_bytes,
        **asdict(flow.decoder.counts),
    }
