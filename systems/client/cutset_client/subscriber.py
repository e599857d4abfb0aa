"""The events that a subscriber received, by the markers in payloads; and its subscriptions over time.

If the contract has `since: subscription`, the record has the time when each stream was requested, and when
the system confirmed it. Subscriptions from the start of the run are requested when the `Subscriber` is
created, and confirmed when it is ready; each later change is requested when it is returned, and confirmed
when the client reports it. The requests follow from the plan, not from the client's calls to its system.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from cutset_client.channel import HostChannel
from cutset_client.deliveries import RecordKind
from cutset_client.marker import read_marker
from cutset_client.records import DeliveryWriter
from cutset_client.subscriptions import Change, Subscriptions, takes_everything, topics_of

STRANGERS_TOLD_MAX = 10
WAIT_S = 60.0
"""The longest wait between two checks whether a change is due."""


class Subscriber:
    """The record of received events, and the subscriptions. Its methods are thread-safe.

    is_for_everything: whether it subscribes to every topic, as with the workload `stream` (by a wildcard).
    """

    def __init__(
        self,
        told: Mapping[str, Any],
        records: DeliveryWriter,
        channel: HostChannel,
        log: Callable[[str, Mapping[str, Any]], None],
    ) -> None:
        self.is_for_everything = takes_everything(told)
        self._records, self._channel, self._log = records, channel, log
        self._topics = topics_of(told)
        self._streams: dict[str, list[int]] = {}
        for stream, topic in enumerate(self._topics):
            self._streams.setdefault(topic, []).append(stream)
        self._lock = threading.Lock()
        self._reached: dict[int, int] = {}
        self.strangers = 0
        self._is_on_record = told["subscribes"] and told["since"] == "subscription"
        self._subscriptions = Subscriptions(told, self._topics)
        self._changes: deque[Change] = deque()
        self._wanted: dict[str, None] = {}
        self._unanswered: dict[str, bool] = {}
        for change in self._subscriptions.changes_until(0):
            self._request(change)
        self._first = tuple(self._wanted)

    @property
    def topics(self) -> list[str]:
        """Its current topics, to subscribe to before it is ready, and on each new connection."""
        with self._lock:
            return list(self._wanted)

    def __iter__(self) -> Iterator[Change]:
        while True:
            change = self.next()
            if change is None:
                return
            yield change

    def next(self, timeout_s: float | None = None) -> Change | None:
        """Wait for the next change of its subscriptions and return it; None after the run or a timeout."""
        ends_s = None if timeout_s is None else time.monotonic() + timeout_s
        while not self._channel.finished.is_set():
            with self._lock:
                change, wait_s = self._due()
            if change is not None:
                return change
            left_s = wait_s if ends_s is None else min(wait_s, ends_s - time.monotonic())
            if ends_s is not None and left_s <= 0:
                return None
            waits_for = self._channel.finished if self._channel.go.is_set() else self._channel.go
            waits_for.wait(left_s)
        return None

    def subscribed(self, *topics: str) -> None:
        """Record that the system delivers events of these topics from now on; idempotent.

        Without topics: those of the start of the run, as `Session.ready` does.
        """
        if not topics:
            topics, self._first = self._first, ()
        self._answered(topics, RecordKind.SUBSCRIBED)

    def unsubscribed(self, *topics: str) -> None:
        """Record that the system delivers no more events of these topics; idempotent."""
        self._answered(topics, RecordKind.UNSUBSCRIBED)

    def got(self, payload: bytes, topic: str | None = None) -> bool:
        """Record a received payload; returns whether it is an event of the run. topic: for the log."""
        marker = read_marker(payload)
        if marker is None or marker.stream >= len(self._topics):
            self.strangers += 1
            if self.strangers <= STRANGERS_TOLD_MAX:
                self._log("not_an_event", {"topic": topic, "bytes": len(payload)})
            return False
        self._records.write(RecordKind.DELIVERED, marker.stream, marker.seq, payload)
        with self._lock:
            if marker.seq > self._reached.get(marker.stream, 0):
                self._reached[marker.stream] = marker.seq
        return True

    def progress(self) -> Mapping[int, int]:
        """Return the last received number of each stream; with topics, of its current streams."""
        with self._lock:
            if self.is_for_everything:
                return dict(self._reached)
            wanted = (stream for topic in self._wanted for stream in self._streams[topic])
            return {stream: self._reached.get(stream, 0) for stream in wanted}

    def _due(self) -> tuple[Change | None, float]:
        """Return a change that is due, and request it; or the time until the next one."""
        zero_ns = self._channel.zero_ns
        if zero_ns is None:
            return None, WAIT_S
        run_us = (self._records.now_ns() - zero_ns) // 1000
        if not self._changes:
            self._changes.extend(self._subscriptions.changes_until(run_us))
        if self._changes:
            change = self._changes.popleft()
            self._request(change)
            return change, 0.0
        due_us = self._subscriptions.due_us
        return None, WAIT_S if due_us is None else min(WAIT_S, (due_us - run_us) / 1e6)

    def _request(self, change: Change) -> None:
        self._wanted.pop(change.topic, None)
        if change.on:
            self._wanted[change.topic] = None
        self._unanswered[change.topic] = change.on
        self._write(RecordKind.SUBSCRIBING if change.on else RecordKind.UNSUBSCRIBING, change.topic)

    def _answered(self, topics: Iterable[str], kind: RecordKind) -> None:
        with self._lock:
            for topic in topics:
                if self._unanswered.get(topic) == (kind == RecordKind.SUBSCRIBED):
                    del self._unanswered[topic]
                    self._write(kind, topic)

    def _write(self, kind: RecordKind, topic: str) -> None:
        for stream in self._streams[topic] if self._is_on_record else ():
            self._records.write_subscription(kind, stream)
