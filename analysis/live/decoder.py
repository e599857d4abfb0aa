"""From rows of segments to what the timelines count: which batches were published and which arrived, when.

A batch arrives at a client when EVENTS or SPARSE_EVENTS came in whole. It is published when its PUBLISH
reached the proxy, under the number that the first PUBLISHED after it gives. Captures of proxies, which tell
when that was, are the largest of all and not read while the run goes on: here it is when it left the driver,
and the delay that its way is configured to have (to the driver's gateway and back into the LAN). State is
kept per direction and per request without an answer, and bounded.
"""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

from analysis.capture.pcap.fields import DIRECTION
from analysis.capture.pcap.mapping import map_bytes
from analysis.capture.pcap.streams import format_address
from analysis.errors import CaptureError
from analysis.live.directions import Direction, Message, Segment
from analysis.timelines.run_metadata import Host
from experiments.declared import Declared, Trait
from node.core.declaration import Reading
from node.core.message_layout import Codec

UNANSWERED_MAX = 100_000


@dataclass(frozen=True, slots=True)
class Batch:
    """Some consecutive sequence numbers of a stream. `events` of them are events, the others collected."""

    published: bool  # else it arrived
    host: str
    stream: int
    first_seq: int
    count: int
    events: int
    t_ns: int


class Decoder:
    """Decodes all directions of all watched captures, which are told apart by the folder of their parts."""

    def __init__(self, hosts: Mapping[str, Host], codec: Codec, declared: Declared, reading: Reading) -> None:
        """hosts: by the name of the folder of their parts."""
        self._hosts = hosts
        self._reading = reading
        publish, answer = reading.publish or ("", "")
        # Where subscribers serve others, too, only the usual message is for them; others are to be kept.
        carries = reading.carries[:1] if declared.by_host else reading.carries
        self._subscribers = declared.having(Trait.SUBSCRIBER)
        self._wanted = {
            role: {layout.type: layout for layout in map(codec.by_name.get, names) if layout is not None}
            for trait, names in ((Trait.PUBLISHER, (publish, answer)), (Trait.SUBSCRIBER, carries))
            for role in declared.having(trait)
        }
        self._directions: dict[tuple[str, tuple[int, ...]], Direction | None] = {}
        self._told: set[tuple[str, tuple[int, ...]]] = set()
        self._unanswered: OrderedDict[tuple[str, int, int], tuple[int, int]] = OrderedDict()
        self.newest_ns: dict[str, int] = {}
        """By host, the time of the last segment that was read."""

    def newly_stopped(self) -> Iterator[tuple[str, str]]:
        """Hosts of which a direction can no longer be followed since this was asked last, and why."""
        for key, direction in self._directions.items():
            if direction is not None and direction.stopped and key not in self._told:
                self._told.add(key)
                yield self._hosts[key[0]].name, direction.stopped

    def feed(self, segments: pa.Table) -> Iterator[Batch]:
        """What rows of `segments.SEGMENTS` tell; each folder's in the order of capture."""
        if not segments.num_rows:
            return
        folders = segments.column("folder").combine_chunks().dictionary_encode()
        codes, part = folders.indices.to_numpy(), segments.column("part").to_numpy()
        names = folders.dictionary.to_pylist()
        edges = np.flatnonzero(
            (np.diff(codes, prepend=-1, append=-1) != 0) | (np.diff(part, prepend=-1, append=-1) != 0)
        )
        for first, following in pairwise(edges.tolist()):
            path = Path(names[codes[first]]) / f"{part[first]}.pcap"
            yield from self._feed_part(path, segments.slice(first, following - first))

    def _feed_part(self, path: Path, segments: pa.Table) -> Iterator[Batch]:
        folder = path.parent.name
        host = self._hosts[folder]
        try:
            content = map_bytes(path).data
        except CaptureError:
            return  # the parts were joined meanwhile: the run is over
        columns = {name: segments.column(name).to_pylist() for name in segments.column_names[2:]}
        keys = zip(*(columns[name] for name in DIRECTION), strict=True)
        rest = (columns[name] for name in ("t_ns", "seq", "flags", "at", "length", "captured"))
        for key, t_ns, seq, flags, at, length, captured in zip(keys, *rest, strict=True):
            direction = self._direction(folder, host, key)
            if direction is None:
                continue
            segment = Segment(t_ns, seq, flags, length, content[at : at + captured])
            for message in direction.feed(segment):
                yield from self._batches(host, message)
        self.newest_ns[host.name] = max(self.newest_ns.get(host.name, 0), columns["t_ns"][-1])

    def _direction(self, folder: str, host: Host, key: tuple[int, ...]) -> Direction | None:
        """The state of a direction; None of what a client gives its neighbours."""
        if (folder, key) not in self._directions:
            leaving = format_address(key[0], key[1]) == host.address
            passed_over = leaving and host.role in self._subscribers
            self._directions[folder, key] = None if passed_over else Direction(self._wanted[host.role])
        return self._directions[folder, key]

    def _batches(self, host: Host, message: Message) -> Iterator[Batch]:
        head, t_ns = message.head, message.t_complete_ns
        stream, count = head["stream"], head.get("count", 1)
        if message.name in self._reading.carries:
            gone = self._reading.placeholder is not None and head.get("kind") == self._reading.placeholder
            covered = count if message.covered is None else message.covered
            yield Batch(False, host.name, stream, head["first_seq"], covered, 0 if gone else count, t_ns)
            return
        publish, answer = self._reading.publish or ("", "")
        to_server_ns = sum(host.lan_delay_us) * 1000  # a server's LAN link is as the publisher's
        if publish == answer:
            yield Batch(True, host.name, stream, head["first_seq"], count, count, t_ns + to_server_ns)
            return
        key = (host.name, stream, head["request"])
        if message.name == publish:
            # A repeated one counts when it first left.
            self._unanswered.setdefault(key, (t_ns + to_server_ns, count))
            if len(self._unanswered) > UNANSWERED_MAX:
                self._unanswered.popitem(last=False)
        elif key in self._unanswered:
            t_ns, count = self._unanswered.pop(key)
            yield Batch(True, host.name, stream, head["first_seq"], count, count, t_ns)
