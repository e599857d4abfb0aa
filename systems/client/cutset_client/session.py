"""One client in a run: what it is, and its words with what minds it.

CUTSET_CLIENT names a JSON file: name, region, role, index; start, how often the client was started before;
workload; homes, the region of each stream; publishes, the streams that it publishes on; subscribes, whether
it is a subscriber; subscriptions, to what and when, where not all are to get everything; published, what its
record of published events says, and since, from when on subscribers are to get events
(`node.core.declaration.Contract`); deliveries, numbers, channel: where these are.
"""

import json
import os
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cutset_client.channel import Channel
from cutset_client.publisher import Publisher
from cutset_client.records import Records
from cutset_client.subscriber import Subscriber

VARIABLE = "CUTSET_CLIENT"


class NotInARunError(RuntimeError):
    """The client was not started by Cutset."""


def connect() -> "Session":
    """The session of this process. Raises NotInARunError where Cutset did not start it."""
    path = os.environ.get(VARIABLE)
    if not path:
        raise NotInARunError(f"{VARIABLE} is not set: clients are started by `cutset run`")
    return Session(json.loads(Path(path).read_text()))


class Session:
    """A context manager; leaving it waits for the end of the run, and says the last progress."""

    def __init__(self, told: Mapping[str, Any]) -> None:
        self.told = told
        self.name: str = told["name"]
        self.region: str = told["region"]
        self.index: int = told["index"]
        self._publisher: Publisher | None = None
        self._subscriber: Subscriber | None = None
        self._records = Records(told["deliveries"])
        self._channel = Channel(told["channel"], self._progress)

    def __enter__(self) -> "Session":
        """From now on an exception in any thread ends the process: it would go on without what that did."""
        threading.excepthook = self._failed
        return self

    def __exit__(self, kind: type | None, error: object, trace: object) -> None:
        if kind is None:
            self.wait_until_finished()
        self.close()
        threading.excepthook = threading.__excepthook__

    def publisher(self) -> Publisher:
        """What it publishes."""
        if self._publisher is None:
            self._publisher = Publisher(self.told, self._records, self._channel)
        return self._publisher

    def subscriber(self) -> Subscriber:
        """What it gets."""
        if self._subscriber is None:
            self._subscriber = Subscriber(self.told, self._records, self._channel, self.log)
        return self._subscriber

    def ready(self) -> None:
        """It is connected, and subscribed to what it is to get first. Said again, it changes nothing."""
        if self._subscriber is not None:
            self._subscriber.subscribed()
        self._channel.say({"did": "ready"})

    def log(self, event: str, fields: Mapping[str, Any]) -> None:
        """A line for the host's log, a warning."""
        self._channel.say({"did": "log", "event": event, "fields": dict(fields)})

    def wait_until_finished(self, timeout_s: float | None = None) -> bool:
        """Until the run is over; false when time is over before."""
        return self._channel.finished.wait(timeout_s)

    def close(self) -> None:
        """Say the last progress, and nothing more. Idempotent."""
        self._channel.close()
        self._records.close()

    def _failed(self, args: threading.ExceptHookArgs) -> None:
        """Once the run is over, connections break that are of no use any more."""
        if self._channel.finished.is_set() or args.exc_type is SystemExit:
            return
        threading.__excepthook__(args)
        sys.stderr.flush()
        os._exit(1)

    def _progress(self) -> Mapping[str, Any]:
        publisher, subscriber = self._publisher, self._subscriber
        published = {"published": {}, "silent": True} if publisher is None else publisher.progress()
        return {**published, "delivered": {} if subscriber is None else subscriber.progress()}
