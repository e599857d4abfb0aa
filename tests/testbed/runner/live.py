"""Runs `cutset run` on a tiny network as a user would, and follows its standard error."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from experiments.child_python import python_command
from tests.testbed.leftovers import (
    Namespace,
    assert_nothing_left,
    host_interfaces,
    namespaces_of,
    process_running,
)

CUTSET = [sys.executable, "-c", "from testbed.cli.main import main; main()"]
PROJECT = Path(__file__).resolve().parents[3]

UNSHARE = ("unshare",)
PID_1 = tuple(python_command("testbed.sandbox.init"))
RELAY = tuple(python_command("testbed.links.relay", options=["-S"]))

TOPOLOGY = """
name: two-regions
regions:
  r0: {lan: {delay: 1ms, rate: 1gbit}}
  r1: {lan: {delay: 1ms, rate: 1gbit}}
links:
  - {between: [r0, r1], delay: 5ms, rate: 1gbit}
"""
EXPERIMENT = """
name: tiny
topology: ./two-regions.yaml
system: sprinkler
roles: {proxy: 1, driver: 1, client: 1}
workload: {event_size: 10B, rate: 2000/s}
duration: 1500ms
drain: 30s
"""
CUT_FOR_GOOD = "faults: [{name: cut, at: 500ms, cut: [r0, r1]}]\n"
"""Two regions whose only link is cut can never finish draining."""
_LATE = re.compile(r"fault \S+ changed .* \d+ ms late")


def problems(record: dict[str, Any]) -> list[str]:
    """Return a run's problems, except late faults, which are caused by the machine's load."""
    return [problem for problem in record["problems"] if not _LATE.fullmatch(problem)]


def write_experiment(folder: Path, *, faults: str = "") -> Path:
    """Write the tiny experiment and its topology to files."""
    (folder / "two-regions.yaml").write_text(TOPOLOGY)
    path = folder / "tiny.yaml"
    path.write_text(EXPERIMENT + faults)
    return path


class LiveCommand:
    """A command that makes a run on the tiny network, with its output and its run's results."""

    process: subprocess.Popen[Any]
    said: Sequence[str]

    def __init__(self) -> None:
        self._interfaces = host_interfaces()
        self._namespaces: set[Namespace] = set()

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    @property
    def directory(self) -> Path:
        """The run's directory, once it was announced."""
        found = re.search(r"^run (.*)$", "".join(self.said), re.MULTILINE)
        assert found is not None, self.said
        return Path(found[1].strip())

    @property
    def token(self) -> str:
        """Return the token that all the run's processes carry."""
        return self.directory.name

    def pid(self, *beginning: str) -> int:
        """Return the run's process whose command line begins like this; remember the current namespaces."""
        pid = process_running(self.token, *beginning)
        self._namespaces |= namespaces_of(self.token)
        return pid

    def kill(self, *beginning: str, number: signal.Signals = signal.SIGKILL) -> None:
        """Signal the run's process whose command line begins like this, or the command itself."""
        pid = self.pid(*(beginning or PID_1))
        os.kill(pid if beginning else self.process.pid, number)

    def record(self) -> dict[str, Any]:
        """Return the content of run.json."""
        content: dict[str, Any] = json.loads((self.directory / "run.json").read_text())
        return content

    def assert_nothing_left(self) -> None:
        """Assert that no process, namespace or interface of the run is left."""
        assert_nothing_left(self.token, self._namespaces, self._interfaces)


class LiveRun(LiveCommand):
    """A `cutset run` that goes on. Leaving the context kills it if need be, and whatever it has made."""

    said: list[str]

    def __init__(
        self, folder: Path, *options: str, faults: str = "", wrapper: Sequence[str] = (), **environment: str
    ) -> None:
        super().__init__()
        experiment = write_experiment(folder, faults=faults)
        self.out = folder / "runs"
        arguments = ["run", str(experiment), "--out", str(self.out), "--no-analyze", *options]
        self._command = [*wrapper, *CUTSET, *arguments]
        self._environment = {**os.environ, "PYTHONPATH": _python_path(), **environment}
        self.said = []

    def __enter__(self) -> Self:
        self.process = subprocess.Popen(
            self._command,
            env=self._environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            cwd=PROJECT,
        )
        return self

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        assert self.process.stderr is not None
        self.process.stderr.close()

    def until(self, text: str) -> str:
        """Wait for a line with this text and return it. Fails if the run ends first."""
        assert self.process.stderr is not None
        while line := self.process.stderr.readline():
            self.said.append(line)
            if text in line:
                return line
        raise AssertionError(f"never said {text!r}: {''.join(self.said)}")

    @property
    def directory(self) -> Path:
        """The run's directory; waits until it is announced."""
        if not any(line.startswith("run ") for line in self.said):
            self.until("run ")
        return super().directory

    def wait(self) -> int:
        """Wait for the end and return the exit code."""
        assert self.process.stderr is not None
        self.said += self.process.stderr.readlines()
        return self.process.wait(60)


def _python_path() -> str:
    return os.pathsep.join(filter(None, [str(PROJECT), os.environ.get("PYTHONPATH")]))
