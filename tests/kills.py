"""Ends commands of Cutset at random moments, by kill -9, SIGTERM or Ctrl-C, and looks for leftovers.

`python -m tests.kills --moments 100 --seed 1 --folder EMPTY [COMMAND...]` prints a line for each moment, and
one for each command. The commands share a folder with one analysed run. Leftovers five seconds after the
command's end are: a process, a lock on the run, a mount (also one that keeps a namespace), a temporary
folder. The commands take turns. After ten moments, the command itself has to work. A moment counts if the
command was still running, and did not end as if nothing had been sent.

Java ignores TMPDIR, so /tmp and /dev/shm are looked at, too, if they are not shared with other processes:
`unshare --mount` and a tmpfs on each before this program make them its own, and `--alone` says so.
"""

import argparse
import contextlib
import ctypes
import dataclasses
import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
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
ROUND = 10
"""Moments of a command until it is the next one's turn."""
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
    "history": "history list --history past",
    "history-add": "history add RUN --history history",
    "emulab": "emulab profile four-regions -o exported.xml",
    "schema": "schema tables",
}
LINES = "cut r0 r1\nsh sleep 1\nrestore r0 r1\nstatus\nexit\n"
SUITE = """\
suite: small
budget: 10min
entries:
  - {experiment: ./tiny.yaml, name: simulated, on: simulator}
  - {experiment: ./tiny.yaml, name: real, on: local}
"""


@dataclasses.dataclass(frozen=True, slots=True)
class Moment:
    """A signal to a command after this many seconds, and what the command left.

    code: its exit code; late: whether it had ended before.
    """

    command: str
    number: signal.Signals
    after_s: float
    code: int | None
    late: bool
    left: tuple[str, ...] = ()

    def __str__(self) -> str:
        left = f", left {', '.join(self.left)}" if self.left else ""
        late = ", too late" if self.late else ""
        return f"{self.command}: {self.number.name} after {self.after_s:.2f} s, code {self.code}{late}{left}"


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
        self._roots = self._in_roots()
        self._mounts = _mounts(str(folder))

    def prepare(self) -> None:
        """Make what commands that read archives or a history need."""
        for arguments in (["export", "-o", "archive.tar.zst"], ["history", "add", "--history", "past"]):
            if self.start([*arguments, str(self.run)], "made").wait() != 0:
                raise RuntimeError(f"cutset {arguments[0]} fails on the run that commands are tried on")

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

    def takes_s(self, command: str) -> float:
        """How long it takes when it is not ended, on what is there. Raises RuntimeError if it fails."""
        begun = command == "nightly" and any(self.folder.glob("runs-of-nights/nights/*"))
        began_s = time.monotonic()
        code = self.start([*self.arguments(command), *(["--resume"] if begun else [])], "whole").wait()
        if code not in {0, 1}:
            raise RuntimeError(f"{command} ended with {code} though it was not ended")
        return time.monotonic() - began_s

    def ended(self, command: str, number: signal.Signals, after_s: float) -> Moment:
        """End a command after some time; return what it left."""
        self.clear()
        token = f"{command}-{os.urandom(6).hex()}"
        process = self.start(self.arguments(command), token)
        time.sleep(after_s)
        late = process.poll() is not None
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
            "in the making": lambda: map(str, self._unfinished()),
        }
        left = {name: list(look()) for name, look in looks.items()}
        while any(left.values()) and time.monotonic() < until_s:
            time.sleep(0.02)
            left = {name: list(looks[name]()) for name, found in left.items() if found}
        for pid in self._processes(token).values():
            os.kill(pid, signal.SIGKILL)
        code = process.wait()
        what = tuple(f"{name}: {'; '.join(found)}" for name, found in left.items() if found)
        return Moment(command, number, after_s, code, late or code in {0, 1}, what)

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

    def _unfinished(self) -> Iterator[Path]:
        """Yield what is not complete: beside runs, in a run, in its analysis."""
        for pattern in (".*", "runs*/.*", "runs*/*/.*", "runs*/*/analysis/.*", "runs*/*/analysis/*.part"):
            yield from self.folder.glob(pattern)

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
    place = Place(given.folder.resolve(), alone=given.alone)
    place.prepare()
    return _moments(place, given.commands, given.moments, given.seed)


def _moments(place: Place, commands: Sequence[str], number: int, seed: int) -> int:
    moments: dict[str, list[Moment]] = {command: [] for command in commands}
    for first in range(0, number, ROUND):
        for command, done in moments.items():
            rng = random.Random(f"{seed} {command} {first}")
            place.clear()
            takes_s = place.takes_s(command)
            for _ in range(min(ROUND, number - first)):
                done.append(place.ended(command, rng.choice(SIGNALS), rng.uniform(0.0, takes_s)))
                print(done[-1], flush=True)  # noqa: T201
                takes_s = min(takes_s, done[-1].after_s) if done[-1].late else takes_s
            try:
                place.takes_s(command)
            except RuntimeError as error:
                done[-1] = dataclasses.replace(done[-1], left=(str(error),))
                print(done[-1], flush=True)  # noqa: T201
    for command, done in moments.items():
        left, late = sum(bool(each.left) for each in done), sum(each.late for each in done)
        print(f"{command}: {len(done)} moments, {late} too late, {left} left something", flush=True)  # noqa: T201
    return 1 if any(each.left for done in moments.values() for each in done) else 0


if __name__ == "__main__":
    sys.exit(main())
