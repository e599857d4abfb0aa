"""Ends commands of Cutset at random moments, by kill -9, SIGTERM or Ctrl-C, and looks for leftovers.

`python -m tests.kills --moments 100 --seed 1 [COMMAND...]` prints a line for each command, and one for each
moment with leftovers. The commands share a folder with one analysed run. Leftovers five seconds after the
command's end are: a process, a lock on the run, a mount, a temporary folder.
"""

import argparse
import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.campaign.in_use import is_over
from tests.testbed.runner.live import PROJECT, write_experiment

CUTSET = (sys.executable, "-c", "from testbed.cli.main import main; main()")
MARK = "CUTSET_KILLED"
"""Every process that a command starts has this variable, with the attempt's token."""
TIDY_S = 60.0
"""Time for a command to end when asked: a run is collected and analysed."""
PATIENCE_S = 5.0
"""Time from its end to the check."""
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
COMMANDS = {
    "run": "run tiny.yaml --out runs-of-run",
    "live": "run tiny.yaml --out runs-of-live --live",
    "simulated": "run tiny.yaml --out runs-of-simulated --on simulator",
    "sweep": "run tiny.yaml --out runs-of-sweep --on simulator --repeat 2",
    "analyze": "analyze RUN",
    "report": "report RUN",
    "export": "export RUN -o exported.tar.zst",
    "verify": "verify RUN",
    "sql": "sql RUN 'SELECT count(*) FROM packets'",
    "packets": "packets RUN",
    "nightly": "nightly small.yaml --out runs-of-nights --history history",
    "hunt": "hunt tiny.yaml --set duration=12s --runs 4 --out hunt",
    "study": "study scribe-joins --set nodes=300 --repeat 2 --out runs-of-study",
}
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

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        write_experiment(folder, faults="expect: [events.lost == 0]\n")
        (folder / "small.yaml").write_text(SUITE)
        made = self.start(["run", "tiny.yaml", "--out", "runs", "--seed", "1"], "made")
        if made.wait() not in {0, 1}:  # 1: on a busy machine it is not valid
            raise RuntimeError("the run that commands are tried on broke")
        [self.run] = (path for path in (folder / "runs").iterdir() if path.name != "latest")

    def start(self, arguments: Sequence[str], token: str) -> "subprocess.Popen[bytes]":
        """Start a command of Cutset, in a session of its own."""
        environment = {
            **os.environ,
            "PYTHONPATH": str(PROJECT),
            "TMPDIR": str(self.temporary),
            MARK: token,
        }
        return subprocess.Popen(
            [*CUTSET, *arguments],
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def arguments(self, command: str) -> list[str]:
        """Return the words of a command."""
        words = [word.strip("'") for word in _words(COMMANDS[command])]
        return [str(self.run) if word == "RUN" else word for word in words]

    def takes_s(self, command: str) -> float:
        """How long it takes when it is not ended. Raises RuntimeError if it fails."""
        self.clear()
        began_s = time.monotonic()
        code = self.start(self.arguments(command), "whole").wait()
        if code not in {0, 1}:
            raise RuntimeError(f"{command} ended with {code} though it was not ended")
        return time.monotonic() - began_s

    def ended(self, command: str, number: signal.Signals, after_s: float) -> Left | None:
        """End a command after some time; what it left, if anything."""
        self.clear()
        token = f"{command}-{os.urandom(6).hex()}"
        process = self.start(self.arguments(command), token)
        time.sleep(after_s)
        process.send_signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(TIDY_S)
        until_s = time.monotonic() + PATIENCE_S
        looks: dict[str, Callable[[], bool]] = {
            "processes": lambda: process.poll() is not None and not processes_with(token),
            "a lock": lambda: is_over(self.run),
            "a mount": lambda: str(self.folder) not in Path("/proc/mounts").read_text(),
            "temporary files": lambda: not any(self.temporary.iterdir()),
            "working folders": lambda: (
                not any(self.folder.glob(".*")) and not any(self.run.parent.glob(".*"))
            ),
        }
        left = set(looks)
        while left and time.monotonic() < until_s:
            left -= {name for name in left if looks[name]()}
            time.sleep(0.02)
        what = tuple(
            f"{name} ({'; '.join(processes_with(token))})" if name == "processes" else name for name in left
        )
        for pid in processes_with(token).values():
            os.kill(pid, signal.SIGKILL)
        process.wait()
        return Left(command, number, after_s, what) if what else None

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


def _words(text: str) -> list[str]:
    head, quote, rest = text.partition("'")
    return [*head.split(), *([rest.rstrip("'")] if quote else [])]


def main() -> int:
    """Run the commands; return 1 if any left something."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("commands", nargs="*", default=list(COMMANDS), choices=[*COMMANDS, []])
    parser.add_argument("--moments", type=int, default=10, help="of each command")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, required=True, help="an empty one")
    given = parser.parse_args()
    place, found = Place(given.folder.resolve()), 0
    for command in given.commands:
        rng, takes_s = random.Random(f"{given.seed} {command}"), place.takes_s(command)
        left = []
        for _ in range(given.moments):
            outcome = place.ended(command, rng.choice(SIGNALS), rng.uniform(0.0, takes_s))
            if outcome is not None:
                left.append(outcome)
                print(outcome, flush=True)  # noqa: T201
        found += len(left)
        print(f"{command}: takes {takes_s:.1f} s; {len(left)} of {given.moments} left something", flush=True)  # noqa: T201
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
