"""Answers to REQUESTs from a store of events (paper 3.2, Fig. 3: receiveRequest), for clients and the tail of
the proxy.

An open request is a cursor into the store, not a queue of bytes: events are read when the channel has room,
so a huge REQUEST costs no more memory than a small one. Batches are sent whole, so an answer may extend a
little beyond the requested interval; it may have gaps, and may be empty. ANSWERED ends it and carries the
sender's cnt, as the paper's EVENTS does.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from node.protocols.sprinkler.messages import Answered, Request
from node.protocols.sprinkler.publishing.channel import SprinklerChannel
from node.protocols.sprinkler.storage.batches import Batch, last_seq

OPEN_REQUESTS = 4096  # of one channel; a peer that requests more without reading is dropped
ANSWER_LIMIT_BYTES = 16_777_216  # of one answer; for more the peer sends another request


class EventStore(Protocol):
    """Store of events: a client's Recv, or a proxy's Hist up to the committed events ("Recv = Hist", 3.2)."""

    def cnt(self, stream: int) -> int:
        """Return the last event of the stream that others may have."""

    def after(self, stream: int, cnt: int, limit_bytes: int) -> Sequence[Batch]:
        """Return batches that end after `cnt`, in order, of about `limit_bytes`, at least one if there is
        one.

        None of them extends beyond `cnt(stream)`. The first may begin later than `cnt` + 1: events in between
        no longer exist.
        """


@dataclass(slots=True, eq=False)
class OpenRequest:
    """A REQUEST that is not completely answered. at: the last event that was sent."""

    request: Request
    at: int
    given_bytes: int = 0


class Answers:
    """The open requests of all channels. send, drop: those of the participant."""

    def __init__(
        self, store: EventStore, send: Callable[..., Any], drop: Callable[[SprinklerChannel, str], None]
    ) -> None:
        self._store = store
        self._send = send
        self._drop = drop
        self._open: dict[SprinklerChannel, deque[OpenRequest]] = {}

    def take(self, channel: SprinklerChannel, request: Request) -> None:
        """Handle a REQUEST (receiveRequest): answer as far as the channel has room, the rest when it has room
        again.
        """
        waiting = self._open.get(channel)
        if waiting is None:
            opened = OpenRequest(request, max(0, request.next - 1))
            if not channel.open_for_bulk or not self._serve_one(channel, opened):
                self._open[channel] = deque([opened])
        elif len(waiting) < OPEN_REQUESTS:
            waiting.append(OpenRequest(request, max(0, request.next - 1)))
        else:
            self._drop(channel, "requests more than it reads")

    def serve(self, channel: SprinklerChannel) -> bool:
        """Continue the channel's answers when it has room again; return whether it had any."""
        waiting = self._open.get(channel)
        if waiting is None:
            return False
        while waiting and channel.open_for_bulk and self._serve_one(channel, waiting[0]):
            waiting.popleft()
        if not waiting:
            del self._open[channel]
        return True

    def is_awaited(self, channel: SprinklerChannel) -> bool:
        """Return whether the channel has open requests, or answers that it had no room for."""
        return channel in self._open or channel.awaiting

    def forget(self, channel: SprinklerChannel) -> None:
        """Drop the open requests of a lost channel."""
        self._open.pop(channel, None)

    def clear(self) -> None:
        """Drop all open requests, because their senders repeat them elsewhere."""
        self._open.clear()

    def _serve_one(self, channel: SprinklerChannel, opened: OpenRequest) -> bool:
        """Continue an answer; return True when it is complete."""
        request, store = opened.request, self._store
        stream, wanted = request.stream, request.cnt
        while True:
            found = store.after(stream, opened.at, channel.room_bytes)
            given = len(found)
            while given and found[given - 1].first_seq > wanted:
                given -= 1
            if given:
                opened.at = last_seq(found[given - 1])
            cnt = store.cnt(stream)
            ended = given < len(found) or opened.at >= wanted or opened.at >= cnt or not given
            last = min(wanted, cnt)
            if not ended:
                opened.given_bytes += sum([len(batch.payload) for batch in found])
                ended = opened.given_bytes >= ANSWER_LIMIT_BYTES
                last = opened.at
            if ended:
                self._send(channel, *found[:given], Answered(stream, request.next, max(last, 0), cnt))
                return True
            self._send(channel, *found)
            if not channel.open_for_bulk:
                return False
