"""Selects packets by a filter of messages, from all captures of a run, in order of time.

If the filter has conditions on messages (type, stream, sequence numbers, lost), the selection is the packets
that carry their bytes, retransmissions included. If it has only times and places, the selection is all
packets there: acknowledgements, SYNs, other protocols. A packet comes from each capture that saw it; select
the captures of one place to get it once.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from analysis.capture.pcap.fields import DIRECTION, Columns
from analysis.capture.pcap.files.mapping import map_bytes
from analysis.capture.pcap.streams import halves
from analysis.capture.time_range import TimeRange
from analysis.inspect.packets.capture_files import Extent, Row, at_place, located_messages
from analysis.inspect.packets.filters import Filter
from analysis.inspect.packets.packet_comments import PacketComments
from analysis.inspect.packets.pcapng_writer import PcapngWriter
from analysis.inspect.packets.transfer_reader import Step, merge
from analysis.inspect.packets.wire import Ranges, RowKeys, direction_of
from analysis.taps.opening import Tap, Taps, time_zero
from analysis.taps.run_captures import captures_of
from analysis.timelines.run_metadata import RunMetadata
from experiments.files.whole_files import replacing
from experiments.records.key_log import key_lines
from experiments.records.rundir import RunDirectory
from topologies.errors import InputError

Mask = npt.NDArray[np.bool_]

APPLICATION = "cutset packets"
_SHOWN = ("t_ns", "offset", "length", "wire_length")
_WRITTEN = (*_SHOWN, *DIRECTION)
_READ = (*_WRITTEN, "seq", "payload_length")
_ENDS = (("src_hi", "src_lo"), ("dst_hi", "dst_lo"))


@dataclass(frozen=True, slots=True)
class PacketSelection:
    """The selected packets: captures, times, and `mask`. key_log: the keys of TLS connections, if logged."""

    captures: Sequence[Tap]
    times: TimeRange
    mask: Callable[[Columns], Mask]
    key_log: Path | None = None


def select_packets(
    run: RunDirectory, metadata: RunMetadata, wanted: Filter, at: str | None = None
) -> PacketSelection:
    """Return the packets that a filter of messages selects. at: only captures of this host or side of a link.

    Raises InputError if the run was not analysed or has no such place.
    """
    captures = captures_of(run)
    key_log = run.key_log if run.key_log.is_file() else None
    if at is not None:
        captures = at_place(captures, at, metadata)
    if not wanted.of_messages:
        at_places = partial(_at_places, places=_places(metadata, wanted))
        return PacketSelection(captures, wanted.times, at_places, key_log)
    extent = Extent()
    ranges = Ranges(
        (direction_of(row), first, row["length"])
        for row, first in _noting(located_messages(run, wanted), extent)
    )
    return PacketSelection(captures, extent.times, ranges.carried_by, key_log)


def _noting(messages: Iterable[tuple[Row, int]], extent: Extent) -> Iterator[tuple[Row, int]]:
    for row, first in messages:
        extent.add(row)
        yield row, first


@dataclass(frozen=True, slots=True)
class _Places:
    """Addresses of hosts as in PACKETS: one of each set must be at an end; or (sender, receiver) pairs."""

    ends: tuple[RowKeys, ...]
    pairs: RowKeys | None


def _places(metadata: RunMetadata, wanted: Filter) -> _Places:
    address = {name: halves(host.address) for name, host in metadata.hosts.items()}
    pairs = wanted.pairs
    return _Places(
        tuple(RowKeys(address[host] for host in hosts) for hosts in wanted.ends),
        None if pairs is None else RowKeys((*address[sender], *address[taker]) for sender, taker in pairs),
    )


def _at_places(packets: Columns, places: _Places) -> Mask:
    found = np.ones(packets["t_ns"].size, np.bool_)
    for hosts in places.ends:
        found &= np.any([hosts.find([packets[name] for name in end]) >= 0 for end in _ENDS], axis=0)
    if places.pairs is not None:
        found &= places.pairs.find([packets[name] for end in _ENDS for name in end]) >= 0
    return found


@dataclass(frozen=True, slots=True)
class WriteResult:
    """Numbers of packets written and of captures they come from."""

    packets: int
    captures: int  # captures with selected packets


def begin_capture(stream: BinaryIO, of: RunMetadata | Taps) -> PcapngWriter:
    """Begin a capture whose comment names the run, if there is one, and time 0."""
    run = f"run {of.run}; " if isinstance(of, RunMetadata) else ""
    return PcapngWriter(stream, APPLICATION, run + time_zero(of.zero_ns))


def write_packets(of: RunMetadata | Taps, choice: PacketSelection, writer: PcapngWriter) -> WriteResult:
    """Write the selected packets. Each capture becomes an interface of that name.

    Each packet of a run has a comment with the sending and receiving process. Keys of TLS connections come
    before all packets.
    """
    captures = choice.captures
    comments = None
    if isinstance(of, RunMetadata):
        writer.names({host.address: host.name for host in of.hosts.values()})
        comments = PacketComments(of)
    if choice.key_log is not None:
        writer.tls_keys(b"".join(key_lines(choice.key_log)))
    interfaces = {
        (number, link_type): writer.interface(capture.name, link_type)
        for number, capture in enumerate(captures)
        for link_type in capture.link_types
    }
    contents = [map_bytes(capture.path).data for capture in captures]
    packets, met = 0, set()
    for table in merge([_steps(number, capture, choice) for number, capture in enumerate(captures)]):
        columns = (table.column(name).to_pylist() for name in (*_SHOWN, "capture", "link_type"))
        directions = zip(*(table.column(name).to_pylist() for name in DIRECTION), strict=True)
        for t_ns, offset, length, wire_length, number, link_type, direction in zip(
            *columns, directions, strict=True
        ):
            data = bytes(contents[number][offset : offset + length])
            options = comments.options_of(direction) if comments else b""
            writer.packet(interfaces[number, link_type], t_ns, data, wire_length, options)
            met.add(number)
        packets += table.num_rows
    return WriteResult(packets, len(met))


def _steps(number: int, capture: Tap, choice: PacketSelection) -> Iterator[Step]:
    """Yield the selected packets of one capture in chunks."""
    for columns in capture.packets(choice.times, _READ):
        reached_ns = int(columns["t_ns"].max())
        places = np.flatnonzero(choice.mask(columns))
        places = places[np.argsort(columns["t_ns"][places], kind="stable")]
        shown = {name: pa.array(columns[name][places]) for name in (*_WRITTEN, "link_type")}
        shown["capture"] = pa.repeat(number, places.size)
        yield Step(pa.record_batch(shown), reached_ns)


def write_file(path: Path, of: RunMetadata | Taps, choice: PacketSelection) -> WriteResult:
    """Write the selected packets into a file. The file is complete, or absent if there are no packets.

    Raises InputError if it cannot be written.
    """
    try:
        with suppress(_NoPacketsError), replacing(path, sync=False) as stream:
            written = write_packets(of, choice, begin_capture(stream, of))
            if not written.packets:
                raise _NoPacketsError
    except OSError as error:
        raise InputError(f"--pcap {path}", None, "", f"cannot be written: {error.strerror}") from None
    return written


class _NoPacketsError(Exception):
    """Nothing was selected, so the file is not written."""
