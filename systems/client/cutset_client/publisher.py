"""What a publisher publishes: the workload's events, each when it is due, with a marker in its payload."""

import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from cutset_client.channel import Channel
from cutset_client.deliveries import RecordKind
from cutset_client.marker import marked
from cutset_client.numbers import Numbers
from cutset_client.records import Records
from cutset_client.subscriptions import topics_of

UNDER_WAY_MAX = 64
"""Closed loop: so many events at most are sent and not acknowledged."""
UNSAID_MAX = 100
UNSAID_S = 5.0
"""When so many events were given out for so long, and none was said to be sent, none ever will be."""


class Event(NamedTuple):
    """An event to publish. topic: "r0/3", the region that owns the stream and the stream's number; with the
    workload `topics` "t3", under which several regions may publish, each on a stream of its own.
    """

    topic: str
    payload: bytes
    stream: int
    seq: int


class Publisher:
    """Gives out events, and writes down what became of them. Its methods may be called by any thread."""

    def __init__(self, told: Mapping[str, Any], records: Records, channel: Channel) -> None:
        self._streams: list[int] = list(told["publishes"])
        self._topics = topics_of(told)
        self._size: int = told["workload"]["event_size_bytes"]
        self._rate: float | None = told["workload"].get("rate_per_s")
        self._mode: str = told["published"]
        self._records, self._channel = records, channel
        self._numbers = Numbers(told["numbers"], self._streams)
        self._given = 0
        self._open = 0  # given out and not acknowledged
        self._is_unsaid = self._mode != "acknowledged"  # none was said to be sent, and all are to be
        self._unsaid_until_s = 0.0  # set with the first event
        self._start_s: float | None = None  # when to begin, by CLOCK_MONOTONIC, which nobody sets
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
        """The next event, once it is due; None when no more are to be published.

        Raises RuntimeError where the contract counts what is sent, and nothing is ever said to be.
        """
        self._channel.go.wait()
        if self._is_unsaid:
            self._look_for_sent()
        if not self._wait_until_due():
            with self._changed:
                self._is_over = True
            return None
        stream = self._streams[self._given % len(self._streams)]
        self._given += 1
        seq = self._numbers.next(stream)
        with self._changed:
            self._open += 1
        return Event(self._topics[stream], marked(stream, seq, self._size, time.time_ns()), stream, seq)

    def sent(self, event: Event) -> None:
        """It is about to be handed over to the system."""
        self._is_unsaid = False
        if self._mode != "acknowledged":
            self._records.write(RecordKind.PUBLISHED, event.stream, event.seq, event.payload)
            if self._mode == "sent":
                self._count(event)

    def acknowledged(self, event: Event) -> None:
        """The system says that it has it."""
        if self._mode == "sent":
            return
        kind = RecordKind.PUBLISHED if self._mode == "acknowledged" else RecordKind.ACKNOWLEDGED
        self._records.write(kind, event.stream, event.seq, event.payload)
        self._count(event)

    def refused(self, event: Event) -> None:
        """The system did not take it: nothing more is to be waited for."""
        with self._changed:
            self._open -= 1
            self._changed.notify_all()

    def progress(self) -> Mapping[str, Any]:
        """The last number of each stream that is published, and whether no more will be."""
        with self._changed:
            return {"published": dict(self._done), "silent": self._is_over and self._open == 0}

    def _look_for_sent(self) -> None:
        if self._given == 0:
            self._unsaid_until_s = time.monotonic() + UNSAID_S
        elif self._given >= UNSAID_MAX and time.monotonic() > self._unsaid_until_s:
            raise RuntimeError(f"{self._given} events were given out: say `sent` before handing each over")

    def _count(self, event: Event) -> None:
        with self._changed:
            self._done[event.stream] = max(event.seq, self._done.get(event.stream, 0))
            self._open -= 1
            self._changed.notify_all()

    def _wait_until_due(self) -> bool:
        """Whether there is one more."""
        if not self._streams:
            self._channel.stopped.wait()
            return False
        if self._rate is None:
            return self._wait_for_room()
        if self._start_s is None:
            self._start_s = time.monotonic() + (self._channel.start_ns - time.time_ns()) / 1e9
        due_s = self._start_s + (self._given + 1) / self._rate
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
