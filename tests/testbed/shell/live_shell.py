"""Runs `cutset shell` on a tiny network as a user would, on a separate terminal."""

import os
import pty
import re
import select
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from tests.testbed.runner.live import CUTSET, PROJECT, LiveCommand, write_experiment

PATIENCE_S = 180.0
READ_BYTES = 65536
PROMPT = "cutset> "
PLAIN = {"TERM": "dumb", "COLUMNS": "200", "LC_ALL": "C.UTF-8"}
"""Settings for plain program output in English."""
_CONTROLS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|\r")


class LiveShell(LiveCommand):
    """A `cutset shell` at a terminal. Leaving the context kills it and its processes."""

    def __init__(
        self,
        folder: Path,
        *options: str,
        faults: str = "",
        wrapper: Sequence[str] = (),
        experiment: Path | None = None,
    ) -> None:
        """Start a shell. experiment: instead of the tiny one."""
        super().__init__()
        experiment = experiment or write_experiment(folder, faults=faults)
        arguments = ["shell", str(experiment), "--out", str(folder / "runs"), "--no-analyze", *options]
        # A session of its own whose controlling terminal is ours, so that Ctrl-C is the terminal's matter.
        self._command = ["setsid", "--ctty", *wrapper, *CUTSET, *arguments]
        self.said: str = ""
        self._seen = 0

    def __enter__(self) -> Self:
        self._terminal, theirs = pty.openpty()
        self.process = subprocess.Popen(
            self._command,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=PROJECT,
            env={**os.environ, "PYTHONPATH": str(PROJECT), **PLAIN},
        )
        os.close(theirs)
        return self

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        os.close(self._terminal)

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self._terminal, keys.encode())

    def until(self, text: str) -> str:
        """Wait until this text appears after the last awaited one; return the output from there to its
        end.
        """
        deadline = time.monotonic() + PATIENCE_S
        while (at := self.said.find(text, self._seen)) < 0:
            assert self._read(deadline), f"never said {text!r}: {self.said}"
        before, self._seen = self._seen, at + len(text)
        return self.said[before : self._seen]

    def line(self, keys: str) -> str:
        """Enter a line at the prompt; return the output until the next prompt."""
        self.type(f"{keys}\n")
        self.until(keys)
        return self.until(PROMPT).removesuffix(PROMPT).strip()

    def wait(self) -> int:
        """Read to the end and return the exit code."""
        deadline = time.monotonic() + PATIENCE_S
        while self._read(deadline):
            pass
        return self.process.wait(PATIENCE_S)

    def _read(self, deadline: float) -> bool:
        """Read pending output; return false at the end."""
        left_s = deadline - time.monotonic()
        assert left_s > 0, f"waited {PATIENCE_S} s: {self.said}"
        if not select.select([self._terminal], [], [], left_s)[0]:
            return True
        try:
            data = os.read(self._terminal, READ_BYTES)
        except OSError:  # EIO: the other end is closed
            return False
        self.said += _CONTROLS.sub("", data.decode(errors="replace"))
        return bool(data)


def run_lines(
    folder: Path, lines: Sequence[str], *options: str, faults: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run `cutset shell` with these lines from a pipe."""
    experiment = write_experiment(folder, faults=faults)
    return subprocess.run(
        [*CUTSET, "shell", str(experiment), "--out", str(folder / "runs"), "--no-analyze", *options],
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        cwd=PROJECT,
        check=False,
    )
