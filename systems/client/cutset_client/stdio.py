"""The client library for programs in any language: `python -m cutset_client.stdio PROGRAM ARGUMENT…`.

The program uses standard input and output, with one JSON object per line. It receives

    {"do": "publish", "id": 7, "topic": "r0/0", "payload": "…"}   when an event is due; payload in base64
    {"do": "subscribe"}                                           at the start: subscribe to every topic
    {"do": "subscribe", "topics": ["t3", "t7"]}                   or to these; later to these, too
    {"do": "unsubscribe", "topics": ["t3"]}                       unsubscribe from these
    {"do": "stop"}                                                no more events follow
    {"do": "finish"}                                              the run is over: exit

and sends

    {"did": "ready"}                                      its first subscriptions are active
    {"did": "subscribed", "topics": ["t4"]}               these are active, too
    {"did": "unsubscribed", "topics": ["t3"]}
    {"did": "sent", "id": 7}                              before it passes the event to the system
    {"did": "acknowledged", "id": 7}                      the system acknowledged it
    {"did": "refused", "id": 7}                           the system refused it
    {"did": "got", "payload": "…", "topic": "r0/0"}
    {"did": "log", "event": "…", "fields": {}}

Its standard error goes to its host's log.
"""

import base64
import json
import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import Any

from cutset_client.publisher import Event, Publisher
from cutset_client.session import Session, connect

END_S = 1.0
"""The time that the program has to exit after its output has ended."""
FAILED = 70  # EX_SOFTWARE of sysexits.h


class Bridge:
    """One session and its program, which exchange lines."""

    def __init__(self, session: Session, process: "subprocess.Popen[bytes]") -> None:
        self._session, self._process = session, process
        self._publisher: Publisher = session.publisher()
        self._subscriber = session.subscriber()
        self._open: dict[int, Event] = {}
        self._writing = threading.Lock()

    def publish(self) -> None:
        """Send each event to the program when it is due, until the end of the run."""
        for number, event in enumerate(self._publisher):
            self._open[number] = event
            payload = base64.b64encode(event.payload).decode()
            self._send({"do": "publish", "id": number, "topic": event.topic, "payload": payload})
        self._send({"do": "stop"})
        self._session.wait_until_finished()
        self._send({"do": "finish"})

    def subscribe(self) -> None:
        """Send the first subscriptions, and each change when it is due, until the end of the run."""
        is_for_everything = self._subscriber.is_for_everything
        self._send({"do": "subscribe"} | ({} if is_for_everything else {"topics": self._subscriber.topics}))
        for change in self._subscriber:
            self._send({"do": "subscribe" if change.on else "unsubscribe", "topics": [change.topic]})

    def listen(self) -> None:
        """Handle the program's messages until its output ends. Raises ValueError for an invalid one."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            try:
                self._handle(json.loads(line))
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(f"the program wrote {line[:200]!r}: {error!r}") from error

    def _handle(self, said: Mapping[str, Any]) -> None:
        did = said["did"]
        if did == "ready":
            self._session.ready()
        elif did == "subscribed":
            for topic in said["topics"]:
                self._subscriber.subscribed(topic)
        elif did == "unsubscribed":
            self._subscriber.unsubscribed(*said["topics"])
        elif did == "sent":
            self._publisher.sent(self._open[said["id"]])
        elif did == "acknowledged":
            self._publisher.acknowledged(self._open.pop(said["id"]))
        elif did == "refused":
            self._publisher.refused(self._open.pop(said["id"]))
        elif did == "got":
            self._subscriber.got(base64.b64decode(said["payload"]), said.get("topic"))
        elif did == "log":
            self._session.log(said["event"], said.get("fields", {}))
        else:
            raise ValueError(f"{did!r} is unknown")

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        with self._writing:
            try:
                self._process.stdin.write(json.dumps(message).encode() + b"\n")
                self._process.stdin.flush()
            except BrokenPipeError:
                return  # the program ends: `listen` notices it


def main() -> int:
    """Run the program; returns its exit code, or one of sysexits.h for an error here."""
    session = connect()
    with subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        bridge = Bridge(session, process)
        threading.Thread(target=bridge.publish, daemon=True).start()
        if session.told["subscribes"]:
            threading.Thread(target=bridge.subscribe, daemon=True).start()
        try:
            bridge.listen()
            code = process.wait(END_S)
        except (ValueError, subprocess.TimeoutExpired) as error:
            sys.stderr.write(f"{error}\n")
            process.kill()
            code = FAILED
    session.close()
    return code


if __name__ == "__main__":
    sys.exit(main())
