"""Holds a machine's part of a run, whether or not somebody is connected.

One process, one thread: it starts the sandbox with the run in it, keeps everything that the run says, gives
it to whoever is attached at its socket (one at a time; a new one takes the old one's place), and passes on
what that one asks. Whoever is attached renews the lease by any word. When the lease is over the run is told
to end tidily, and its files stay. What it has done to the machine goes with the sandbox.
"""

import contextlib
import selectors
import socket
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from experiments.rundir import RunDirectory, write_json
from testbed.errors import MachineError, TestbedError
from testbed.hosts.agent import files
from testbed.hosts.agent.messages import PASSING, Lines, Message, line_of
from testbed.hosts.agent.tunnels import make_tunnels
from testbed.runner.phases import RUNNER_LOG, settle
from testbed.sandbox import Sandbox
from testbed.tunnel import Tunnel

LOOK_S = 0.5
STOP_S = 60.0
"""For a run that was told to end; then it is killed."""
KEPT_MAX = 100_000
UNSENT_BYTES_MAX = 16 << 20


class Supervisor:
    """One run on one machine. now_ns: the machine's clock; now_s: seconds that no clock change alters."""

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
        self._kept: list[bytes] = []
        self._attached: _Attached | None = None
        self._selector = selectors.DefaultSelector()
        self._sandbox: Sandbox | None = None
        self._over = False  # the run is
        self._left = False  # nobody wants anything of it any more

    def serve(self, listener: socket.socket) -> None:
        """Until the run is over and whoever wanted it has said goodbye, or the lease is over."""
        listener.setblocking(False)
        self._selector.register(listener, selectors.EVENT_READ, self._accept)
        try:
            with contextlib.ExitStack() as stack:
                self._start(stack)
                self._until(lambda: self._over or self._left)
            self._say({"did": "ended", "outcome": settle(self._run, RUNNER_LOG)["outcome"]})
            self._until(lambda: self._left or self._now_s() > self._deadline_s)
        finally:
            self._detach()
            self._selector.close()

    def _start(self, stack: contextlib.ExitStack) -> None:
        errors = stack.enter_context((self._run.path / RUNNER_LOG).open("a+"))
        command = [sys.executable, "-m", "testbed.runner", str(self._run.path)]
        try:
            sandbox = stack.enter_context(Sandbox(command, token=self._run.name, errors=errors))
            make_tunnels(self._tunnels, sandbox.process.pid)
        except TestbedError as error:
            kind = "machine" if isinstance(error, MachineError) else "testbed"
            self._say({"did": "failed", "kind": kind, "text": str(error)})
            self._over = True
            return
        self._sandbox = sandbox
        self._selector.register(sandbox.channel.fileno(), selectors.EVENT_READ, self._hear_run)

    def _until(self, done: Callable[[], bool]) -> None:
        stopped = killed = False
        while not done():
            for key, _ in self._selector.select(LOOK_S):
                key.data()
            late_s = self._now_s() - self._deadline_s
            if late_s > 0 and not self._over and not stopped:
                stopped = True
                self._tell_run({"do": "stop", "why": f"nobody was heard of for {self._lease_s:g} s"})
            if late_s > STOP_S and not self._over and not killed and self._sandbox is not None:
                killed = True
                self._sandbox.kill()

    # --- The run

    def _hear_run(self) -> None:
        assert self._sandbox is not None  # noqa: S101
        channel = self._sandbox.channel
        message = channel.receive(0)
        if channel.ended:
            self._selector.unregister(channel.fileno())
            self._over = True
        elif message is not None:
            self._say(message)

    def _tell_run(self, message: Message) -> None:
        if self._sandbox is not None and not self._over:
            self._sandbox.channel.post(message)

    # --- Who is attached

    def _say(self, message: Message) -> None:
        if message.get("did") in PASSING:
            data = line_of(message)
        else:
            data = line_of({**message, "n": len(self._kept)})
            if len(self._kept) < KEPT_MAX:
                self._kept.append(data)
        if self._attached is not None and self._attached.begun:
            self._send(data)

    def _accept(self) -> None:
        listener = next(key.fileobj for key in self._selector.get_map().values() if key.data == self._accept)
        assert isinstance(listener, socket.socket)  # noqa: S101
        with contextlib.suppress(BlockingIOError, ConnectionError):
            connection, _ = listener.accept()
            self._detach()
            connection.setblocking(False)
            self._attached = _Attached(connection)
            self._selector.register(connection, selectors.EVENT_READ, self._hear_attached)

    def _hear_attached(self) -> None:
        attached = self._attached
        assert attached is not None  # noqa: S101
        self._flush()
        if self._attached is not attached:
            return
        try:
            data = attached.socket.recv(1 << 16)
        except BlockingIOError:
            return
        except ConnectionError:
            data = b""
        if not data:
            self._detach()
            return
        self._deadline_s = self._now_s() + self._lease_s
        try:
            for message in attached.lines.feed(data):
                self._do(message)
        except (ValueError, KeyError, TypeError):
            self._detach()  # whoever this is does not speak our language

    def _do(self, message: Message) -> None:
        if "from" in message:
            assert self._attached is not None  # noqa: S101
            self._attached.begun = True
            self._send(b"".join(self._kept[int(message["from"]) :]))
            return
        match message["do"]:
            case "clock":
                self._send(line_of({"did": "clock", "id": message["id"], "time_ns": self._now_ns()}))
            case "bye":
                self._left = True
            case _:
                self._tell_run(message)

    def _send(self, data: bytes) -> None:
        if self._attached is None:
            return
        self._attached.unsent += data
        if len(self._attached.unsent) > UNSENT_BYTES_MAX:
            self._detach()  # it reads no more; whoever attaches next gets all of it again
        self._flush()

    def _flush(self) -> None:
        attached = self._attached
        if attached is None:
            return
        try:
            while attached.unsent:
                del attached.unsent[: attached.socket.send(attached.unsent)]
        except BlockingIOError:
            pass
        except ConnectionError:
            self._detach()
            return
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if attached.unsent else 0)
        self._selector.modify(attached.socket, events, self._hear_attached)

    def _detach(self) -> None:
        if self._attached is not None:
            self._selector.unregister(self._attached.socket)
            self._attached.socket.close()
            self._attached = None


class _Attached:
    """Who is connected. `begun`: they have said from where on they want to hear."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self.lines = Lines()
        self.unsent = bytearray()
        self.begun = False


def listen(folder: Path) -> socket.socket:
    """The socket of a run's folder, for its owner alone. Raises OSError."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    path = folder / files.SOCKET
    path.unlink(missing_ok=True)
    listener.bind(str(path))
    path.chmod(0o600)
    listener.listen(4)
    return listener


def note_process(folder: Path, pid: int) -> None:
    """Write down which process holds the run."""
    write_json(folder / files.STATE, {"pid": pid, "started_ticks": files.started_ticks(pid)})
