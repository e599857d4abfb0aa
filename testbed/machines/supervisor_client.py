"""The controller's connection to the supervisor of a run on one machine, reopened whenever it breaks.

A thread keeps an SSH session to the machine's supervisor and puts its messages into a queue. When the session
ends for any reason, the thread reconnects, requests missed messages, and repeats orders (which are executed
once), until the supervisor has ended. A machine that was silent for its lease has ended its part on its own:
it is lost for the run, although its files are not.

The offset of the machine's clock is measured over the same connection. Each answer bounds it: the machine
read its clock between our request and its answer (RFC 5905, section 8, without the assumption that both
directions take equally long, except that the middle is used). The answer with the shortest round trip counts.
This is accurate to about a millisecond, enough for a common start; the analysis compares clocks by packets.
"""

import itertools
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from testbed.errors import TestbedError
from testbed.json_lines import Message, MessageParser, line_of
from testbed.machines.facts import ClockReading, best_reading
from testbed.machines.inventory import InventoryMachine
from testbed.machines.ssh.ssh import RemoteProcess, SshConnection, UnreachableError, how_ended

PIECE_BYTES = 1 << 16
RETRY_S_MIN = 0.25
RETRY_S_MAX = 4.0
START_S = 30.0
SILENCE_S = 6.0
"""The connection counts as broken after this time without an answer to the requests of every second."""
FAREWELL_S = 2.0
NO_SUPERVISOR = 3

Events = queue.SimpleQueue[tuple[str, Message]]


ASKED_MAX = 64
READINGS_MAX = 64


@dataclass(slots=True)
class ClockReadings:
    """Pending clock requests, and the latest readings: our time, theirs, our time."""

    _asked_ns: dict[int, int] = field(default_factory=dict)
    _readings: list[tuple[int, int, int]] = field(default_factory=list)

    def asked(self, number: int, now_ns: int) -> None:
        """Record the time of a request."""
        self._asked_ns[number] = now_ns
        while len(self._asked_ns) > ASKED_MAX:
            del self._asked_ns[next(iter(self._asked_ns))]

    def answered(self, number: int, there_ns: int, now_ns: int) -> None:
        """Record the answer to a request; unrequested answers are ignored."""
        asked_ns = self._asked_ns.pop(number, None)
        if asked_ns is None:
            return
        self._readings = [*self._readings[1 - READINGS_MAX :], (asked_ns, there_ns, now_ns)]

    @property
    def count(self) -> int:
        """The number of answers."""
        return len(self._readings)

    @property
    def best(self) -> ClockReading | None:
        """The most exact of the latest readings, or None."""
        return best_reading(self._readings) if self._readings else None


@dataclass(slots=True, eq=False)
class SupervisorClient:
    """The connection to one machine's supervisor.

    `events` receives (name, message): the supervisor's messages, and this class's `broken` and, as the last
    one, `lost` or `gone`, with the reason. connect: returns an open connection, reopened if necessary.
    command: returns the argument list for "start" or "attach".
    """

    machine: InventoryMachine
    connect: Callable[[], SshConnection]
    command: Callable[[str], list[str]]
    events: Events
    patience_s: float
    clock: ClockReadings = field(default_factory=ClockReadings)
    _orders: list[bytes] = field(default_factory=list)
    _received: int = 0  # the number of numbered messages received
    _received_s: float = 0.0  # when the last message was received
    _error_output: str = ""
    _request_numbers: Iterator[int] = field(default_factory=itertools.count)
    _process: RemoteProcess | None = None
    _writing: threading.Lock = field(default_factory=threading.Lock)
    _closing: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    @property
    def name(self) -> str:
        return self.machine.name

    def start(self, given: Mapping[str, Any]) -> None:
        """Start the run's supervisor, with the input of `testbed.machines.agent`."""
        self._thread = threading.Thread(
            target=self._stay_connected, args=(line_of(given),), name=f"peer {self.name}", daemon=True
        )
        self._thread.start()

    def order(self, message: Mapping[str, Any]) -> None:
        """Send an order that must arrive, now or after the connection is reopened."""
        line = line_of(message)
        with self._writing:
            self._orders.append(line)
            self._write(line)

    def ask_time(self) -> None:
        """Request the machine's time, which renews the lease; the request may be lost."""
        with self._writing:
            number = next(self._request_numbers)
            self.clock.asked(number, time.time_ns())
            self._write(line_of({"do": "clock", "id": number}))

    def log_out(self) -> None:
        """Order the supervisor to end, and close the connection; idempotent."""
        if not self._closing.is_set():
            self.order({"do": "bye"})
        self._closing.set()
        if self._thread is not None:
            self._thread.join(FAREWELL_S)
        with self._writing:
            self._close()

    # --- The thread

    def _stay_connected(self, first: bytes) -> None:
        connection: SshConnection | None = None
        command, retry_s = "start", RETRY_S_MIN
        self._received_s = time.monotonic()
        while not self._closing.is_set():
            heard_s = self._received_s
            try:
                connection = self.connect()
                code = self._follow(connection, command, first)
                if code == NO_SUPERVISOR:
                    self.events.put(
                        (self.name, {"did": "gone", "why": self._error_output or "it has no supervisor"})
                    )
                    return
                problem = f"the connection ended: {how_ended(code)}"
            except UnreachableError as error:
                problem = str(error)
            except TestbedError as error:
                self.events.put((self.name, {"did": "lost", "why": str(error)}))
                return
            except Exception as error:
                # After a bug of ours the other machines must not wait for this one.
                self.events.put((self.name, {"did": "lost", "why": f"{type(error).__name__}: {error}"}))
                raise
            if connection is not None:
                connection.close()
            if self._received_s > heard_s:
                retry_s, command = RETRY_S_MIN, "attach"
            if self._closing.is_set():
                return
            self.events.put((self.name, {"did": "broken", "why": problem}))
            if time.monotonic() - self._received_s > self.patience_s:
                self.events.put((self.name, {"did": "lost", "why": problem}))
                return
            self._closing.wait(retry_s)
            retry_s = min(retry_s * 2, RETRY_S_MAX)

    def _follow(self, connection: SshConnection, command: str, first: bytes) -> int:
        """Read until the session ends; returns its exit code."""
        lines, self._error_output = MessageParser(), ""
        with connection.open(self.command(command), root=True) as process:
            process.timeout_s = SILENCE_S if command == "attach" else START_S
            greeting = (first if command == "start" else b"") + line_of({"from": self._received})
            with self._writing:
                self._process = process
                process.write(greeting + b"".join(self._orders))
            try:
                while data := process.read(PIECE_BYTES):
                    now_ns = time.time_ns()
                    process.timeout_s = SILENCE_S
                    for message in lines.feed(data):
                        self._handle(message, now_ns)
            except (ValueError, KeyError, TypeError, OverflowError) as error:
                raise TestbedError(f"{self.name}: its supervisor sent an invalid message: {error}") from None
            finally:
                with self._writing:
                    self._process = None
            code = process.wait()
            self._error_output = process.error_output()
            return code

    def _handle(self, message: Message, now_ns: int) -> None:
        self._received_s = time.monotonic()
        if message.get("did") == "clock":
            self.clock.answered(int(message["id"]), int(message["time_ns"]), now_ns)
            return
        if "n" in message:
            number = int(message["n"])
            if number < self._received:
                return
            self._received = number + 1
        self.events.put((self.name, message))

    def _write(self, line: bytes) -> None:
        """Write to the session, if there is one; the reading thread notices when it breaks."""
        if self._process is not None:
            try:
                self._process.write(line)
            except UnreachableError:
                self._process = None

    def _close(self) -> None:
        if self._process is not None:
            self._process.close()
            self._process = None
