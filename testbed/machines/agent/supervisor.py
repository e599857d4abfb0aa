"""Supervision of a machine's part of a run, with or without a connected controller.

One process with one thread starts the sandbox with the run in it, retains the run's messages, sends them to
the controller attached to its socket (one at a time; a new one replaces the old one), and executes the
controller's orders. Each message of the controller renews the lease. When the lease expires, the run is
ordered to end, and its files stay. All changes to the machine end with the sandbox.
"""

import contextlib
import selectors
import socket
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from experiments.child_python import python_command
from experiments.records.json_files import write_json
from experiments.records.run_record import Outcome
from experiments.records.rundir import RunDirectory
from testbed.errors import MachineError, TestbedError
from testbed.execution.record import RUNNER_LOG, record_end
from testbed.json_lines import Message, line_of
from testbed.machines import run_folders
from testbed.machines.agent.attachment import PASSING, Attachment, RetainedMessages
from testbed.runner.throttles import throttled
from testbed.sandbox import Sandbox
from testbed.tunnel import Tunnel, make_tunnels
from topologies.errors import InputError

LOOK_S = 0.5
STOP_S = 60.0
"""The time that a run has to end after the order; then it is killed."""


class Supervisor:
    """One run on one machine. now_ns: the machine's clock; now_s: a monotonic clock, seconds."""

    def __init__(
        self,
        run: RunDirectory,
        tunnels: Sequence[Tunnel],
        lease_s: float,
        *,
        now_ns: Callable[[], int] = time.time_ns,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._run = run
        self._tunnels = tunnels
        self._lease_s = lease_s
        self._now_ns = now_ns
        self._now_s = now_s
        self._deadline_s = now_s() + lease_s
        self._retained = RetainedMessages()
        self._attached: Attachment | None = None
        self._selector = selectors.DefaultSelector()
        self._sandbox: Sandbox | None = None
        self._over = False  # whether the run is over
        self._dismissed = False  # whether the controller has sent "bye"

    def serve(self, listener: socket.socket) -> None:
        """Serve until the run is over and the controller has sent "bye", or the lease has expired."""
        listener.setblocking(False)
        self._selector.register(listener, selectors.EVENT_READ, partial(self._accept, listener))
        try:
            with contextlib.ExitStack() as stack:
                self._start(stack)
                self._until(lambda: self._over or self._dismissed)
            self._send({"did": "ended", "outcome": self._outcome()})
            self._until(lambda: self._dismissed or self._now_s() > self._deadline_s)
        finally:
            self._detach()
            self._selector.close()

    def _start(self, stack: contextlib.ExitStack) -> None:
        command = python_command("testbed.runner", str(self._run.path))
        try:
            errors = stack.enter_context((self._run.path / RUNNER_LOG).open("a+"))
            groups = bool(throttled(self._run.read_run().plan))
            sandbox = stack.enter_context(
                Sandbox(command, token=self._run.name, errors=errors, control_groups=groups)
            )
            make_tunnels(self._tunnels, sandbox.process.pid)
        except (TestbedError, OSError) as error:
            kind = "machine" if isinstance(error, (MachineError, OSError)) else "testbed"
            self._send({"did": "failed", "kind": kind, "text": _error_text(error)})
            self._over = True
            return
        sandbox.channel.expect_life()
        self._sandbox = sandbox
        self._selector.register(sandbox.channel.fileno(), selectors.EVENT_READ, self._receive_from_run)

    def _outcome(self) -> str:
        """Return the run's outcome, from its run.json if that can be read."""
        try:
            hung = self._sandbox is not None and self._sandbox.channel.hung
            outcome = record_end(self._run, RUNNER_LOG, hung=hung).outcome
        except (OSError, InputError) as error:
            self._send(
                {"did": "problem", "text": f"the run's outcome cannot be recorded: {_error_text(error)}"}
            )
            return Outcome.CRASHED
        return outcome or Outcome.CRASHED

    def _until(self, done: Callable[[], bool]) -> None:
        stopped = killed = False
        while not done():
            for key, _ in self._selector.select(LOOK_S):
                key.data()
            if self._sandbox is not None and not self._over:
                self._receive_from_run()  # notices if it hangs
            late_s = self._now_s() - self._deadline_s
            if late_s > 0 and not self._over and not stopped:
                stopped = True
                self._order_run(
                    {"do": "stop", "why": f"no message from the controller for {self._lease_s:g} s"}
                )
            if late_s > STOP_S and not self._over and not killed and self._sandbox is not None:
                killed = True
                self._sandbox.kill()

    # --- The run

    def _receive_from_run(self) -> None:
        assert self._sandbox is not None
        channel = self._sandbox.channel
        message = channel.receive(0)
        if channel.ended:
            self._selector.unregister(channel.fileno())
            self._over = True
        elif message:
            self._send(message)

    def _order_run(self, message: Message) -> None:
        if self._sandbox is not None and not self._over:
            self._sandbox.channel.post(message)

    # --- The attached controller

    def _send(self, message: Message) -> None:
        if message.get("did") in PASSING:
            if self._attached is not None:
                self._attached.send(line_of(message))
        else:
            self._retained.add(message)
        self._flush()

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(BlockingIOError, ConnectionError):
            connection, _ = listener.accept()
            self._detach()
            attached = self._attached = Attachment(connection, self._retained)
            self._selector.register(connection, selectors.EVENT_READ, partial(self._serve_attached, attached))

    def _serve_attached(self, attached: Attachment) -> None:
        """Read the controller's messages and send ours, unless it has disconnected meanwhile."""
        if attached is not self._attached:
            return
        try:
            for message in attached.messages() or ():
                self._deadline_s = self._now_s() + self._lease_s
                self._do(attached, message)
        except (ConnectionError, ValueError, KeyError, TypeError, OverflowError):
            self._detach()  # the controller has disconnected, or violates the protocol
        self._flush()

    def _do(self, attached: Attachment, message: Message) -> None:
        if "from" in message:
            attached.begin(int(message["from"]))
            return
        match message["do"]:
            case "clock":
                answer = {"did": "clock", "id": message["id"], "time_ns": self._now_ns()}
                attached.send(line_of(answer))
            case "bye":
                self._dismissed = True
            case _:
                self._order_run(message)

    def _flush(self) -> None:
        attached = self._attached
        if attached is None:
            return
        try:
            events = selectors.EVENT_READ | (0 if attached.flush() else selectors.EVENT_WRITE)
        except ConnectionError:
            self._detach()
            return
        self._selector.modify(attached.socket, events, partial(self._serve_attached, attached))

    def _detach(self) -> None:
        if self._attached is not None:
            self._selector.unregister(self._attached.socket)
            self._attached.close()
            self._attached = None


def _error_text(error: Exception) -> str:
    """Return an error's text, without the number of an OSError."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def listen(folder: Path) -> socket.socket:
    """Create the socket in a run's folder, accessible only to its owner. Raises OSError."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    path = folder / run_folders.SOCKET
    path.unlink(missing_ok=True)
    listener.bind(str(path))
    path.chmod(0o600)
    listener.listen(4)
    return listener


def note_process(folder: Path, pid: int) -> None:
    """Record the process id of the supervisor."""
    write_json(folder / run_folders.STATE, {"pid": pid, "started_ticks": run_folders.started_ticks(pid)})
