"""subscriber.py ADDRESS PORT: watches all keys, or those of its topics, at the member of its region.

After an error it continues from its last revision. Each topic has its own watch, and so its own order.
"""

import base64
import http.client
import json
import sys
import threading
import time

import cutset_client
from gateway import Gateway, text


class Watch(threading.Thread):
    """A watch of a range of keys. created: called when the watch is created, again after each error."""

    def __init__(self, first, end, created):
        super().__init__(daemon=True)
        self._range = {"key": text(first), "range_end": text(end)}
        self._created = created
        self._network = None
        self._revision = 0
        self._is_wanted = True

    def run(self):
        while self._is_wanted:
            try:
                asked = {**self._range, "start_revision": str(self._revision)}
                self._network = Gateway(sys.argv[1], sys.argv[2], timeout_s=None)
                for line in self._network.open("watch", {"create_request": asked}):
                    if not self._is_wanted:
                        return
                    self._take(json.loads(line)["result"])
            except (OSError, http.client.HTTPException) as error:
                print(f"again from {self._revision}: {error}", flush=True)
            time.sleep(0.2)

    def _take(self, result):
        if result.get("created"):
            self._revision = self._revision or int(result["header"]["revision"]) + 1
            self._created()
        for event in result.get("events", ()):
            subscriber.got(base64.b64decode(event["kv"]["value"]))
            self._revision = int(event["kv"]["mod_revision"]) + 1

    def end(self):
        self._is_wanted = False
        if self._network is not None:
            self._network.stop()


def watch(topic):
    def created():
        subscriber.subscribed(topic)
        lacking.discard(topic)
        if not lacking:
            session.ready()

    watches[topic] = Watch(f"{topic}/".encode(), f"{topic}0".encode(), created)  # 0 follows / in ASCII
    watches[topic].start()


watches = {}
with cutset_client.connect() as session:
    subscriber = session.subscriber()
    lacking = set() if subscriber.is_for_everything else set(subscriber.topics)
    if subscriber.is_for_everything:
        Watch(b"\0", b"\0", session.ready).start()
    elif not lacking:
        session.ready()
    for topic in tuple(lacking):
        watch(topic)
    for change in subscriber:
        if change.on:
            watch(change.topic)
        else:
            watches.pop(change.topic).end()
            subscriber.unsubscribed(change.topic)
