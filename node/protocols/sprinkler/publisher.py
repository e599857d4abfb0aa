"""publish(event) of the paper's client interface (2.1): single events in, numbered batches out, until
acknowledged.

Events are gathered into a batch until it is flushed or full. Batches stay here until they are acknowledged;
after a lost connection all of them are sent again, with the same numbers and boundaries, so that the proxy
knows them. What is under way is bounded by a window: `has_room` says whether more should be published now.
"""

from collections import deque
from collections.abc import Sequence

from node.core.errors import LocalProtocolError, RemoteProtocolError
from node.protocols.sprinkler.batches import pack_events
from node.protocols.sprinkler.messages import Kind, Publish, Published
from node.protocols.sprinkler.parameters import Parameters


class Publisher:
    """One publisher on one stream."""

    def __init__(self, stream: int, parameters: Parameters) -> None:
        self.stream = stream
        self.requested = 0  # events taken by `publish`
        self.acknowledged = 0  # the last request of them that is published
        self.published = 0  # the highest sequence number acknowledged
        self._parameters = parameters
        self._events: list[bytes] = []  # of the open batch
        self._events_bytes = 0
        self._waiting: deque[Publish] = deque()  # not acknowledged, in order
        self._waiting_bytes = 0
        self._unsent = 0  # how many of them, at the end, are not sent on this connection

    def publish(self, event: bytes) -> int:
        """Publish one event; returns its request number, by which `acknowledge` tells that it is published.

        Raises LocalProtocolError if the event is larger than a batch may be.
        """
        self._events_bytes += len(event)
        if self._events_bytes > self._parameters.batch_limit_bytes:
            self._make_room(event)
        self._events.append(event)
        self.requested += 1
        return self.requested

    def has_room(self) -> bool:
        """Whether the window has room for another batch."""
        return (
            self._waiting_bytes + self._events_bytes < self._parameters.window_bytes
            and len(self._waiting) < self._parameters.window_batches
        )

    def flush(self) -> None:
        """Close the open batch, if there is one."""
        if not self._events:
            return
        event_bytes, payload = pack_events(self._events)
        first_request = self.requested - len(self._events) + 1
        batch = Publish(Kind.DATA, 0, self.stream, first_request, len(self._events), event_bytes, 0, payload)
        self._waiting.append(batch)
        self._waiting_bytes += len(payload)
        self._unsent += 1
        self._events = []
        self._events_bytes = 0

    def take_unsent(self, limit_bytes: int) -> Sequence[Publish]:
        """Closed batches that have not been sent on this connection; they count as sent from now on.

        As many as have `limit_bytes` of payload together, but at least one if there is any.
        """
        taken: list[Publish] = []
        while self._unsent and limit_bytes > 0:
            batch = self._waiting[-self._unsent]
            limit_bytes -= len(batch.payload)
            taken.append(batch)
            self._unsent -= 1
        return taken

    def rewind(self) -> None:
        """The connection is a new one: everything that is not acknowledged is unsent."""
        self._unsent = len(self._waiting)

    def acknowledge(self, message: Published) -> Publish:
        """The batch that is now published. Raises RemoteProtocolError if it is not the next one."""
        if not self._waiting or self._waiting[0].first_request != message.first_request:
            raise RemoteProtocolError(f"PUBLISHED for request {message.first_request}, which is not the next")
        batch = self._waiting.popleft()
        self._waiting_bytes -= len(batch.payload)
        self._unsent = min(self._unsent, len(self._waiting))
        self.published = message.first_seq + message.count - 1
        self.acknowledged = message.first_request + message.count - 1
        return batch

    @property
    def is_idle(self) -> bool:
        """Whether everything taken is published."""
        return not self._waiting and not self._events

    def _make_room(self, event: bytes) -> None:
        """The event does not fit in the open batch any more."""
        if len(event) > self._parameters.batch_limit_bytes:
            self._events_bytes -= len(event)
            limit_bytes = self._parameters.batch_limit_bytes
            raise LocalProtocolError(f"an event of {len(event)} bytes; batch_limit is {limit_bytes}")
        self.flush()
        self._events_bytes = len(event)
