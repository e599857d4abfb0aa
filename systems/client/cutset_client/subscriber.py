"""What a subscriber got, told by the markers in payloads; and from when on it is to get everything.

Where the contract says `since: subscription`, it subscribes to all streams from the moment when it asks for
its `Subscriber`, and is subscribed once it says that it is ready.
"""

import threading
from collections.abc import Callable, Mapping
from typing import Any

from cutset_client.deliveries import RecordKind
from cutset_client.marker import read_marker
from cutset_client.records import Records

STRANGERS_TOLD_MAX = 10


class Subscriber:
    """Writes down what comes. Its methods may be called by any thread."""

    def __init__(
        self, told: Mapping[str, Any], records: Records, log: Callable[[str, Mapping[str, Any]], None]
    ) -> None:
        self.topics = [f"{home}/{stream}" for stream, home in enumerate(told["homes"])]
        """Of all streams, by number."""
        self._records, self._log = records, log
        self._lock = threading.Lock()
        self._reached: dict[int, int] = {}
        self.strangers = 0
        self._is_asking = told["subscribes"] and told["since"] == "subscription"
        self._write_subscriptions(RecordKind.SUBSCRIBING)

    def subscribed(self) -> None:
        """What is published from now on is to come. Said again, it changes nothing."""
        self._write_subscriptions(RecordKind.SUBSCRIBED)
        self._is_asking = False

    def got(self, payload: bytes, topic: str | None = None) -> bool:
        """A payload came; returns whether it is an event of the run. topic: under which, for the log."""
        marker = read_marker(payload)
        if marker is None or marker.stream >= len(self.topics):
            self.strangers += 1
            if self.strangers <= STRANGERS_TOLD_MAX:
                self._log("not_an_event", {"topic": topic, "bytes": len(payload)})
            return False
        self._records.write(RecordKind.DELIVERED, marker.stream, marker.seq, payload)
        with self._lock:
            if marker.seq > self._reached.get(marker.stream, 0):
                self._reached[marker.stream] = marker.seq
        return True

    def _write_subscriptions(self, kind: RecordKind) -> None:
        for stream in range(len(self.topics) if self._is_asking else 0):
            self._records.write_subscription(kind, stream)

    def progress(self) -> Mapping[int, int]:
        """The last number of each stream that came."""
        with self._lock:
            return dict(self._reached)
