"""A driver's publications on one stream: single events, batches, and which of them collect.

In an open loop a batch is closed once in a flush interval. While the previous one is not acknowledged, a
batch stays open and grows, for a bounded number of intervals (as TCP holds back small segments, RFC 896): a
batch costs every node as much as a hundred of its events, so if machines or links are too slow for an
interval, fewer and larger batches keep up.
"""

from collections.abc import Callable, Sequence

from node.core.collection_marks import encode_mark, keys_of
from node.protocols.sprinkler.messages import EventKind, Predicate, Publish
from node.protocols.sprinkler.parameters import SprinklerParameters
from node.protocols.sprinkler.publishing.publisher import StreamPublisher
from node.protocols.sprinkler.storage.batches import unpack_events
from node.protocols.sprinkler.workload import CollectionRule, DriverWorkload

Keys = Callable[[int], Sequence[bytes]]
"""Draws the keys of a number of events; none, if they have no keys."""
OTHERS_SHIFT = 40  # distinguishes the events of a driver's second and further streams


class StreamLoad:
    """One stream's part of a driver's workload. share: the stream's index among the driver's streams, and
    their number.

    parameters: the system's. tag: see `workload.driver_tag`.
    """

    def __init__(
        self,
        stream: int,
        share: tuple[int, int],
        workload: DriverWorkload,
        parameters: SprinklerParameters,
        *,
        tag: int,
        keys: Keys,
    ) -> None:
        at_first = CollectionRule() if workload.collect.seldom else workload.collect
        self.publisher = StreamPublisher(stream, parameters, at_first.predicate, at_first.argument)
        self._parameters = parameters
        self._workload = workload
        self._collect = workload.collect
        self._collect_us = 0  # when the next event that collects is due, if these are periodic
        self._number, self._streams = share
        self._tag = tag
        self._keys = keys
        self._held = 0  # ticks for which the open batch was kept open

    def begin(self, start_us: int) -> None:
        """Begin publishing."""
        self._collect_us = start_us + self._collect.every_us

    def tick(self, due: int, now_us: int) -> None:
        """Publish all due events, as far as the window has room. due: of all the driver's streams."""
        publisher = self.publisher
        due = (due + self._streams - 1 - self._number) // self._streams
        while publisher.requested < due and publisher.has_room(self._open_bytes):
            self._publish(min(due - publisher.requested, self._batch_events()), now_us)
        if publisher.open_events and self._may_grow():
            self._held += 1
        else:
            self._close_batch()

    def fill_window(self, now_us: int) -> None:
        """Publish whole batches while the window has room (closed loop)."""
        while self.publisher.has_room():
            self._publish(self._batch_events(), now_us)
            self.publisher.flush()

    def acknowledged(self) -> None:
        """Close the open batch, if it waited for the acknowledgement of the previous one."""
        if self._held and not self.publisher.is_awaiting:
            self._close_batch()

    def mark(self, batch: Publish, first_seq: int) -> bytes:
        """Return the collection mark of a batch that collects, or is collected by key; else no bytes."""
        by_key = self._collect.predicate == Predicate.SAME_KEY
        collects = batch.kind == EventKind.GC
        if not by_key and not (collects and self._collect.seldom):
            return b""
        events = unpack_events(batch.count, batch.event_bytes, batch.payload) if by_key else ()
        keys = keys_of(events, self._collect.argument)
        return encode_mark(batch.stream, first_seq, batch.count, collects=collects, keys=keys)

    @property
    def _open_bytes(self) -> int:
        return self.publisher.open_events * self._workload.event_size_bytes

    def _may_grow(self) -> bool:
        """Return whether the open batch waits for the acknowledgement of the previous one."""
        return (
            self.publisher.is_awaiting
            and self._held + 1 < self._parameters.flush_intervals
            and self._open_bytes < self._parameters.batch_limit_bytes
        )

    def _close_batch(self) -> None:
        self._held = 0
        self.publisher.flush()

    def _batch_events(self) -> int:
        return max(1, self._parameters.batch_limit_bytes // self._workload.event_size_bytes)

    def _publish(self, count: int, now_us: int) -> None:
        publish = self.publisher.publish
        first_request = self.publisher.requested + 1
        first_number = (self._number << OTHERS_SHIFT) + first_request
        events = self._workload.events(first_number, count, self._tag, self._keys(count))
        if self._collect.seldom:
            self._publish_seldom_collecting(first_request, events, now_us)
            return
        for event in events:
            publish(event)

    def _publish_seldom_collecting(self, first_request: int, events: Sequence[bytes], now_us: int) -> None:
        publisher, collect = self.publisher, self._collect
        for request, event in enumerate(events, first_request):
            if not self._collects(request, now_us):
                publisher.publish(event)
                continue
            publisher.collect(collect.predicate, collect.argument)
            publisher.publish(event)
            publisher.collect(Predicate.NONE, 0)

    def _collects(self, request: int, now_us: int) -> bool:
        """Return whether this event collects."""
        if self._collect.one_of:
            return request % self._collect.one_of == 0
        if now_us < self._collect_us:
            return False
        missed = (now_us - self._collect_us) // self._collect.every_us
        self._collect_us += (missed + 1) * self._collect.every_us
        return True
