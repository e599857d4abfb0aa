"""Ends commands of Cutset at random moments, by kill -9, SIGTERM or Ctrl-C, and looks for leftovers.

`python -m tests.kills --moments 100 --seed 1 --folder EMPTY [COMMAND...]` prints a line for each command, and
one for each moment with leftovers. The commands share a folder with one analysed run. Leftovers five seconds
after the command's end are: a process, a lock on the run, a mount (also one that keeps a namespace), a
temporary folder. Every tenth moment is followed by the command itself, which has to work.

Java ignores TMPDIR, so /tmp and /dev/shm are looked at, too, if they are not shared with other processes:
`unshare --mount` and a tmpfs on each before this program make them its own, and `--alone` says so.
"""

import argparse
import contextlib
import ctypes
import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from experiments.files.locks import LockHeldError, folder_lock
from tests.testbed.runner.live import PROJECT, write_experiment

CUTSET = (sys.executable, "-c", "from testbed.cli.main import main; main()")
MARK = "CUTSET_KILLED"
"""Every process that a command starts has this variable, with the attempt's token."""
TIDY_S = 60.0
"""Time for a command to end when asked: a run is collected and analysed."""
PATIENCE_S = 5.0
"""Time from its end to the check."""
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
ROOTS = (Path("/tmp"), Path("/dev/shm"))
PR_SET_CHILD_SUBREAPER = 36
"""prctl(2): orphans of our descendants become our children."""
WHOLE_EVERY = 10
COMMANDS = {
    "run": "run tiny.yaml --out runs-of-run",
    "live": "run tiny.yaml --out runs-of-live --live",
    "simulated": "run tiny.yaml --out runs-of-simulated --on simulator",
    "sweep": "run tiny.yaml --out runs-of-sweep --on simulator --repeat 2",
    "shell": "shell tiny.yaml --out runs-of-shell < lines",
    "analyze": "analyze RUN",
    "analyze-spark": "analyze RUN --master local[2]",
    "report": "report RUN",
    "compare": "compare RUN RUN -o exported.html",
    "packets": "packets RUN",
    "packets-pcap": "packets RUN --pcap exported.pcapng",
    "follow": "follow RUN r0 100",
    "diagram": "diagram RUN --from 0.5 --to 0.6 -o exported.svg",
    "captures": "captures RUN/captures -o exported.html",
    "sql": "sql RUN 'SELECT count(*) FROM packets'",
    "sql-captures": "sql RUN/captures 'SELECT count(*) FROM connections'",
    "sql-spark": "sql RUN 'SELECT count(*) FROM packets' --spark",
    "export": "export RUN -o exported.tar.zst",
    "verify": "verify archive.tar.zst",
    "reproduce": "reproduce archive.tar.zst --on simulator --repeat 2 --out runs-of-reproduce",
    "nightly": "nightly small.yaml --out runs-of-nights --history history",
    "hunt": "hunt tiny.yaml --set duration=12s --runs 4 --out hunt",
    "study": "study scribe-joins --set nodes=300 --repeat 2 --out runs-of-study",
    "topology": "topology matrix ibm-cloud-2024-08 -o exported.yaml",
    "plan": "plan tiny.yaml",
    "list": "list",
    "doctor": "doctor",
    "dissector": "dissector --system sprinkler -o exported.lua",
    "schema": "schema tables",
}
LINES = "cut r0 r1\nsh sleep 1\nrestore r0 r1\nstatus\npackets\nexit\n"
SUITE = """\
suite: small
budget: 10min
entries:
  - {experiment: ./tiny.yaml, name: simulated, on: simulator}
  - {experiment: ./tiny.yaml, name: real, on: local}
"""


@dataclass(frozen=True, slots=True)
class Left:
    """The leftovers of a command that a signal ended after this many seconds."""

    command: str
    number: signal.Signals
    after_s: float
    what: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.command}: {self.number.name} after {self.after_s:.2f} s left {', '.join(self.what)}"


class Place:
    """A folder with an experiment, a suite and one run, in which commands are ended."""

    def __init__(self, folder: Path, *, alone: bool = False) -> None:
        """alone: whether the temporary folders of the system, and orphans, are of these commands only."""
        self.folder = folder
        self.alone = alone
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        (folder / "lines").write_text(LINES)
        write_experiment(folder, faults="expect: [events.lost == 0]\n")
        (folder / "small.yaml").write_text(SUITE)
        made = self.start(["run", "tiny.yaml", "--out", "runs", "--seed", "1"], "made")
        if made.wait() not in {0, 1}:  # 1: on a busy machine it is not valid
            raise RuntimeError("the run that commands are tried on broke")
        [self.run] = (path for path in (folder / "runs").iterdir() if path.name != "latest")
        if self.start(["export", str(self.run), "-o", "archive.tar.zst"], "made").wait() != 0:
            raise RuntimeError("the run that commands are tried on cannot be exported")
        self._roots = self._in_roots()
        self._mounts = _mounts(str(folder))

    def start(self, arguments: Sequence[str], token: str) -> "subprocess.Popen[bytes]":
        """Start a command of Cutset, in a session of its own. `< FILE` at its end is its standard input."""
        *words, before_last, last = ["", *arguments]
        words, given = ([*words, before_last, last], os.devnull) if before_last != "<" else (words, last)
        environment = {
            **os.environ,
            "PYTHONPATH": str(PROJECT),
            "TMPDIR": str(self.temporary),
            MARK: token,
        }
        with (self.folder / given).open("rb") as stdin:
            return subprocess.Popen(
                [*CUTSET, *words[1:]],
                cwd=self.folder,
                env=environment,
                stdin=stdin,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )

    def arguments(self, command: str) -> list[str]:
        """Return the words of a command."""
        return [word.replace("RUN", str(self.run)) for word in shlex.split(COMMANDS[command])]

    def takes_s(self, command: str, *more: str) -> float:
        """How long it takes when it is not ended. Raises RuntimeError if it fails."""
        began_s = time.monotonic()
        code = self.start([*self.arguments(command), *more], "whole").wait()
        if code not in {0, 1}:
            raise RuntimeError(f"{command} ended with {code} though it was not ended")
        return time.monotonic() - began_s

    def ended(self, command: str, number: signal.Signals, after_s: float) -> Left | None:
        """End a command after some time; what it left, if anything."""
        self.clear()
        token = f"{command}-{os.urandom(6).hex()}"
        process = self.start(self.arguments(command), token)
        time.sleep(after_s)
        if number is signal.SIGINT:  # as a terminal does
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
        else:
            process.send_signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(TIDY_S)
        until_s = time.monotonic() + PATIENCE_S
        looks: dict[str, Callable[[], Iterable[str]]] = {
            "running": lambda: self._processes(token) if process.poll() is not None else [str(process.pid)],
            "locked": lambda: (str(run) for run in self._runs() if not _is_free(run)),
            "mounted": lambda: _mounts(str(self.folder)) - self._mounts,
            "temporary": lambda: map(str, [*self.temporary.iterdir(), *(self._in_roots() - self._roots)]),
            "in the making": lambda: map(str, [*self.folder.glob(".*"), *self.folder.glob("runs*/.*")]),
        }
        left = {name: list(look()) for name, look in looks.items()}
        while any(left.values()) and time.monotonic() < until_s:
            time.sleep(0.02)
            left = {name: list(looks[name]()) for name, found in left.items() if found}
        for pid in self._processes(token).values():
            os.kill(pid, signal.SIGKILL)
        process.wait()
        what = tuple(f"{name}: {'; '.join(found)}" for name, found in left.items() if found)
        return Left(command, number, after_s, what) if what else None

    def works(self, command: str) -> bool:
        """Return whether a command works on what is there."""
        begun = command == "nightly" and any(self.folder.glob("runs-of-nights/nights/*"))
        try:
            self.takes_s(command, *(["--resume"] if begun else []))
        except RuntimeError:
            return False
        return True

    def _processes(self, token: str) -> dict[str, int]:
        """Return the processes of a command by their command lines: those with its token, and our orphans."""
        found = processes_with(token)
        for each in psutil.Process().children(recursive=True) if self.alone else ():
            with contextlib.suppress(psutil.NoSuchProcess):
                if each.status() != psutil.STATUS_ZOMBIE:
                    found[f"{each.pid} {' '.join(each.cmdline())[:100]}"] = each.pid
        return found

    def _runs(self) -> Iterator[Path]:
        yield self.run
        yield from (path.parent for path in self.folder.glob("runs-of-*/*/run.json"))

    def _in_roots(self) -> set[Path]:
        """Return what is there; Java's folder for counters stays, but not what is in it."""
        found = {path for root in ROOTS for path in root.iterdir()} if self.alone else set()
        java = {path for path in found if path.name.startswith("hsperfdata_")}
        return found - java | {path for folder in java for path in folder.iterdir()}

    def clear(self) -> None:
        """Remove what an earlier attempt has made."""
        for path in self.folder.iterdir():
            if path.name.startswith(("runs-of-", "history", "hunt", "exported", ".")):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        for path in self.temporary.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def processes_with(token: str) -> dict[str, int]:
    """Return the processes that carry a token, by their command lines."""
    wanted, found = f"{MARK}={token}".encode(), {}
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and wanted in (entry / "environ").read_bytes().split(b"\0"):
                words = (entry / "cmdline").read_text().replace("\0", " ")
                found[f"{entry.name} {words[:100]}"] = int(entry.name)
        except OSError:
            continue
    return found


def _is_free(folder: Path) -> bool:
    try:
        with folder_lock(folder, wait=False):
            return True
    except LockHeldError:
        return False


def _mounts(folder: str) -> set[str]:
    """Return the mounts below a folder, and those that keep a namespace."""
    lines = Path("/proc/mounts").read_text().splitlines()
    return {line for line in lines if folder in line or line.startswith("nsfs ")}


def main() -> int:
    """Run the commands; return 1 if any left something."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("commands", nargs="*", default=list(COMMANDS), choices=[*COMMANDS, []])
    parser.add_argument("--moments", type=int, default=10, help="of each command")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, required=True, help="an empty one")
    parser.add_argument("--alone", action="store_true", help="look at /tmp, /dev/shm and orphans, too")
    given = parser.parse_args()
    if given.alone:
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell lets background commands ignore it
    place, found = Place(given.folder.resolve(), alone=given.alone), 0
    for command in given.commands:
        place.clear()
        rng, takes_s = random.Random(f"{given.seed} {command}"), place.takes_s(command)
        left = []
        for number in range(1, given.moments + 1):
            outcome = place.ended(command, rng.choice(SIGNALS), rng.uniform(0.0, takes_s))
            if outcome is None and number % WHOLE_EVERY == 0 and not place.works(command):
                outcome = Left(command, signal.SIGKILL, 0.0, ("a folder in which it fails",))
            if outcome is not None:
                left.append(outcome)
                print(f"{outcome}", flush=True)  # noqa: T201
        found += len(left)
        print(f"{command}: takes {takes_s:.1f} s; {len(left)} of {given.moments} left something", flush=True)  # noqa: T201
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
