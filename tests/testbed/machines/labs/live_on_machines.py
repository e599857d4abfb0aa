"""Runs `cutset run … --on` like the controller of a lab, and follows its standard error."""

import signal
import subprocess
from pathlib import Path
from typing import Self

from experiments.records.run_record import RunRecord
from experiments.records.rundir import RunDirectory
from tests.testbed.leftovers import wait_until
from tests.testbed.machines.lab import Lab
from tests.testbed.machines.labs.observation import Standing
from tests.testbed.runner import live

CUTSET = live.CUTSET
END_TIMEOUT_S = 120.0
CLEAN_TIMEOUT_S = 60.0

TOPOLOGY = live.TOPOLOGY.replace("delay: 5ms", "delay: 20ms")
EXPERIMENT = """
name: tiny
topology: ./two-regions.yaml
system: sprinkler
roles: {proxy: 1, driver: 1, client: 2}
workload: {event_size: 10B, rate: 2000/s}
duration: 4s
drain: 8s
faults:
  - {name: cut, at: 1s, cut: [r0, r1]}
  - {name: restore, at: 2s, restore: [r0, r1]}
expect:
  - events.lost == 0
  - events.duplicated == 0
"""


def write_experiment(folder: Path, **changes: str) -> Path:
    """Write the tiny experiment and its topology to files.

    changes: other values of the experiment's fields.
    """
    (folder / "two-regions.yaml").write_text(TOPOLOGY)
    lines = EXPERIMENT.splitlines()
    for name, value in changes.items():
        lines = [f"{name}: {value}" if line.startswith(f"{name}:") else line for line in lines]
    path = folder / "tiny.yaml"
    path.write_text("\n".join(lines) + "\n")
    return path


class RunOnMachines:
    """A running `cutset run --on`. Leaving the context kills it if it still runs."""

    def __init__(
        self, lab: Lab, folder: Path, inventory: Path, *options: str, analyze: bool = False, **changes: str
    ) -> None:
        """Start the run. changes: see write_experiment."""
        self.out = folder / "runs"
        experiment = write_experiment(folder, **changes)
        more = [] if analyze else ["--no-analyze"]
        self._lab = lab
        self._command = [
            *CUTSET, "run", experiment, "--on", inventory, "--out", self.out, *more, *options,
        ]  # fmt: skip
        self.said: list[str] = []

    def __enter__(self) -> Self:
        self.process = self._lab.popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def wait_for(self, words: str) -> None:
        """Until it says a line with these words."""
        assert self.process.stderr is not None
        while not any(words in line for line in self.said):
            line = self.process.stderr.readline()
            assert line, f"ended without {words!r}: {self.said}"
            self.said.append(line.rstrip())

    def end(self) -> int:
        """Return its exit code, once it has ended by itself."""
        assert self.process.stderr is not None
        self.said += [line.rstrip() for line in self.process.stderr]
        return self.process.wait(END_TIMEOUT_S)

    def kill(self) -> None:
        """Kill it with SIGKILL."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    @property
    def run(self) -> RunDirectory:
        """Return its run directory."""
        (path,) = self.out.iterdir()
        return RunDirectory(path)

    @property
    def record(self) -> RunRecord:
        """Return the content of run.json."""
        return self.run.read_run()


def wait_until_clean(lab: Lab, before: dict[str, Standing], *, timeout_s: float = CLEAN_TIMEOUT_S) -> None:
    """Wait until these machines have nothing new, except files below Cutset's folder."""
    try:
        wait_until(lambda: not lab.left_since(before), "machines to be clean", timeout_s)
    except AssertionError:
        raise AssertionError(f"left on machines after {timeout_s:g} s: {lab.left_since(before)}") from None
