"""Stops or kills pieces of runs on two machines at random moments, and checks what is called complete.

`python -m tests.testbed.machines.pieces --moments 40 --seed 1`, as root, prints a line for each moment. While
a run goes on, each file that a machine writes gets a second name there, which nothing deletes. At the end
both must agree with the controller's copy wherever the run calls a machine complete; elsewhere no file of
the run may have been deleted there. Then `cutset fetch` has to fetch the rest, and leave nothing.
"""

import argparse
import contextlib
import hashlib
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from experiments.records.run_record import record_to_json
from tests.testbed.machines.lab import Lab
from tests.testbed.machines.labs.live_on_machines import CUTSET, RunOnMachines, wait_until_clean
from tests.testbed.machines.labs.machine import LabMachine
from tests.testbed.machines.labs.observation import Standing

PIECES: Final = {
    "supervisor": ("testbed.machines.agent", "start"),
    "runner": ("testbed.runner",),
    "relay": ("testbed.links.relay",),
    "tcpdump": ("tcpdump",),
    "sshd": ("sshd",),
}
SIGNALS: Final = (signal.SIGSTOP, signal.SIGKILL)
LEASE_S: Final = 10
CLEAN_S: Final = LEASE_S + 50.0
"""As in test_runs.py: a machine has its lease and the time to end a run."""
HANG_S: Final = 150.0
LOOK_S: Final = 0.02
SHIPPED: Final = ("captures", "logs", "deliveries")


class SecondNames:
    """Second names of all files of runs on a machine."""

    def __init__(self, machine: LabMachine) -> None:
        self._runs = machine.path(machine.folder) / "runs"
        self._second = machine.path(machine.folder) / "kept"
        self._inodes: dict[str, int] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._keep)

    def __enter__(self) -> "SecondNames":
        self._second.mkdir(parents=True, exist_ok=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        for path in self._second.iterdir():
            path.unlink()

    def files(self) -> dict[str, Path]:
        """Return the second names by the file's path below the run."""
        return {name: self._second / str(inode) for name, inode in self._inodes.items()}

    def there(self) -> set[str]:
        """Return the paths of the files that the machine still has."""
        return {name for name, _ in self._seen()}

    def _seen(self) -> Iterator[tuple[str, Path]]:
        for kind in SHIPPED:
            for path in self._runs.glob(f"*/{kind}/*"):
                yield f"{kind}/{path.name}", path

    def _keep(self) -> None:
        while not self._over.wait(LOOK_S):
            for name, path in self._seen():
                with contextlib.suppress(FileNotFoundError):
                    inode = path.stat().st_ino
                    if self._inodes.get(name) != inode:
                        with contextlib.suppress(FileExistsError):
                            os.link(path, self._second / str(inode))
                        self._inodes[name] = inode


def hit(machine: LabMachine, piece: str, number: signal.Signals) -> int:
    """Send the signal to one kind of process on a machine; return how many there were."""
    words = PIECES[piece]
    found = [
        process
        for process in machine.processes()
        if (process.is_sshd if piece == "sshd" else all(word in process.line for word in words))
    ]
    for process in found:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, number)
    return len(found)


def faults_of(
    lab: Lab, before: dict[str, Standing], rng: random.Random, takes_s: float
) -> tuple[str, list[str]]:
    """Make one run, and hit a piece of it; return what was done, and what is wrong."""
    piece, number, name = rng.choice(list(PIECES)), rng.choice(SIGNALS), rng.choice(list(lab.machines))
    after_s = rng.uniform(0.0, takes_s)
    wrong: list[str] = []
    inventory = lab.write_inventory("pieces.yaml", lease=f"{LEASE_S}s")
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        kept = {each.name: stack.enter_context(SecondNames(each)) for each in lab.machines.values()}
        run = stack.enter_context(RunOnMachines(lab, folder, inventory))
        began_s = time.monotonic()
        time.sleep(after_s)
        while not (count := hit(lab[name], piece, number)) and run.process.poll() is None:
            time.sleep(LOOK_S)
        at_s = time.monotonic() - began_s
        hangs = threading.Timer(HANG_S, hit, (lab[name], piece, signal.SIGCONT))
        hangs.start()
        try:
            code, complete = run.end(), _complete(run)
            wrong += [f"deleted: {text}" for text in _deleted(kept, complete)]
        finally:
            if hangs.finished.is_set():
                wrong.append(f"it hangs for {HANG_S:g} s")
            hangs.cancel()
            hit(lab[name], piece, signal.SIGCONT)
        done = f"{piece} on {name}: {number.name} to {count} after {at_s:.1f} s, exit code {code}, {complete}"
        if False in complete.values():
            fetched = lab.run([*CUTSET, "fetch", run.run.path])
            if fetched.returncode:
                wrong.append(f"fetch: {fetched.returncode} {fetched.stderr}")
            complete = _complete(run)
        try:
            wait_until_clean(lab, before, timeout_s=CLEAN_S)
        except AssertionError as error:
            wrong.append(str(error))
        wrong += [f"differs: {text}" for text in _differing(run, kept, complete)]
    return done, wrong


def _complete(run: RunOnMachines) -> dict[str, bool]:
    """Return which machines the run calls complete; none if it did not begin."""
    if not run.out.exists():
        return {}
    shipped: list[Any] = record_to_json(run.record).get("shipped") or []
    return {each["machine"]: each["complete"] for each in shipped}


def _deleted(kept: dict[str, SecondNames], complete: dict[str, bool]) -> Iterator[str]:
    for name, each in kept.items():
        if not complete.get(name, True):
            yield from (f"{name}: {file}" for file in sorted(set(each.files()) - each.there()))


def _differing(run: RunOnMachines, kept: dict[str, SecondNames], complete: dict[str, bool]) -> Iterator[str]:
    for name, each in kept.items():
        for file, path in each.files().items() if complete.get(name) else ():
            here = run.run.path / file
            if not here.is_file() or _sha256(here) != _sha256(path):
                yield f"{name}: {file}"


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def main() -> int:
    """Make the runs; return 1 if anything is wrong with one."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--moments", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    found = 0
    with Lab(2) as lab:
        lab.know()
        before = lab.standing()
        with tempfile.TemporaryDirectory() as folder:
            began_s = time.monotonic()
            with RunOnMachines(lab, Path(folder), lab.inventory) as run:
                run.end()
            takes_s = time.monotonic() - began_s
        for number in range(given.moments):
            done, wrong = faults_of(lab, before, random.Random(f"{given.seed} {number}"), takes_s)
            found += bool(wrong)
            print(f"{number}: {done}", *wrong, sep="\n    ", flush=True)  # noqa: T201
    print(f"{found} of {given.moments} moments were wrong", flush=True)  # noqa: T201
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
