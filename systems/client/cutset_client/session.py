"""One client in a run: its configuration, and its communication with its host process.

CUTSET_CLIENT names a JSON file: name, region, role, index; start, the number of earlier starts of the client;
workload; homes, the region of each stream; publishes, the streams that it publishes; subscribes, whether it
is a subscriber; subscriptions, their streams and times, unless every subscriber gets every event; published,
the steps of a publication that it records, and since, from when on subscribers get events
(`node.core.declaration.Contract`); deliveries, numbers, channel: paths and address of these; true_epoch_ns:
see `records`.
"""

import json
import os
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cutset_client.channel import HostChannel
from cutset_client.publisher import Publisher
from cutset_client.records import DeliveryWriter
from cutset_client.subscriber import Subscriber

VARIABLE = "CUTSET_CLIENT"


class NotInARunError(RuntimeError):
    """The client was not started by Cutset."""


def connect() -> "Session":
    """Return the session of this process. Raises NotInARunError if Cutset did not start it."""
    path = os.environ.get(VARIABLE)
    if not path:
        raise NotInARunError(f"{VARIABLE} is not set: clients are started by `cutset run`")
    return Session(json.loads(Path(path).read_text()))


class Session:
    """A client's session, as a context manager.

    Leaving it waits for the end of the run and sends the last progress.
    """

    def __init__(self, told: Mapping[str, Any]) -> None:
        self.told = told
        self.name: str = told["name"]
        self.region: str = told["region"]
        self.index: int = told["index"]
        self._publisher: Publisher | None = None
        self._subscriber: Subscriber | None = None
        self._records = DeliveryWriter(told["deliveries"], told["true_epoch_ns"])
        self._channel = HostChannel(told["channel"], self._progress)

    def __enter__(self) -> "Session":
        """Let an exception in any thread end the process, which would otherwise continue without it."""
        threading.excepthook = self._failed
        return self

    def __exit__(self, kind: type | None, error: object, trace: object) -> None:
        if kind is None:
            self.wait_until_finished()
        self.close()
        threading.excepthook = threading.__excepthook__

    def publisher(self) -> Publisher:
        """Return the client's publisher."""
        if self._publisher is None:
            self._publisher = Publisher(self.told, self._records, self._channel)
        return self._publisher

    def subscriber(self) -> Subscriber:
        """Return the client's subscriber."""
        if self._subscriber is None:
            self._subscriber = Subscriber(self.told, self._records, self._channel, self.log)
        return self._subscriber

    def ready(self) -> None:
        """Report that the client is connected and has its first subscriptions; idempotent."""
        if self._subscriber is not None:
            self._subscriber.subscribed()
        self._channel.send({"did": "ready"})

    def log(self, event: str, fields: Mapping[str, Any]) -> None:
        """Write a line to the host's log, as a warning."""
        self._channel.send({"did": "log", "event": event, "fields": dict(fields)})

    def wait_until_finished(self, timeout_s: float | None = None) -> bool:
        """Wait until the run is over; returns false after a timeout."""
        return self._channel.finished.wait(timeout_s)

    def close(self) -> None:
        """Send the last progress and close the session; idempotent."""
        self._channel.close()
        self._records.close()

    def _failed(self, args: threading.ExceptHookArgs) -> None:
        """End the process after an uncaught exception, unless the run is over, when connections may break."""
        if self._channel.finished.is_set() or args.exc_type is SystemExit:
            return
        threading.__excepthook__(args)
        sys.stderr.flush()
        os._exit(1)

    def _progress(self) -> Mapping[str, Any]:
        publisher, subscriber = self._publisher, self._subscriber
        published = {"published": {}, "silent": True} if publisher is None else publisher.progress()
        return {**published, "delivered": {} if subscriber is None else subscriber.progress()}
