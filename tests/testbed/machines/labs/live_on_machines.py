"""Runs `cutset run … --on` as the controller of a lab would, followed by what it says on standard error."""

import signal
import threading
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
    """A `cutset run --on` that goes on. Leaving the context kills it if need be."""

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
        self._says_no_more = False
        self._heard = threading.Condition()

    def __enter__(self) -> Self:
        self.process = self._lab.popen(self._command, stdout=-1, stderr=-1)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join()

    def wait_for(self, words: str) -> None:
        """Until it says a line with these words."""
        with self._heard:
            found = self._heard.wait_for(
                lambda: any(words in line for line in self.said) or self._says_no_more,
                END_TIMEOUT_S,
            )
        assert found, f"never said {words!r}: {self.said}"
        assert any(words in line for line in self.said), f"ended without {words!r}: {self.said}"

    def end(self) -> int:
        """Its exit code, once it has ended by itself."""
        assert self.process.stdout is not None
        self.output = self.process.stdout.read()
        self.process.wait(END_TIMEOUT_S)
        self._reader.join()
        return self.process.returncode

    def kill(self) -> None:
        """kill -9."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    @property
    def run(self) -> RunDirectory:
        """Its run directory."""
        (path,) = self.out.iterdir()
        return RunDirectory(path)

    @property
    def record(self) -> RunRecord:
        """run.json."""
        return self.run.read_run()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            with self._heard:
                self.said.append(line.rstrip())
                self._heard.notify_all()
        with self._heard:
            self._says_no_more = True
            self._heard.notify_all()


def wait_until_clean(lab: Lab, before: dict[str, Standing], *, timeout_s: float = CLEAN_TIMEOUT_S) -> None:
    """Until these machines have nothing that they had not before, but for files below our folder."""
    try:
        wait_until(lambda: not lab.left_since(before), "machines to be clean", timeout_s)
    except AssertionError:
        raise AssertionError(f"left on machines after {timeout_s:g} s: {lab.left_since(before)}") from None
