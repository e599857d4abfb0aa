"""The receiver: ships the files of several machines into one run directory at the same time.

Each machine has a thread (`lane`). The calling thread looks after them: it breaks streams that are silent for
too long, and all when shipping is to end.

One receiver brings a run at a time: two would append to the same files.
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
from testbed.machines.shipping.lane import Company, Lane, Listener, Source
from testbed.machines.shipping.limits import Bounds, Disk, Limits, Rate, used_bytes
from testbed.machines.shipping.result import Progress, Shipped
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
) -> dict[str, Shipped]:
    """Bring the files of all sources into the run directory, and say what became of each.

    What is there already is not shipped again. listener: told how far each machine is, in one thread at a
    time, but not always the same. stop_following: whether that machine's part of the run is over, so that
    no file grows any more; give_up: whether to end with it as it is. Both are asked again and again.
    Raises nothing for what goes wrong with a machine: its `Shipped` says it.
    """
    stop, telling = threading.Event(), threading.Lock()

    def tell(progress: Progress) -> None:
        with telling:
            listener(progress)

    disk = Disk(run, limits.disk_bytes, used_bytes(run))
    company = Company(
        bounds=Bounds(Rate(limits.rate_bits_per_s), disk, wait=stop.wait),
        limits=limits,
        listener=tell,
        over=stop_following,
        given_up=give_up,
        randomness=randomness or random.Random(),  # noqa: S311 (spreads retries)
        stop=stop,
    )
    claims: dict[str, str] = {}
    lanes = [Lane(source, Transfer(source.name, run, claims, disk), company) for source in sources]
    for lane in lanes:
        lane.start()
    try:
        while alive := [lane for lane in lanes if lane.is_alive()]:
            given_up = [lane.look_after() for lane in alive]
            if all(given_up):
                break
            alive[0].join(LOOK_S)
    finally:
        stop.set()
        for lane in lanes:
            lane.break_off()
        end_s = time.monotonic() + END_TIMEOUT_S
        for lane in lanes:
            lane.join(max(0.0, end_s - time.monotonic()))
    return {lane.source.name: lane.shipped() for lane in lanes}


@contextmanager
def run_lock(run: RunDirectory, *, who: str) -> Iterator[None]:
    """Be the only one that brings files of this run here.

    who: what to tell others, in a few words. Raises TestbedError if somebody else does, MachineError if the
    run directory cannot be written.
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
