"""The receiver: ships the files of several machines into one run directory at the same time.

Each machine has a thread (`machine_receiver`). The calling thread supervises them: it closes streams that are
silent for too long, and all when shipping has to end.

Only one receiver works on a run at a time: two would append to the same files.
"""

import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from experiments.locks import HeldError, file_lock
from experiments.rundir import RunDirectory
from testbed.errors import MachineError, TestbedError
from testbed.machines.shipping.limits import Bounds, Disk, Limits, Rate, used_bytes
from testbed.machines.shipping.machine_receiver import Listener, MachineReceiver, Source, TransferContext
from testbed.machines.shipping.result import Progress, ShippingResult
from testbed.machines.shipping.transfer import Transfer

LOOK_S = 0.1
END_TIMEOUT_S = 15.0
"""For all that are to end as they are: longer than a connection takes to be made."""


def ship(
    sources: Sequence[Source],
    run: Path,
    *,
    limits: Limits,
    listener: Listener,
    stop_following: Callable[[str], bool],
    give_up: Callable[[str], bool] = lambda _: False,
    randomness: random.Random | None = None,
) -> dict[str, ShippingResult]:
    """Bring the files of all sources into the run directory, and say what became of each.

    What is there already is not shipped again. listener: told how far each machine is, in one thread at a
    time, but not always the same. stop_following: whether that machine's part of the run is over, so that
    no file grows any more; give_up: whether to end with it as it is. Both are asked again and again.
    Raises nothing for what goes wrong with a machine: its `ShippingResult` says it.
    """
    stop, telling = threading.Event(), threading.Lock()

    def tell(progress: Progress) -> None:
        with telling:
            listener(progress)

    disk = Disk(run, limits.disk_bytes, used_bytes(run))
    context = TransferContext(
        bounds=Bounds(Rate(limits.rate_bits_per_s), disk, wait=stop.wait),
        limits=limits,
        listener=tell,
        over=stop_following,
        given_up=give_up,
        randomness=randomness or random.Random(),  # noqa: S311 (spreads retries)
        stop=stop,
    )
    claims: dict[str, str] = {}
    receivers = [
        MachineReceiver(source, Transfer(source.name, run, claims, disk), context) for source in sources
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
        except HeldError as error:
            raise TestbedError(
                f"the files of {run.name} are being brought here by {error}: wait until that has ended"
            ) from None
        except OSError as error:
            raise MachineError(f"cannot write {run.path}: {error.strerror}") from error
        yield
