"""Rows of the table of `make bench`, and what several of its subjects run."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

Row = dict[str, Any]
CUTSET = [sys.executable, "-c", "from testbed.cli.main import main; main()"]


def row(
    name: str, value: float | None, unit: str, asked: float | str | None = None, *, missed: bool = False
) -> Row:
    """A row. asked: what the project set itself. missed: whether that makes `make bench` fail."""
    return {"name": name, "value": value, "unit": unit, "asked": asked, "missed": missed}


def run_and_wait(words: Sequence[str], environment: Mapping[str, str] = os.environ) -> tuple[bytes, float]:
    """Run a command; return its standard output and its processor time, user and system, in seconds."""
    with subprocess.Popen(words, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        said = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, words
    return said, used.ru_utime + used.ru_stime
