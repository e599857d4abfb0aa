"""The sending side of subscriptions: the subscribers of each stream of this proxy, and their progress.

Proxies, clients and the chain's successor are served in the same way, each up to its permitted counter. A
subscriber is a channel and, for each of its streams, a cursor into Hist; there is no queue of bytes. `serve`
sends the events after its cursors on a channel, up to its room, a bounded share of one stream at a time, so
that neither a peer that catches up stalls the others nor one of its streams the rest. Further events wait
until the channel is writable again.
"""

from collections.abc import Callable, Mapping
from typing import Any

from node.protocols.sprinkler.publishing.channel import SprinklerChannel
from node.protocols.sprinkler.storage.batches import Batch, last_seq
from node.protocols.sprinkler.storage.history import HEAD_BYTES, EventHistory

STREAM_SHARE_BYTES = 65_536  # of one stream, before the next one has its turn


class Subscribers:
    """All subscriptions that others have with this proxy.

    send: the participant's. upto: by stream, the last event that they may have.
    """

    def __init__(self, history: EventHistory, send: Callable[..., Any], upto: Callable[[int], int]) -> None:
        self.history = history
        self._send = send
        self._upto = upto
        self._cursors: dict[SprinklerChannel, dict[int, int]] = {}  # channel -> stream -> cnt
        self._behind: dict[SprinklerChannel, dict[int, None]] = {}  # streams whose events it may lack
        # channels of a stream, in the order of `_cursors`; filled when needed
        self._takers: dict[int, list[SprinklerChannel]] = {}
        self._grown: dict[int, None] = {}  # streams with new events since the last `flush`, in order

    def subscribe(self, channel: SprinklerChannel, stream: int, cnt: int) -> None:
        """Subscribe `channel` to `stream`, after `cnt`."""
        self.follow(channel, stream, cnt)
        self.serve(channel)

    def follow(self, channel: SprinklerChannel, stream: int, cnt: int) -> None:
        """Set the channel's cursor to `cnt`; `serve` sends the events after it."""
        self._cursors.setdefault(channel, {})[stream] = cnt
        self._behind.setdefault(channel, {})[stream] = None
        self._takers.pop(stream, None)

    def is_level(self, channel: SprinklerChannel) -> bool:
        """Return whether the channel was sent all events that it may have."""
        return all(cnt >= self._upto(stream) for stream, cnt in self._cursors.get(channel, {}).items())

    def have_passed(self, channel: SprinklerChannel, counters: Mapping[int, int]) -> bool:
        """Return whether the channel was sent these streams at least up to these counters."""
        cursors = self._cursors.get(channel, {})
        return all(cursors.get(stream, 0) >= cnt for stream, cnt in counters.items())

    def unsubscribe(self, channel: SprinklerChannel, stream: int) -> None:
        """End the subscription of `channel` to `stream`."""
        self._cursors.get(channel, {}).pop(stream, None)
        self._behind.get(channel, {}).pop(stream, None)
        self._takers.pop(stream, None)

    def forget(self, channel: SprinklerChannel) -> None:
        """Drop all subscriptions of a lost channel."""
        for stream in self._cursors.pop(channel, {}):
            self._takers.pop(stream, None)
        self._behind.pop(channel, None)

    def grew(self, stream: int) -> None:
        """Note new events of a stream; the next `flush` sends them."""
        self._grown[stream] = None
        for channel in self._takers_of(stream):
            self._behind[channel][stream] = None

    def flush(self) -> None:
        """Serve all subscribers of streams that grew, in the order of their subscription."""
        if not self._grown:
            return
        takers = [self._takers_of(stream) for stream in self._grown]
        self._grown.clear()
        if len(takers) > 1:
            takers = [[each for each in self._cursors if any(each in some for some in takers)]]
        for channel in list(takers[0]):
            self.serve(channel)

    def _takers_of(self, stream: int) -> list[SprinklerChannel]:
        takers = self._takers.get(stream)
        if takers is None:
            takers = [channel for channel, cursors in self._cursors.items() if stream in cursors]
            self._takers[stream] = takers
        return takers

    def serve(self, channel: SprinklerChannel) -> None:
        """Send the events after the channel's cursors, as far as it has room."""
        behind = self._behind.get(channel)
        while behind and channel.open_for_bulk:
            found = self._round(channel, behind)
            if not found:
                behind.clear()  # until a stream grows
                return
            self._send(channel, *found)

    def _round(self, channel: SprinklerChannel, behind: dict[int, None]) -> list[Batch]:
        """Return a share of each stream in which the channel lacks events. Served streams move to the end."""
        cursors = self._cursors[channel]
        room_bytes = channel.room_bytes
        found: list[Batch] = []
        for stream in list(behind) if len(behind) == 1 else [each for each in cursors if each in behind]:
            cnt, upto = cursors[stream], self._upto(stream)
            share = self.history.streams[stream].after(cnt, min(STREAM_SHARE_BYTES, room_bytes), upto)
            if not share:
                continue  # it has everything, or a batch extends beyond its limit: nothing can be sent now
            last = last_seq(share[-1])
            assert cnt < last <= upto, "more events than permitted, or none"
            del cursors[stream]
            cursors[stream] = last
            if last == upto:
                del behind[stream]
            found += share
            room_bytes -= sum([HEAD_BYTES + len(batch.payload) for batch in share])
            if room_bytes <= 0:
                break
        return found
