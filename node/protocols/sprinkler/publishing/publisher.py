"""publish(event) of the paper's client interface (2.1): single events in, numbered batches out, until they
are acknowledged.

Events accumulate until they are flushed, and are then divided into batches of bounded size. Batches stay here
until they are acknowledged; after a lost connection all of them are sent again, with the same numbers and
boundaries, so that the proxy recognises them. Unacknowledged data is bounded by a window: `has_room` returns
whether more should be published now. At most the number of batches that proxies remember is sent, even if one
flush creates more.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence

from node.core.errors import LocalProtocolError, RemoteProtocolError
from node.protocols.sprinkler.messages import U32_BYTES, EventKind, Predicate, Publish, Published
from node.protocols.sprinkler.parameters import SprinklerParameters
from node.protocols.sprinkler.storage.batches import pack_events


class StreamPublisher:
    """One publisher on one stream. With a predicate its events are garbage collection events (3.4)."""

    def __init__(
        self,
        stream: int,
        parameters: SprinklerParameters,
        predicate: Predicate = Predicate.NONE,
        argument: int = 0,
    ) -> None:
        self.stream = stream
        self.acknowledged = 0  # the last request that is published
        self.published = 0  # the highest acknowledged sequence number
        self._parameters = parameters
        self._predicate = predicate
        self._argument = argument
        self._events: list[bytes] = []  # not flushed; always this same list
        self._flushed = 0  # events in closed batches so far
        self._waiting: deque[Publish] = deque()  # not acknowledged, in order
        self._waiting_bytes = 0
        self._unsent = 0  # number of them, at the end, that are not sent on this connection
        self.publish: Callable[[bytes], None] = self._events.append
        """Publish one event: the list's own `append`, for speed; `flush` checks the size."""

    @property
    def requested(self) -> int:
        """Number of events published so far: the request number of the last one."""
        return self._flushed + len(self._events)

    @property
    def open_events(self) -> int:
        """Number of events that are in no closed batch."""
        return len(self._events)

    @property
    def is_awaiting(self) -> bool:
        """Whether a closed batch is not acknowledged."""
        return bool(self._waiting)

    def request(self, event: bytes) -> int:
        """Publish one event; return its request number. It is published when `acknowledged` reaches it.

        Raises LocalProtocolError if the event is larger than a batch may be.
        """
        self._check_size(event)
        self._events.append(event)
        return self.requested

    def collect(self, predicate: Predicate, argument: int) -> None:
        """Set the predicate of later events; with NONE they are data (2.1)."""
        if (predicate, argument) != (self._predicate, self._argument):
            self.flush()
            self._predicate, self._argument = predicate, argument

    def reject(self, first_request: int) -> Publish | None:
        """Give up the batch of this request permanently; return None if it is not waiting."""
        for at, batch in enumerate(self._waiting):
            if batch.first_request == first_request:
                if at >= len(self._waiting) - self._unsent:
                    self._unsent -= 1
                del self._waiting[at]
                self._waiting_bytes -= len(batch.payload)
                return batch
        return None

    def has_room(self, open_bytes: int = 0) -> bool:
        """Return whether the window has room for more, besides closed batches and `open_bytes` of the open
        one.
        """
        return (
            self._waiting_bytes + open_bytes < self._parameters.window_bytes
            and len(self._waiting) < self._parameters.window_batches
        )

    def flush(self) -> None:
        """Close the open batch, if there is one; divide it if it is too large.

        Raises LocalProtocolError if an event is larger than a batch may be; nothing is published then.
        """
        if not self._events:
            return
        batches = [self._events]
        event_bytes, payload = pack_events(self._events)
        if len(payload) > self._parameters.batch_limit_bytes:
            batches = list(self._cut(self._events, 0 if event_bytes else U32_BYTES))
            event_bytes, payload = pack_events(batches[0])
        self._close(len(batches[0]), event_bytes, payload)
        for events in batches[1:]:
            self._close(len(events), *pack_events(events))
        self._events.clear()

    def take_unsent(self, limit_bytes: int) -> Sequence[Publish]:
        """Return closed batches that have not been sent on this connection; they count as sent from now on.

        Their payload is at most `limit_bytes`, but at least one batch is returned if there is one. The number
        of unacknowledged batches stays within the number that a proxy remembers: it would take a repetition
        of an older one for a new batch.
        """
        taken: list[Publish] = []
        room = self._parameters.window_batches - (len(self._waiting) - self._unsent)
        while self._unsent and limit_bytes > 0 and room > 0:
            batch = self._waiting[-self._unsent]
            limit_bytes -= len(batch.payload)
            taken.append(batch)
            self._unsent -= 1
            room -= 1
        return taken

    def rewind(self) -> None:
        """Mark everything unacknowledged as unsent, for a new connection."""
        self._unsent = len(self._waiting)

    def acknowledge(self, message: Published) -> Publish:
        """Return the batch that is now published. Raises RemoteProtocolError if it is not the next one."""
        if not self._waiting or self._waiting[0].first_request != message.first_request:
            raise RemoteProtocolError(f"PUBLISHED for request {message.first_request}, which is not the next")
        batch = self._waiting.popleft()
        self._waiting_bytes -= len(batch.payload)
        self._unsent = min(self._unsent, len(self._waiting))
        assert self._unsent <= len(self._waiting), "more unsent batches than waiting ones"
        assert self._waiting or not self._waiting_bytes, "bytes without batches"
        self.published = message.first_seq + message.count - 1
        self.acknowledged = message.first_request + message.count - 1
        return batch

    @property
    def is_idle(self) -> bool:
        """Whether everything accepted is published."""
        return not self._waiting and not self._events

    def _close(self, count: int, event_bytes: int, payload: bytes) -> None:
        kind = EventKind.GC if self._predicate else EventKind.DATA
        first_request = self._flushed + 1
        self._waiting.append(
            Publish(
                kind, self._predicate, self.stream, first_request, count, event_bytes, self._argument, payload
            )
        )
        self._flushed += count
        self._waiting_bytes += len(payload)
        self._unsent += 1

    def _cut(self, events: Sequence[bytes], more_bytes: int) -> Iterator[list[bytes]]:
        """Yield these events in batches up to the limit; each event takes `more_bytes` besides its own."""
        batch: list[bytes] = []
        batch_bytes = 0
        for event in events:
            self._check_size(event)
            batch_bytes += len(event) + more_bytes
            if batch and batch_bytes > self._parameters.batch_limit_bytes:
                yield batch
                batch, batch_bytes = [], len(event) + more_bytes
            batch.append(event)
        yield batch

    def _check_size(self, event: bytes) -> None:
        limit_bytes = self._parameters.batch_limit_bytes
        if len(event) > limit_bytes:
            raise LocalProtocolError(f"an event of {len(event)} bytes; batch_limit is {limit_bytes}")
