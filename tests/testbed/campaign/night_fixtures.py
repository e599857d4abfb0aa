"""A folder with a small suite of runs in virtual time, and nights of it as a user would run them."""

import json
import signal
import subprocess
import sys
from collections import Counter
from datetime import date
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from analysis.history import History
from experiments.campaigns.nights import NightDirectory, NightRecord
from experiments.suite import read_suite
from testbed.cli import main
from testbed.nightly.planning import new_record
from tests.testbed.runner.live import PROJECT, write_experiment

VIRTUAL = "captures: none\non: simulator\nexpect: [events.lost == 0]\n"
NEVER = "{expect: [latency.p99_ms <= 0.001]}"
NO_TIME = "{duration: 10min}"  # within a budget of a minute it is left out
NIGHT = "2026-11-21"
IN_A_RUN = "testbed.execution.phases:drain"
"""A function that each run calls when it is partly done."""


class Nights:
    """Nights of a small suite in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.history = folder / "history"
        self.told_json = folder / "told.json"
        write_experiment(folder, faults=VIRTUAL)

    def suite(self, *entries: str, budget: str = "10min") -> None:
        lines = "".join(f"  - {{experiment: ./tiny.yaml, {entry}}}\n" for entry in entries)
        (self.folder / "small.yaml").write_text(f"suite: small\nbudget: {budget}\nentries:\n{lines}")

    def command(self, *options: str) -> list[str]:
        where = ["--out", str(self.folder / "runs"), "--history", str(self.history)]
        return ["nightly", str(self.folder / "small.yaml"), *where, "--date", NIGHT, *options]

    def run(self, *options: str) -> int:
        return main.run(self.command(*options))

    @property
    def hook(self) -> str:
        """Return a hook that records its input."""
        return f"{sys.executable} -c \"open('{self.told_json}', 'a').write(input() + chr(10))\""

    def told(self) -> list[dict[str, Any]]:
        """Return the hook's notifications in order."""
        lines = self.told_json.read_text().splitlines() if self.told_json.exists() else []
        return [json.loads(line) for line in lines]

    @property
    def directory(self) -> NightDirectory:
        return NightDirectory.for_night(self.folder / "runs", date.fromisoformat(NIGHT), "small")

    def planned(self) -> NightRecord:
        """Return the record of the night before any run."""
        file = read_suite(str(self.folder / "small.yaml"))
        return new_record(file, date.fromisoformat(NIGHT), commit=None, started_ns=0)

    @property
    def record(self) -> NightRecord:
        return self.directory.read()

    def kept(self) -> Counter[str]:
        """Return how often each run is in the history, by its directory's name."""
        history = History(self.history)
        names = history.runs()["run"].to_pylist()
        assert history.problems == []
        return Counter(names)

    def cases(self) -> list[tuple[str | None, list[str]]]:
        """Return JUnit's test cases with their messages."""
        cases = ElementTree.parse(self.directory.junit_xml).findall(".//testcase")
        return [(case.get("name"), [child.tag for child in case]) for case in cases]

    def ended_by(self, number: int, where: str, *options: str, calls: int = 1, first: str = "") -> int:
        """Run a night in a process that gets a signal at the n-th call of a function; return its exit code.

        calls: n. first: statements to execute before.
        """
        module, _, name = where.rpartition(":")
        owner, _, attribute = f"module.{name}".rpartition(".")
        program = f"""
import importlib, itertools, os, sys
from testbed.cli import main
module = importlib.import_module({module!r})
real, calls = {owner}.{attribute}, itertools.count(1)
def called(*given, **named):
    if next(calls) == {calls}:
        os.kill(os.getpid(), {int(number)})
    return real(*given, **named)
{owner}.{attribute} = called
{first}
sys.exit(main.run(sys.argv[1:]))
"""
        command = [sys.executable, "-c", program, *self.command(*options)]
        done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
        assert done.returncode in {-number, 130}, done.stderr
        return done.returncode

    def killed(self, where: str, *options: str, calls: int = 1, first: str = "") -> None:
        """Run a night that is killed at that point."""
        assert self.ended_by(signal.SIGKILL, where, *options, calls=calls, first=first) == -signal.SIGKILL
