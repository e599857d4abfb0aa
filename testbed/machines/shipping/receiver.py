"""The receiver: ships the files of several machines into one run directory in parallel.

Each machine has a thread, which opens a stream to a sender there and runs a session. If the stream breaks, it
opens another one after a pause that doubles up to RETRY_S_MAX. During the run it never gives up; after the
run, it gives up a machine that was silent for `ShippingLimits.patience_s`. The calling thread closes the
streams of machines that are given up, and all streams when shipping has to end.

Only one receiver works on a run at a time, because two would append to the same files.

A sender is reached over a separate SSH connection. The connection that controls the run is a different one,
so that captures that fill buffers delay no order. The sender is started from our code on the machine
(`testbed.machines.software.deploy`), as root, because root owns the captures.
"""

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from experiments.files.sanitize import sanitize
from experiments.records.rundir import RunDirectory
from testbed.errors import MachineError, TestbedError
from testbed.machines.archive import Archive
from testbed.machines.inventory import InventoryMachine
from testbed.machines.run_folders import LOCAL
from testbed.machines.shipping.limits import DiskBudget, RateBudget, ShippingLimits, used_bytes
from testbed.machines.shipping.names import ShippingError
from testbed.machines.shipping.result import ShippingResult, ShippingState
from testbed.machines.shipping.sender import IDLE_S
from testbed.machines.shipping.session import DiskLimitError, SenderSession
from testbed.machines.shipping.transfer import FileTransfer
from testbed.machines.software.deploy import code_folder, our_python
from testbed.machines.ssh.ssh import RemoteProcess, connect

SILENCE_S = 20.0
"""How long a sender may leave a request unanswered until the connection is replaced."""
RETRY_S_MAX = 5.0
NONSENSE_MAX = 3
"""The number of protocol violations after which a machine is given up."""
SHOW_S = 0.2
LOOK_S = 0.1
END_TIMEOUT_S = 15.0
"""The time that all receivers have to end; longer than the setup of a connection takes."""

Listener = Callable[[dict[str, Any]], None]
"""Called with a machine's progress."""


@dataclass(frozen=True, slots=True)
class MachineSource:
    """A machine, and how to connect to a sender on it.

    folder: the run's, on the machine; code: the folder of our code on it
    (`testbed.machines.software.deploy`). lease_s: how long processes of the run may continue there without
    a message from here. during_run: whether the run still goes on and must not be disturbed.
    """

    machine: InventoryMachine
    folder: str
    code: str
    lease_s: float
    during_run: bool = True

    @classmethod
    def of_run(
        cls,
        run: RunDirectory,
        machine: InventoryMachine,
        archive: Archive,
        lease_us: int,
        *,
        during_run: bool,
    ) -> Self:
        """Return the source of a run's files on a machine, to which our code was deployed."""
        folder, code = machine.run_folder(run), code_folder(machine, archive)
        return cls(machine, folder, code, lease_us / 1e6, during_run=during_run)

    @property
    def name(self) -> str:
        """The machine's name."""
        return self.machine.name

    def open(self) -> RemoteProcess:
        """Start a sender and connect to it.

        Raises MachineError for host keys and logins, UnreachableError for the network.
        """
        connection = connect(self.machine)
        try:
            process = connection.open(self.command(), root=True)
        except BaseException:
            connection.close()
            raise
        process.timeout_s = SILENCE_S
        process.on_close = connection.close
        return process

    def command(self) -> list[str]:
        """Return the sender's command line on the machine."""
        nice = [] if self.during_run else ["--nice", "0"]
        without = [word for name in sorted(LOCAL) for word in ("--without", name)]
        idle_s = min(IDLE_S, int(self.lease_s))
        sender = ["-m", "testbed.machines.shipping.sender", self.folder, "--idle", str(idle_s)]
        return [*our_python(self.code), *sender, *nice, *without]


@dataclass(slots=True)
class _Shipping:
    """The state that all machine receivers share.

    disk_full: set to the reason when no more data fits here. stop: set to end all of them, incomplete.
    """

    limits: ShippingLimits
    rate: RateBudget
    disk: DiskBudget
    listener: Listener
    over: Callable[[str], bool]
    disk_full: str = ""
    stop: threading.Event = field(default_factory=threading.Event)
    notifying: threading.Lock = field(default_factory=threading.Lock)


def ship(
    sources: Sequence[MachineSource],
    run: Path,
    *,
    limits: ShippingLimits,
    listener: Listener,
    stop_following: Callable[[str], bool],
    give_up: Callable[[str], bool] = lambda _: False,
) -> dict[str, ShippingResult]:
    """Ship the files of all sources into the run directory; returns the result of each.

    Bytes that are here already are not shipped again. listener: called with the progress of a machine, from
    different threads, but one at a time. stop_following: returns whether that machine's part of the run is
    over, so that its files no longer grow; give_up: returns whether to end its shipping incomplete. Both are
    called repeatedly. Errors of a machine are not raised: its `ShippingResult` has them.
    """
    disk = DiskBudget(run, limits.disk_bytes, used_bytes(run))
    shipping = _Shipping(limits, RateBudget(limits.rate_bits_per_s), disk, listener, stop_following)
    claims: dict[str, str] = {}
    receivers = [
        _MachineReceiver(source, FileTransfer(source.name, run, claims, disk), shipping) for source in sources
    ]
    for receiver in receivers:
        receiver.start()
    try:
        while alive := [receiver for receiver in receivers if receiver.is_alive()]:
            given_up = [receiver for receiver in alive if give_up(receiver.source.name)]
            for receiver in given_up:
                receiver.give_up()
            if given_up == alive:
                break
            alive[0].join(LOOK_S)
    finally:
        shipping.stop.set()
        for receiver in receivers:
            receiver.disconnect()
        end_s = time.monotonic() + END_TIMEOUT_S
        for receiver in receivers:
            receiver.join(max(0.0, end_s - time.monotonic()))
    return {receiver.source.name: receiver.shipped() for receiver in receivers}


class _MachineReceiver(threading.Thread):
    """The receiver of one machine's files."""

    def __init__(self, source: MachineSource, transfer: FileTransfer, shipping: _Shipping) -> None:
        super().__init__(name=f"shipping {source.name}", daemon=True)
        self.source = source
        self._transfer = transfer
        self._shipping = shipping
        self._given_up = threading.Event()  # set if this machine is given up
        self._problem = "shipping did not end"
        self._connections = 0
        self._wire_bytes = 0
        self._received_s = time.monotonic()
        self._shown = (float("-inf"), ShippingState.CONNECTING)
        self._stream: RemoteProcess | None = None

    def run(self) -> None:
        """Ship all files, with as many connections as necessary; raises no error."""
        try:
            self._problem = self._ship()
        except Exception as error:  # noqa: BLE001 - a bug of ours must not look like success
            self._problem = f"{type(error).__name__}: {error}"
        done = ShippingState.SHIPPED if self.shipped().complete else ShippingState.GIVEN_UP
        self._show(done, self._problem)

    def shipped(self) -> ShippingResult:
        """Return the result."""
        files = self._transfer.outcome()
        return ShippingResult(self.source.name, self._problem, files, self._connections, self._wire_bytes)

    def give_up(self) -> None:
        """End, incomplete; idempotent."""
        self._given_up.set()
        self.disconnect()

    def disconnect(self) -> None:
        """Close the stream, if there is one."""
        stream = self._stream
        if stream is not None:
            with suppress(OSError, TestbedError):  # a broken stream is as good as closed
                stream.close()

    def _ship(self) -> str:
        """Ship all files; returns why not all arrived, empty if they did."""
        limits = self._shipping.limits
        pause_s, nonsense = limits.retry_s, 0
        while not self._stopped():
            was_over, heard_s = self._shipping.over(self.source.name), self._received_s
            try:
                self._show(ShippingState.CONNECTING)
                if self._run_session():
                    return self._sync()
                break
            except DiskLimitError as error:
                self._shipping.disk_full = str(error)
                self._shipping.stop.set()
                break
            except MachineError as error:
                return str(error)
            except (OSError, EOFError, TestbedError) as error:
                problem = str(error)
                nonsense += isinstance(error, ShippingError)
                if nonsense >= NONSENSE_MAX:
                    return problem
            if self._received_s > heard_s:
                pause_s = limits.retry_s
            elif was_over and time.monotonic() - self._received_s >= limits.patience_s:
                return f"{problem}; it was given up after {limits.patience_s:g} s"
            if not self._stopped():
                self._show(ShippingState.WAITING, problem)
                self._shipping.stop.wait(pause_s)
            pause_s = min(2 * pause_s, RETRY_S_MAX)
        if self._shipping.disk_full:
            return self._shipping.disk_full
        return "it was given up" if self._given_up.is_set() else "shipping was stopped"

    def _sync(self) -> str:
        """Sync all files that arrived to the disk; returns the problem, or empty text."""
        if not self._transfer.files:
            return "it has no files of this run"
        self._show(ShippingState.CHECKING)
        try:
            self._transfer.sync()
        except OSError as error:
            return f"its files cannot be synced to the disk: {error.strerror}"
        return ""

    def _run_session(self) -> bool:
        """Run one connection to its end; returns whether all files arrived."""
        self._stream = stream = self.source.open()
        self._connections += 1
        session = SenderSession(
            stream,
            self._transfer,
            self._shipping.rate,
            self._shipping.disk,
            over=lambda: self._shipping.over(self.source.name),
            heard=self._received,
            show=self._show,
            stopped=self._stopped,
            wait=self._shipping.stop.wait,
        )
        try:
            return session.run()
        except (OSError, EOFError) as error:
            raise EOFError(sanitize(stream.error_output()) or str(error)) from None
        finally:
            self.disconnect()
            self._stream = None

    def _stopped(self) -> bool:
        return self._shipping.stop.is_set() or self._given_up.is_set()

    def _received(self, size: int) -> None:
        self._received_s = time.monotonic()
        self._wire_bytes += size

    def _show(self, state: ShippingState, note: str = "") -> None:
        now_s = time.monotonic()
        if (state, note) == (self._shown[1], "") and now_s - self._shown[0] < SHOW_S:
            return
        self._shown = now_s, state
        message = {
            "did": "shipping",
            "machine": self.source.name,
            "state": str(state),
            "bytes": self._transfer.got_bytes,
            "of_bytes": self._transfer.known_bytes,
            "wire_bytes": self._wire_bytes,
            "note": note,
        }
        with self._shipping.notifying:
            self._shipping.listener(message)
