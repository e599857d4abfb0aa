"""The receiver of one machine's files, in a thread.

It opens a stream to a sender there and runs a session. If the stream breaks, it opens another one after a
pause that doubles up to RETRY_S_MAX. During the run it never gives up; after the run, it gives up a machine
that was silent for `ShippingLimits.patience_s`.
"""

import random
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from experiments.files.sanitize import sanitize
from testbed.errors import MachineError, TestbedError
from testbed.machines.shipping.frames import ShippingError
from testbed.machines.shipping.limits import DiskBudget, RateBudget, ShippingLimits
from testbed.machines.shipping.result import MachineProgress, ShippingResult, ShippingState
from testbed.machines.shipping.session import DiskLimitError, SenderConnection, SenderSession
from testbed.machines.shipping.transfer import FileTransfer

RETRY_S_MAX = 5.0
NONSENSE_MAX = 3
"""The number of protocol violations after which a machine is given up."""
SHOW_S = 0.2


class ShippingSource(Protocol):
    """A machine, and how to connect to a sender on it."""

    @property
    def name(self) -> str:
        """The name of the machine; a valid name of a folder."""

    def open(self) -> SenderConnection:
        """Start a sender and connect to it.

        Raises OSError or TestbedError; MachineError if a retry is useless.
        """


Listener = Callable[[MachineProgress], None]
"""Called with a machine's progress."""


@dataclass(slots=True)
class TransferContext:
    """The shared context of all machine receivers: their limits, and what they tell.

    disk_full: set to the reason when no more data fits here. stop: set to end all of them, incomplete.
    """

    limits: ShippingLimits
    rate: RateBudget
    disk: DiskBudget
    listener: Listener
    over: Callable[[str], bool]
    given_up: Callable[[str], bool]
    randomness: random.Random
    stop: threading.Event
    disk_full: str = ""


class MachineReceiver(threading.Thread):
    """The receiver of one machine's files."""

    def __init__(self, source: ShippingSource, transfer: FileTransfer, context: TransferContext) -> None:
        super().__init__(name=f"shipping {source.name}", daemon=True)
        self.source = source
        self._transfer = transfer
        self._context = context
        self._given_up = threading.Event()  # set if this machine is given up
        self._problem = "shipping did not end"
        self._connections = 0
        self._wire_bytes = 0
        self._received_s = time.monotonic()
        self._shown = (float("-inf"), ShippingState.CONNECTING)
        self._talk: tuple[SenderConnection, SenderSession] | None = None

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
        return ShippingResult(self.source.name, files, self._problem, self._connections, self._wire_bytes)

    def check_silence(self) -> bool:
        """Close a stream that is silent for too long, or whose machine is given up.

        Returns whether the machine is given up.
        """
        if self._context.given_up(self.source.name):
            self._given_up.set()
            self.disconnect()
            return True
        talk = self._talk
        if talk is not None and talk[1].silent_s() > self._context.limits.silence_s:
            _close(talk[0])
        return False

    def disconnect(self) -> None:
        """Close the stream, if there is one."""
        talk = self._talk
        if talk is not None:
            _close(talk[0])

    def _ship(self) -> str:
        """Ship all files; returns why not all arrived, empty if they did."""
        pause_s, nonsense = self._context.limits.retry_s, 0
        while not self._stopped():
            was_over, heard_s = self._context.over(self.source.name), self._received_s
            try:
                self._show(ShippingState.CONNECTING)
                if self._run_session():
                    return self._sync()
                break
            except DiskLimitError as error:
                self._context.disk_full = str(error)
                self._context.stop.set()
                break
            except MachineError as error:
                return str(error)
            except ShippingError as error:
                nonsense += 1
                if nonsense >= NONSENSE_MAX:
                    return str(error)
                problem = str(error)
            except (OSError, EOFError, TestbedError) as error:
                problem = str(error)
            silent_s = time.monotonic() - self._received_s
            if self._received_s > heard_s:
                pause_s = self._context.limits.retry_s
            elif was_over and silent_s >= self._context.limits.patience_s:
                return f"{problem}; it was given up after {self._context.limits.patience_s:g} s"
            if not self._stopped():
                self._show(ShippingState.WAITING, problem)
                self._context.stop.wait(pause_s * self._context.randomness.uniform(0.5, 1))
            pause_s = min(2 * pause_s, RETRY_S_MAX)
        return self._why_stopped()

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
        stream = self.source.open()
        self._connections += 1
        talk = SenderSession(
            stream,
            self._transfer,
            self._context.rate,
            self._context.disk,
            over=lambda: self._context.over(self.source.name),
            heard=self._received,
            show=self._show,
            stopped=self._stopped,
            wait=self._context.stop.wait,
        )
        self._talk = stream, talk
        try:
            return talk.run()
        except (OSError, EOFError) as error:
            raise EOFError(sanitize(stream.said()) or str(error)) from None
        finally:
            self._talk = None
            _close(stream)

    def _why_stopped(self) -> str:
        if self._context.disk_full:
            return self._context.disk_full
        return "it was given up" if self._given_up.is_set() else "shipping was stopped"

    def _stopped(self) -> bool:
        return self._context.stop.is_set() or self._given_up.is_set()

    def _received(self, size: int) -> None:
        self._received_s = time.monotonic()
        self._wire_bytes += size

    def _show(self, state: ShippingState, note: str = "") -> None:
        now_s = time.monotonic()
        if (state, note) == (self._shown[1], "") and now_s - self._shown[0] < SHOW_S:
            return
        self._shown = now_s, state
        transfer = self._transfer
        self._context.listener(
            MachineProgress(
                machine=self.source.name,
                state=state,
                bytes=transfer.got_bytes,
                of_bytes=transfer.known_bytes,
                wire_bytes=self._wire_bytes,
                files=transfer.files,
                note=note,
            )
        )


def _close(stream: SenderConnection) -> None:
    with suppress(OSError, TestbedError):  # a broken stream is as good as closed
        stream.close()
