"""The events of a publisher's workload, each when it is due, with a marker in its payload."""

import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from cutset_client.channel import HostChannel
from cutset_client.deliveries import RecordKind
from cutset_client.marker import marked
from cutset_client.numbers import SequenceNumbers
from cutset_client.records import DeliveryWriter
from cutset_client.subscriptions import topics_of

UNDER_WAY_MAX = 64
"""Closed loop: the most events that are sent and not acknowledged."""
UNSAID_MAX = 100
UNSAID_S = 5.0
"""It is an error if `sent` is not called for this number of events and this time."""


class Event(NamedTuple):
    """An event to publish.

    topic: "r0/3", the region that owns the stream and the stream's number; with the workload `topics` "t3",
    on which several regions may publish, each with its own stream.
    """

    topic: str
    payload: bytes
    stream: int
    seq: int


class Publisher:
    """The events to publish, and the record of their publication. Its methods are thread-safe."""

    def __init__(self, told: Mapping[str, Any], records: DeliveryWriter, channel: HostChannel) -> None:
        self._streams: list[int] = list(told["publishes"])
        self._topics = topics_of(told)
        self._size: int = told["workload"]["event_size_bytes"]
        self._rate: float | None = told["workload"].get("rate_per_s")
        self._mode: str = told["published"]
        self._records, self._channel = records, channel
        self._numbers = SequenceNumbers(told["numbers"], self._streams)
        self._count_returned = 0
        self._open = 0  # events returned and not acknowledged
        self._awaits_sent = self._mode != "acknowledged"  # whether `sent` is required but was never called
        self._sent_deadline_s = 0.0  # set with the first event
        self._start_s: float | None = None  # when to begin, by CLOCK_MONOTONIC, which is never set
        self._changed = threading.Condition()
        self._done: dict[int, int] = {}
        self._is_over = not self._streams

    def __iter__(self) -> Iterator[Event]:
        while True:
            event = self.next()
            if event is None:
                return
            yield event

    def next(self) -> Event | None:
        """Wait for the next event and return it; None if no more are to be published.

        Raises RuntimeError if the contract counts sent events, and `sent` is never called.
        """
        self._channel.go.wait()
        if self._awaits_sent:
            self._check_sent()
        if not self._wait_until_due():
            with self._changed:
                self._is_over = True
            return None
        stream = self._streams[self._count_returned % len(self._streams)]
        self._count_returned += 1
        seq = self._numbers.next(stream)
        with self._changed:
            self._open += 1
        return Event(
            self._topics[stream], marked(stream, seq, self._size, self._records.now_ns()), stream, seq
        )

    def sent(self, event: Event) -> None:
        """Record that the event is about to be passed to the system."""
        self._awaits_sent = False
        if self._mode != "acknowledged":
            self._records.write(RecordKind.PUBLISHED, event.stream, event.seq, event.payload)
            if self._mode == "sent":
                self._count(event)

    def acknowledged(self, event: Event) -> None:
        """Record that the system acknowledged the event."""
        if self._mode == "sent":
            return
        kind = RecordKind.PUBLISHED if self._mode == "acknowledged" else RecordKind.ACKNOWLEDGED
        self._records.write(kind, event.stream, event.seq, event.payload)
        self._count(event)

    def refused(self, event: Event) -> None:
        """Record that the system refused the event: no acknowledgement follows."""
        with self._changed:
            self._open -= 1
            self._changed.notify_all()

    def progress(self) -> Mapping[str, Any]:
        """Return the last published number of each stream, and whether no more will be published."""
        with self._changed:
            return {"published": dict(self._done), "silent": self._is_over and self._open == 0}

    def _check_sent(self) -> None:
        if self._count_returned == 0:
            self._sent_deadline_s = time.monotonic() + UNSAID_S
        elif self._count_returned >= UNSAID_MAX and time.monotonic() > self._sent_deadline_s:
            raise RuntimeError(
                f"`sent` was called for none of {self._count_returned} events: call it before passing on each"
            )

    def _count(self, event: Event) -> None:
        with self._changed:
            self._done[event.stream] = max(event.seq, self._done.get(event.stream, 0))
            self._open -= 1
            self._changed.notify_all()

    def _wait_until_due(self) -> bool:
        """Wait until the next event is due; returns whether there is one."""
        if not self._streams:
            self._channel.stopped.wait()
            return False
        if self._rate is None:
            return self._wait_for_room()
        if self._start_s is None:
            self._start_s = time.monotonic() + (self._channel.start_ns - self._records.now_ns()) / 1e9
        due_s = self._start_s + (self._count_returned + 1) / self._rate
        while not self._channel.stopped.is_set():
            left_s = due_s - time.monotonic()
            if left_s <= 0:
                return True
            self._channel.stopped.wait(left_s)
        return False

    def _wait_for_room(self) -> bool:
        with self._changed:
            while self._open >= UNDER_WAY_MAX and not self._channel.stopped.is_set():
                self._changed.wait(0.1)
        return not self._channel.stopped.is_set()
