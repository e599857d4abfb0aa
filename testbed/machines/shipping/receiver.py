"""The receiver: ships the files of several machines into one run directory in parallel.

Each machine has a thread (`machine_receiver`). The calling thread supervises them: it closes streams that are
silent for too long, and all streams when shipping has to end.

Only one receiver works on a run at a time, because two would append to the same files.

The source of a machine of an inventory is a sender there, reached over a separate SSH connection. The
connection that controls the run is a different one, so that captures that fill buffers delay no order. The
sender is started from our code on the machine (`testbed.machines.software.deploy`), as root, because root
owns the captures.
"""

import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from experiments.files.locks import LockHeldError, file_lock
from experiments.records.rundir import RunDirectory
from testbed.errors import MachineError, TestbedError
from testbed.machines.agent.files import LOCAL
from testbed.machines.inventory import InventoryMachine
from testbed.machines.shipping.limits import (
    SILENCE_S,
    DiskBudget,
    RateBudget,
    ShippingLimits,
    used_bytes,
)
from testbed.machines.shipping.machine_receiver import (
    Listener,
    MachineReceiver,
    ShippingSource,
    TransferContext,
)
from testbed.machines.shipping.result import MachineProgress, ShippingResult
from testbed.machines.shipping.sender import IDLE_S
from testbed.machines.shipping.transfer import FileTransfer
from testbed.machines.software.deploy import our_python
from testbed.machines.ssh.ssh import RemoteProcess, connect

LOOK_S = 0.1
END_TIMEOUT_S = 15.0
"""The time that all receivers have to end; longer than the setup of a connection takes."""


def ship(
    sources: Sequence[ShippingSource],
    run: Path,
    *,
    limits: ShippingLimits,
    listener: Listener,
    stop_following: Callable[[str], bool],
    give_up: Callable[[str], bool] = lambda _: False,
    randomness: random.Random | None = None,
) -> dict[str, ShippingResult]:
    """Ship the files of all sources into the run directory; returns the result of each.

    Bytes that are here already are not shipped again. listener: called with the progress of a machine, from
    different threads, but one at a time. stop_following: returns whether that machine's part of the run is
    over, so that its files no longer grow; give_up: returns whether to end its shipping incomplete. Both are
    called repeatedly. Errors of a machine are not raised: its `ShippingResult` has them.
    """
    stop, notifying = threading.Event(), threading.Lock()

    def notify(progress: MachineProgress) -> None:
        with notifying:
            listener(progress)

    disk = DiskBudget(run, limits.disk_bytes, used_bytes(run))
    context = TransferContext(
        limits=limits,
        rate=RateBudget(limits.rate_bits_per_s),
        disk=disk,
        listener=notify,
        over=stop_following,
        given_up=give_up,
        randomness=randomness or random.Random(),  # noqa: S311 (spreads retries)
        stop=stop,
    )
    claims: dict[str, str] = {}
    receivers = [
        MachineReceiver(source, FileTransfer(source.name, run, claims, disk), context) for source in sources
    ]
    for receiver in receivers:
        receiver.start()
    try:
        while alive := [receiver for receiver in receivers if receiver.is_alive()]:
            given_up = [receiver.check_silence() for receiver in alive]
            if all(given_up):
                break
            alive[0].join(LOOK_S)
    finally:
        stop.set()
        for receiver in receivers:
            receiver.disconnect()
        end_s = time.monotonic() + END_TIMEOUT_S
        for receiver in receivers:
            receiver.join(max(0.0, end_s - time.monotonic()))
    return {receiver.source.name: receiver.shipped() for receiver in receivers}


@contextmanager
def run_lock(run: RunDirectory, *, who: str) -> Iterator[None]:
    """Lock the shipping of this run's files.

    who: a short description for others. Raises TestbedError if another process has the lock, MachineError if
    the run directory cannot be written.
    """
    with ExitStack() as stack:
        try:
            stack.enter_context(file_lock(run.shipping_lock, who=who))
        except LockHeldError as error:
            raise TestbedError(
                f"the files of {run.name} are being fetched by {error}: wait until it has ended"
            ) from None
        except OSError as error:
            raise MachineError(f"cannot write {run.path}: {error.strerror}") from error
        yield


@dataclass(frozen=True, slots=True)
class MachineSource:
    """A sender on a machine of an inventory, as a `ShippingSource`.

    folder: the run's, on the machine; code: the folder of our code on it
    (`testbed.machines.software.deploy`). lease_s: how long processes of the run may continue there without
    a message from here. during_run: whether the run still goes on and must not be disturbed.
    """

    machine: InventoryMachine
    folder: str
    code: str
    lease_s: float
    silence_s: float = SILENCE_S
    during_run: bool = True

    @property
    def name(self) -> str:
        """The machine's name."""
        return self.machine.name

    def open(self) -> RemoteProcess:
        """See `ShippingSource`. Raises MachineError for host keys and logins, UnreachableError for the
        network.
        """
        connection = connect(self.machine)
        try:
            process = connection.open(self.command(), root=True)
        except BaseException:
            connection.close()
            raise
        process.timeout_s = self.silence_s
        process.on_close = connection.close
        return process

    def command(self) -> list[str]:
        """Return the sender's command line on the machine."""
        nice = [] if self.during_run else ["--nice", "0"]
        without = [word for name in sorted(LOCAL) for word in ("--without", name)]
        idle_s = min(IDLE_S, int(self.lease_s))
        sender = ["-m", "testbed.machines.shipping.sender", self.folder, "--idle", str(idle_s)]
        return [*our_python(self.code), *sender, *nice, *without]
