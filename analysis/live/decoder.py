"""Decodes rows of packets into published and delivered batches for the timelines.

A batch is delivered to a client when its EVENTS or SPARSE_EVENTS is complete. It is published when its
PUBLISH reaches the proxy, with the number in the first PUBLISHED after it. Captures of proxies have that
time, but they are the largest and not read during the run. Here the time of publication is when the batch
left the driver, plus the configured delay of its path (to the driver's gateway and back into the LAN). State
is kept per direction and per unanswered request, and is bounded.
"""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from analysis.capture.pcap.fields import DIRECTION, Columns
from analysis.capture.pcap.streams import format_address
from analysis.live.directions import CapturedSegment, DecodedMessage, LiveDirection
from analysis.live.payloads import Payloads
from analysis.schemas import PACKETS
from analysis.timelines.run_metadata import Host
from experiments.declared import Declared, Trait
from node.core.declaration import Reading
from node.core.message_layout import Codec

UNANSWERED_MAX = 100_000
_OF_SEGMENT = ("t_ns", "seq", "flags", "offset", "payload_offset", "payload_length", "length")
ROWS = pa.schema([PACKETS.field(name) for name in ("capture", *DIRECTION, *_OF_SEGMENT)])
"""The columns of packets that the decoder needs."""


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


class LiveDecoder:
    """Decodes all directions of all watched captures."""

    def __init__(
        self,
        payloads: Payloads,
        hosts: Mapping[str, Host],
        codec: Codec,
        declared: Declared,
        reading: Reading,
    ) -> None:
        """hosts: by the name of their capture."""
        self._payloads = payloads
        self._hosts = hosts
        self._reading = reading
        publish, answer = reading.publish or ("", "")
        # If subscribers also serve others, only the first kind of message is for themselves.
        carries = reading.carries[:1] if declared.by_host else reading.carries
        self._subscribers = declared.having(Trait.SUBSCRIBER)
        self._wanted = {
            role: {layout.type: layout for layout in map(codec.by_name.get, names) if layout is not None}
            for trait, names in ((Trait.PUBLISHER, (publish, answer)), (Trait.SUBSCRIBER, carries))
            for role in declared.having(trait)
        }
        self._directions: dict[tuple[str, tuple[int, ...]], LiveDirection | None] = {}
        self._reported: set[tuple[str, tuple[int, ...]]] = set()
        self._unanswered: OrderedDict[tuple[str, int, int], tuple[int, int]] = OrderedDict()
        self.newest_ns: dict[str, int] = {}
        """The time of the last segment read, by host."""

    def newly_stopped(self) -> Iterator[tuple[str, str]]:
        """Yield the host and reason of each direction that stopped since the last call."""
        for key, direction in self._directions.items():
            if direction is not None and direction.stopped and key not in self._reported:
                self._reported.add(key)
                yield self._hosts[key[0]].name, direction.stopped

    def feed(self, packets: pa.Table) -> Iterator[EventBatch]:
        """Decode packets (`ROWS`), which must be TCP segments, each capture's in order."""
        if not packets.num_rows:
            return
        captures = packets.column("capture").combine_chunks().dictionary_encode()
        codes, names = captures.indices.to_numpy(), captures.dictionary.to_pylist()
        edges = np.flatnonzero(np.diff(codes, prepend=-1, append=-1))
        for first, following in pairwise(edges.tolist()):
            some = packets.slice(first, following - first)
            columns = {name: some.column(name).to_numpy() for name in ROWS.names[1:]}
            for rows, content, shift in self._payloads.find(names[codes[first]], columns["offset"]):
                stretch = {name: values[rows] for name, values in columns.items()}
                yield from self._feed_stretch(names[codes[first]], stretch, content, shift)

    def _feed_stretch(
        self, capture: str, columns: Columns, content: memoryview, shift: int
    ) -> Iterator[EventBatch]:
        """Decode segments whose bytes are in one file."""
        host = self._hosts[capture]
        length, payload_at = columns["payload_length"], columns["payload_offset"].astype(np.int64)
        at = columns["offset"] - shift + payload_at
        end = at + np.clip(columns["length"] - payload_at, 0, length)
        keys = zip(*(columns[name].tolist() for name in DIRECTION), strict=True)
        rest = (columns["t_ns"], columns["seq"], columns["flags"], length, at, end)
        rows = zip(keys, *(values.tolist() for values in rest), strict=True)
        for key, t_ns, seq, flags, size, begin, stop in rows:
            direction = self._direction(capture, host, key)
            if direction is None:
                continue
            segment = CapturedSegment(t_ns, seq, flags, size, content[begin:stop])
            for message in direction.feed(segment):
                yield from self._batches(host, message)
        self.newest_ns[host.name] = max(self.newest_ns.get(host.name, 0), int(columns["t_ns"][-1]))

    def _direction(self, capture: str, host: Host, key: tuple[int, ...]) -> LiveDirection | None:
        """Return the state of a direction; None for messages that a subscriber sends."""
        if (capture, key) not in self._directions:
            leaving = format_address(key[0], key[1]) == host.address
            passed_over = leaving and host.role in self._subscribers
            self._directions[capture, key] = None if passed_over else LiveDirection(self._wanted[host.role])
        return self._directions[capture, key]

    def _batches(self, host: Host, message: DecodedMessage) -> Iterator[EventBatch]:
        head, t_ns = message.head, message.t_complete_ns
        stream, count = head["stream"], head.get("count", 1)
        if message.name in self._reading.carries:
            gone = self._reading.placeholder is not None and head.get("kind") == self._reading.placeholder
            covered = count if message.covered is None else message.covered
            yield EventBatch(False, host.name, stream, head["first_seq"], covered, 0 if gone else count, t_ns)
            return
        publish, answer = self._reading.publish or ("", "")
        to_server_ns = sum(host.lan_delay_us) * 1000  # a server's LAN link is as the publisher's
        if publish == answer:
            yield EventBatch(True, host.name, stream, head["first_seq"], count, count, t_ns + to_server_ns)
            return
        key = (host.name, stream, head["request"])
        if message.name == publish:
            # A repeated request has the time of its first transmission.
            self._unanswered.setdefault(key, (t_ns + to_server_ns, count))
            if len(self._unanswered) > UNANSWERED_MAX:
                self._unanswered.popitem(last=False)
        elif key in self._unanswered:
            t_ns, count = self._unanswered.pop(key)
            yield EventBatch(True, host.name, stream, head["first_seq"], count, count, t_ns)
