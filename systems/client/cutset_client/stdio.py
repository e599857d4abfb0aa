"""The same for programs in any language: `python -m cutset_client.stdio PROGRAM ARGUMENT…`.

The program has standard input and output for it, one JSON object a line. It is told

    {"do": "publish", "id": 7, "topic": "r0/0", "payload": "…"}   when an event is due; payload in base64
    {"do": "subscribe"}                                           at the beginning: it is to get every topic
    {"do": "subscribe", "topics": ["t3", "t7"]}                   or these; later these, too
    {"do": "unsubscribe", "topics": ["t3"]}                       these no longer
    {"do": "stop"}                                                nothing more will be published
    {"do": "finish"}                                              the run is over: end

and says

    {"did": "ready"}                                      it is subscribed to what it is to get first
    {"did": "subscribed", "topics": ["t4"]}               to these, too
    {"did": "unsubscribed", "topics": ["t3"]}
    {"did": "sent", "id": 7}                              before it hands the event over to the system
    {"did": "acknowledged", "id": 7}                      the system has it
    {"did": "refused", "id": 7}                           the system did not take it
    {"did": "got", "payload": "…", "topic": "r0/0"}
    {"did": "log", "event": "…", "fields": {}}

What it writes to standard error is its host's log.
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
"""For the program to end once it was told to."""
FAILED = 70  # EX_SOFTWARE of sysexits.h


class Bridge:
    """One session, and the program that speaks lines."""

    def __init__(self, session: Session, process: "subprocess.Popen[bytes]") -> None:
        self._session, self._process = session, process
        self._publisher: Publisher = session.publisher()
        self._subscriber = session.subscriber()
        self._open: dict[int, Event] = {}
        self._writing = threading.Lock()

    def publish(self) -> None:
        """Tell the program each event when it is due; until the end of the run."""
        for number, event in enumerate(self._publisher):
            self._open[number] = event
            payload = base64.b64encode(event.payload).decode()
            self._tell({"do": "publish", "id": number, "topic": event.topic, "payload": payload})
        self._tell({"do": "stop"})
        self._session.wait_until_finished()
        self._tell({"do": "finish"})

    def subscribe(self) -> None:
        """Tell the program what it is to get, and each change when it is due; until the end of the run."""
        is_for_everything = self._subscriber.is_for_everything
        self._tell({"do": "subscribe"} | ({} if is_for_everything else {"topics": self._subscriber.topics}))
        for change in self._subscriber:
            self._tell({"do": "subscribe" if change.on else "unsubscribe", "topics": [change.topic]})

    def listen(self) -> None:
        """Take what the program says, until it says no more. Raises ValueError for what makes no sense."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            try:
                self._heard(json.loads(line))
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(f"the program said {line[:200]!r}: {error!r}") from error

    def _heard(self, said: Mapping[str, Any]) -> None:
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
            raise ValueError(f"{did!r} means nothing")

    def _tell(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        with self._writing:
            try:
                self._process.stdin.write(json.dumps(message).encode() + b"\n")
                self._process.stdin.flush()
            except BrokenPipeError:
                return  # it ends: who listens to it says so


def main() -> int:
    """Returns the program's exit code, or that of sysexits.h for what went wrong here."""
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
