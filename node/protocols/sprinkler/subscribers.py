"""The sending side of subscriptions: who takes which stream from this proxy, and how far each got.

Proxies, clients and the chain's successor are served alike, each up to what it may have. A subscriber is a
channel and, for each of its streams, a cursor into Hist; there is no queue of bytes. `serve` hands a channel
what follows on its cursors, up to the room that it has, a bounded share for one stream at a time, so that
neither a peer that catches up stalls the others nor one of its streams the rest. What does not fit waits
until the channel is writable again.
"""

from collections.abc import Callable, Mapping
from typing import Any

from node.protocols.sprinkler.batches import Batch, last_seq
from node.protocols.sprinkler.channel import Channel
from node.protocols.sprinkler.history import HEAD_BYTES, History

STREAM_SHARE_BYTES = 65_536  # of one stream, before the next one has its turn


class Subscribers:
    """All subscriptions that others have with this proxy.

    send: the participant's. upto: by stream, the last event that they may have.
    """

    def __init__(self, history: History, send: Callable[..., Any], upto: Callable[[int], int]) -> None:
        self.history = history
        self._send = send
        self._upto = upto
        self._cursors: dict[Channel, dict[int, int]] = {}  # channel -> stream -> cnt
        self._grown: dict[int, None] = {}  # streams with new events since the last `flush`, in order
        self._level: set[Channel] = set()  # that were handed everything, until a stream grows

    def subscribe(self, channel: Channel, stream: int, cnt: int) -> None:
        """From now on `channel` takes `stream`, after `cnt`."""
        self.follow(channel, stream, cnt)
        self.serve(channel)

    def follow(self, channel: Channel, stream: int, cnt: int) -> None:
        """Place the channel's cursor after `cnt`; `serve` sends what follows it."""
        self._cursors.setdefault(channel, {})[stream] = cnt
        self._level.discard(channel)

    def is_level(self, channel: Channel) -> bool:
        """Whether the channel was handed everything that it may have."""
        return not self._behind(self._cursors.get(channel, {}))

    def have_passed(self, channel: Channel, counters: Mapping[int, int]) -> bool:
        """Whether the channel was handed these streams up to these counters, or beyond."""
        cursors = self._cursors.get(channel, {})
        return all(cursors.get(stream, 0) >= cnt for stream, cnt in counters.items())

    def unsubscribe(self, channel: Channel, stream: int) -> None:
        """`channel` takes `stream` no more."""
        self._cursors.get(channel, {}).pop(stream, None)

    def forget(self, channel: Channel) -> None:
        """The channel is gone, and with it all its subscriptions."""
        self._cursors.pop(channel, None)
        self._level.discard(channel)

    def grew(self, stream: int) -> None:
        """The stream has new events; they go out at the next `flush`."""
        self._grown[stream] = None
        self._level.clear()

    def flush(self) -> None:
        """Serve everyone who takes a stream that grew."""
        if not self._grown:
            return
        for channel, cursors in list(self._cursors.items()):
            if any(stream in cursors for stream in self._grown):
                self.serve(channel)
        self._grown.clear()

    def serve(self, channel: Channel) -> None:
        """Hand the channel what follows on its cursors, as far as it has room."""
        if channel in self._level:
            return
        cursors = self._cursors.get(channel)
        while cursors and channel.open_for_bulk:
            found = self._round(channel, cursors)
            if not found:
                self._level.add(channel)
                return
            self._send(channel, *found)

    def _round(self, channel: Channel, cursors: dict[int, int]) -> list[Batch]:
        """A share of each stream that the channel is behind on. Streams that had theirs go to the end."""
        room_bytes = channel.room_bytes
        found: list[Batch] = []
        for stream in self._behind(cursors):
            before = len(found)
            limit_bytes = min(STREAM_SHARE_BYTES, room_bytes)
            found += self.history.streams[stream].after(cursors[stream], limit_bytes, self._upto(stream))
            if len(found) == before:
                continue  # a batch that reaches beyond it: nothing can be had now
            last = last_seq(found[-1])
            assert cursors[stream] < last <= self._upto(stream), "more than it may have, or nothing"
            del cursors[stream]
            cursors[stream] = last
            room_bytes -= sum(HEAD_BYTES + len(batch.payload) for batch in found[before:])
            if room_bytes <= 0:
                break
        return found

    def _behind(self, cursors: dict[int, int]) -> list[int]:
        return [stream for stream, cnt in cursors.items() if cnt < self._upto(stream)]
