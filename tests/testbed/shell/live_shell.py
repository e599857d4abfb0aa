"""Runs `cutset shell` on a tiny network as a user would, on a terminal of its own."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.testbed.leftovers import (
    Namespace,
    assert_nothing_left,
    host_interfaces,
    namespaces_of,
    process_running,
)
from tests.testbed.runner.live import CUTSET, PROJECT, write_experiment

PATIENCE_S = 180.0
READ_BYTES = 65536
PROMPT = "cutset> "
PLAIN = {"TERM": "dumb", "COLUMNS": "200", "LC_ALL": "C.UTF-8"}
"""Settings for plain program output in English."""
_CONTROLS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|\r")


class LiveShell:
    """A `cutset shell` at a terminal. Leaving the context kills it if need be, and whatever it has made."""

    def __init__(
        self,
        folder: Path,
        *options: str,
        faults: str = "",
        wrapper: Sequence[str] = (),
        experiment: Path | None = None,
    ) -> None:
        """experiment: another one than the tiny one of our own."""
        experiment = experiment or write_experiment(folder, faults=faults)
        arguments = ["shell", str(experiment), "--out", str(folder / "runs"), "--no-analyze", *options]
        # A session of its own whose controlling terminal is ours, so that Ctrl-C is the terminal's matter.
        self._command = ["setsid", "--ctty", *wrapper, *CUTSET, *arguments]
        self.said = ""
        self._seen = 0
        self._interfaces = host_interfaces()
        self._namespaces: set[Namespace] = set()

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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._terminal)

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self._terminal, keys.encode())

    def until(self, text: str) -> str:
        """Wait until this is said after what was waited for before; everything from there to its end."""
        deadline = time.monotonic() + PATIENCE_S
        while (at := self.said.find(text, self._seen)) < 0:
            assert self._read(deadline), f"never said {text!r}: {self.said}"
        before, self._seen = self._seen, at + len(text)
        return self.said[before : self._seen]

    def line(self, keys: str) -> str:
        """Say a line at the prompt; what is answered until the next prompt."""
        self.type(f"{keys}\n")
        self.until(keys)
        return self.until(PROMPT).removesuffix(PROMPT).strip()

    def wait(self) -> int:
        """Read to the end and return the exit code."""
        deadline = time.monotonic() + PATIENCE_S
        while self._read(deadline):
            pass
        return self.process.wait(PATIENCE_S)

    @property
    def directory(self) -> Path:
        """The run's directory, which is announced first."""
        found = re.search(r"^run (.*)$", self.said, re.MULTILINE)
        assert found is not None, self.said
        return Path(found[1].strip())

    def record(self) -> dict[str, Any]:
        """Return the content of run.json."""
        content: dict[str, Any] = json.loads((self.directory / "run.json").read_text())
        return content

    def remember(self, *beginning: str) -> int:
        """Remember the namespaces that there are; the run's process whose command line begins so."""
        self._namespaces |= namespaces_of(self.directory.name)
        return process_running(self.directory.name, *beginning)

    def kill(self) -> None:
        """SIGKILL for the command itself."""
        os.kill(self.process.pid, signal.SIGKILL)

    def assert_nothing_left(self) -> None:
        """No process, namespace or interface of it."""
        assert_nothing_left(self.directory.name, self._namespaces, self._interfaces)

    def _read(self, deadline: float) -> bool:
        """Read what was said meanwhile; false at the end."""
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
