"""Decodes rows of packets into published and delivered batches for the timelines.

The segments of each capture are reassembled and decoded as after the run (`CaptureStreams`), without waiting
for retransmissions. A batch is delivered to a client when the message that carries it is complete. It is
published when its PUBLISH reaches the proxy, with the number in the first PUBLISHED after it. Captures of
proxies have that time, but they are the largest and not read during the run. Here the time of publication is
when the batch left the driver, plus the configured delay of its path (to the driver's gateway and back into
the LAN). State is kept per direction and per unanswered request, and is bounded.
"""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from analysis.capture.pcap.fields import DIRECTION
from analysis.capture.pcap.segments import TCP
from analysis.capture.pcap.streams import CaptureStreams, Direction, HostCapture, WaitLimits, halves
from analysis.live.payloads import PartedCapture
from analysis.schemas import MESSAGES, PACKETS
from analysis.timelines.run_metadata import Host
from experiments.declared import Declared, Trait
from node.core.declaration import Reading
from node.core.message_layout import Codec

UNANSWERED_MAX = 100_000
AT_ONCE = WaitLimits(horizon_ns=-(1 << 60))
"""Messages are emitted when they are complete; later repetitions do not matter here."""
_OF_SEGMENT = ("t_ns", "seq", "flags", "offset", "payload_offset", "payload_length", "length")
ROWS = pa.schema([PACKETS.field(name) for name in ("capture", *DIRECTION, *_OF_SEGMENT)])
"""The columns of packets that the decoder needs."""


_READ = ["type", "stream", "first_seq", "count", "covered", "kind", "request", "t_complete_ns"]


@dataclass(frozen=True, slots=True)
class EventBatch:
    """Consecutive sequence numbers of a stream. events: how many are events; the others are collected."""

    published: bool  # False: delivered
    host: str
    stream: int
    first_seq: int
    count: int
    events: int
    t_ns: int


@dataclass(slots=True)
class _Watched:
    """A watched capture, and its messages that were not taken yet."""

    host: Host
    streams: CaptureStreams
    found: list[pa.RecordBatch]
    reported: set[Direction] = field(default_factory=set)


class LiveDecoder:
    """Decodes all directions of all watched captures."""

    def __init__(
        self,
        captures: Path,
        hosts: Mapping[str, Host],
        codec: Codec,
        declared: Declared,
        reading: Reading,
    ) -> None:
        """Watch the captures in a folder. hosts: by the name of their capture."""
        self._captures = captures
        self._hosts = hosts
        self._codec = codec
        self._reading = reading
        # If subscribers also serve others, only the first kind of message is for themselves.
        carries = reading.carries[:1] if declared.by_host else reading.carries
        self._subscribers = declared.having(Trait.SUBSCRIBER)
        self._wanted = {
            role: frozenset(names)
            for trait, names in ((Trait.PUBLISHER, reading.publish or ()), (Trait.SUBSCRIBER, carries))
            for role in declared.having(trait)
        }
        self._watched: dict[str, _Watched] = {}
        self._unanswered: OrderedDict[tuple[str, int, int], tuple[int, int]] = OrderedDict()
        self.newest_ns: dict[str, int] = {}
        """The time of the last segment read, by host."""

    def newly_stopped(self) -> Iterator[tuple[str, str]]:
        """Yield the host and reason of each direction that stopped since the last call."""
        for watched in self._watched.values():
            for direction, why in watched.streams.stopped():
                if direction not in watched.reported:
                    watched.reported.add(direction)
                    yield watched.host.name, why

    def feed(self, packets: pa.Table) -> Iterator[EventBatch]:
        """Decode packets (`ROWS`), which must be TCP segments, each capture's in order."""
        if not packets.num_rows:
            return
        captures = packets.column("capture").combine_chunks().dictionary_encode()
        codes, names = captures.indices.to_numpy(), captures.dictionary.to_pylist()
        edges = np.flatnonzero(np.diff(codes, prepend=-1, append=-1))
        for first, following in pairwise(edges.tolist()):
            yield from self._feed(names[codes[first]], packets.slice(first, following - first))

    def _feed(self, capture: str, packets: pa.Table) -> Iterator[EventBatch]:
        """Decode packets of one capture. Messages that a subscriber sends are left out."""
        watched = self._watched.get(capture) or self._watch(capture)
        host = watched.host
        newest_ns = packets.column("t_ns")[-1].as_py()
        self.newest_ns[host.name] = max(self.newest_ns.get(host.name, 0), newest_ns)
        columns = {name: packets.column(name).to_numpy() for name in ROWS.names[1:]}
        if host.role in self._subscribers:
            high, low = halves(host.address)
            came = (columns["src_hi"] != high) | (columns["src_lo"] != low)
            columns = {name: values[came] for name, values in columns.items()}
        watched.streams.take([columns | {"proto": np.full(columns["t_ns"].size, TCP)}])
        for message in self._messages(watched):
            yield from self._batches(host, message)

    def _watch(self, capture: str) -> _Watched:
        host, path = self._hosts[capture], self._captures / f"{capture}.pcap"
        found: list[pa.RecordBatch] = []

        def emit(table: str, batch: pa.RecordBatch) -> None:
            if table == "messages":
                found.append(batch)

        of_host = HostCapture(str(path), host.name, host.address, None)
        streams = CaptureStreams(PartedCapture(path), of_host, self._codec, emit, AT_ONCE)
        return self._watched.setdefault(capture, _Watched(host, streams, found))

    def _messages(self, watched: _Watched) -> list[dict[str, Any]]:
        """Take the wanted messages that are complete, in order of time."""
        wanted = self._wanted[watched.host.role]
        rows = pa.Table.from_batches(watched.found, MESSAGES).select(_READ).to_pylist()
        watched.found.clear()
        found = [row for row in rows if row["type"] in wanted and row["t_complete_ns"] is not None]
        return sorted(found, key=lambda row: row["t_complete_ns"])

    def _batches(self, host: Host, message: Mapping[str, Any]) -> Iterator[EventBatch]:
        stream, t_ns, first_seq = message["stream"], message["t_complete_ns"], message["first_seq"]
        count = 1 if message["count"] is None else message["count"]
        if message["type"] in self._reading.carries:
            gone = self._reading.placeholder is not None and message["kind"] == self._reading.placeholder
            covered = count if message["covered"] is None else message["covered"]
            yield EventBatch(False, host.name, stream, first_seq, covered, 0 if gone else count, t_ns)
            return
        publish, answer = self._reading.publish or ("", "")
        to_server_ns = sum(host.lan_delay_us) * 1000  # a server's LAN link is as the publisher's
        if publish == answer:
            yield EventBatch(True, host.name, stream, first_seq, count, count, t_ns + to_server_ns)
            return
        key = (host.name, stream, message["request"])
        if message["type"] == publish:
            # A repeated request has the time of its first transmission.
            self._unanswered.setdefault(key, (t_ns + to_server_ns, count))
            if len(self._unanswered) > UNANSWERED_MAX:
                self._unanswered.popitem(last=False)
        elif key in self._unanswered:
            t_ns, count = self._unanswered.pop(key)
            yield EventBatch(True, host.name, stream, first_seq, count, count, t_ns)
