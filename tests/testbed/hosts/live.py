"""Runs `cutset run --on` a lab's machines, followed by what it says on standard error."""

import subprocess
from pathlib import Path
from typing import Self

from tests.testbed.hosts.lab import Lab
from tests.testbed.runner.live import PROJECT, LiveRun


class LiveRunOn(LiveRun):
    """A `cutset run` on the lab's controller that goes on. `process` takes signals like any other."""

    def __init__(
        self,
        lab: Lab,
        folder: Path,
        *options: str,
        inventory: Path | None = None,
        faults: str = "",
        **environment: str,
    ) -> None:
        """inventory: another than the lab's own."""
        on = ["--on", str(inventory or lab.inventory)]
        super().__init__(folder, *on, *options, faults=faults, **environment)
        self._lab = lab

    def __enter__(self) -> Self:
        self.process = self._lab.popen(
            self._command,
            env=self._environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd=PROJECT,
        )
        return self
