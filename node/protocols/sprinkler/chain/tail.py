"""The serving part of a replica: committed events for peers, clients and the region (paper 3.1 to 3.3).

Peers' heads subscribe; clients use the region-level protocol or subscribe as well. Served events are those
that the whole chain has, so any replica may serve them; peers and clients connect to the tail. Only the tail
advertises to the peers and takes part in the region-level protocol (`is_active`).
"""

from collections.abc import Sequence
from typing import Protocol

from node.core.specification import NodeSpec
from node.protocols.sprinkler.messages import Advertisement, Counter, Refusal, Subscribe, Unsubscribe
from node.protocols.sprinkler.publishing.channel import SprinklerChannel
from node.protocols.sprinkler.region.dissemination import Dissemination, DisseminationContext
from node.protocols.sprinkler.region.subscribers import Subscribers
from node.protocols.sprinkler.storage.batches import Batch
from node.protocols.sprinkler.storage.history import EventHistory


class TailContext(DisseminationContext, Protocol):
    """Methods and state of the replica that its tail uses."""

    history: EventHistory


class CommittedEvents:
    """The part of Hist that others may have: an `answers.EventStore`."""

    def __init__(self, history: EventHistory) -> None:
        self.history = history

    def cnt(self, stream: int) -> int:
        """Return the last event that the whole chain has."""
        return self.history.streams[stream].committed

    def after(self, stream: int, cnt: int, limit_bytes: int) -> Sequence[Batch]:
        """Return batches after `cnt`, as far as committed."""
        return self.history.streams[stream].after(cnt, limit_bytes, self.cnt(stream))


class Tail:
    """Subscribers and the region-level protocol of one replica."""

    def __init__(self, node: TailContext, spec: NodeSpec) -> None:
        self._node = node
        self._committed = CommittedEvents(node.history)
        self._subscribers = Subscribers(node.history, node.send, self._committed.cnt)
        self.dissemination = Dissemination(node, self._committed, spec)
        self.is_active = False
        self._has_grown = False  # a stream, since the last `flush`

    def begin(self) -> None:
        """Become the tail: advertise to all peers."""
        self.is_active = True
        self.dissemination.start()
        advertisement = Advertisement(tuple(self.counters()))
        for channel in list(self._node.channels.values()):
            self._node.send(channel, advertisement)

    def end(self) -> None:
        """Stop being the tail: neither advertise nor disseminate."""
        self.is_active = False
        self.dissemination.stop()

    def start_over(self, history: EventHistory) -> None:
        """Serve from another Hist."""
        self._committed.history = self._subscribers.history = history

    def counters(self) -> list[Counter]:
        """Return the committed counter of every stream, and the ends of former epochs; none unless active."""
        if not self.is_active:
            return []
        return [
            Counter(number, cnt)
            for number, state in self._node.history.streams.items()
            for cnt in (*(end for end in state.ends if end < state.committed), state.committed)
        ]

    def subscribe(self, channel: SprinklerChannel, message: Subscribe) -> bool:
        """Add a subscription; return whether it was accepted."""
        if message.stream not in self._node.history.streams:
            reason = f"stream {message.stream} is not known"
            self._node.refuse(channel, Refusal.UNKNOWN_STREAM, reason, message.stream)
            return False
        self._subscribers.subscribe(channel, message.stream, message.cnt)
        return True

    def unsubscribe(self, channel: SprinklerChannel, message: Unsubscribe) -> None:
        """End the subscription of a peer or client."""
        self._subscribers.unsubscribe(channel, message.stream)

    def lost(self, channel: SprinklerChannel) -> None:
        """Drop the subscriptions and requests of a lost connection."""
        self._subscribers.forget(channel)
        self.dissemination.lost(channel)

    def writable(self, channel: SprinklerChannel) -> None:
        """Continue a channel's subscriptions and requests when it has room."""
        self._subscribers.serve(channel)
        self.dissemination.writable(channel)

    def grew(self, stream: int) -> None:
        """Note that more of the stream is committed."""
        self._has_grown = True
        self._subscribers.grew(stream)
        self.dissemination.grew(stream)

    def flush(self) -> None:
        """Forward newly committed events; called at the end of an input."""
        if self._has_grown:
            self._has_grown = False
            self._subscribers.flush()
            self.dissemination.flush()
