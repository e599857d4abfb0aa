"""The control channel to the host process of this program: JSON objects over an abstract socket.

It receives go (with the start of publishing), stop_drivers and finish; it sends ready, and progress a few
times a second. A separate thread does this. When the socket is closed, the run is over: `finished` is set
then, too.
"""

import json
import socket
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

PERIOD_S = 0.25
MESSAGE_BYTES_MAX = 1 << 20


class HostChannel:
    """The client's end of the control channel. progress: returns the progress, sent whenever it changes."""

    def __init__(self, name: str, progress: Callable[[], Mapping[str, Any]]) -> None:
        self.go = threading.Event()
        self.stopped = threading.Event()
        self.finished = threading.Event()
        self.start_ns = 0
        self.zero_ns: int | None = None
        """Time 0 of the run, which is in the past for a process that is started later."""
        self._progress = progress
        self._last_progress: Mapping[str, Any] | None = None
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.connect("\0" + name)
        self._socket.settimeout(PERIOD_S)
        self._thread = threading.Thread(target=self._run, name="cutset", daemon=True)
        self._thread.start()

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a message to the host process; it is lost if that has ended."""
        try:
            self._socket.send(json.dumps(message).encode())
        except OSError:
            self._end()

    def close(self) -> None:
        """Send the last progress and close the channel."""
        self._send_progress()
        self._end()
        self._socket.close()

    def _run(self) -> None:
        while not self.finished.is_set():
            told_s = time.monotonic()
            try:
                data = self._socket.recv(MESSAGE_BYTES_MAX)
            except TimeoutError:
                self._send_progress()
                continue
            except OSError:
                data = b""
            if not data:
                break
            self._handle(json.loads(data))
            if time.monotonic() - told_s > PERIOD_S:
                self._send_progress()
        self._end()

    def _handle(self, message: dict[str, Any]) -> None:
        if message["do"] == "go":
            self.start_ns = message["start_ns"]
            self.zero_ns = self.start_ns - message["late_us"] * 1000
            self.go.set()
        elif message["do"] == "stop_drivers":
            self._stop()
        elif message["do"] == "finish":
            self._end()

    def _send_progress(self) -> None:
        progress = self._progress()
        if progress != self._last_progress:
            self._last_progress = progress
            self.send({"did": "progress", **progress})

    def _stop(self) -> None:
        self.stopped.set()
        self.go.set()  # threads that wait for it continue and find `stopped`

    def _end(self) -> None:
        self._stop()
        self.finished.set()
