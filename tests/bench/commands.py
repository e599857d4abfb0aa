"""The start-up cost of commands: processor time of a process, compared with one that imports click.

Each command and its peer run in turn; the ratio is the median of the pairs', because machines are noisy.
"""

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.analysis.capture.pcap.captures import write_pcap

PAIRS = 7
PEER = [sys.executable, "-c", "import click"]
COMMANDS = ("--help", "list", "plan link-failure", "run --help", "packets --help")
ASKED_S = {"list": 0.5, "plan link-failure": 0.7}

Row = dict[str, Any]


def measure() -> list[Row]:
    """Rows for `make bench`."""
    rows = [row for command in COMMANDS for row in _rows(command, command.split())]
    with tempfile.TemporaryDirectory() as folder:
        capture = str(write_pcap(Path(folder) / "empty.pcap", []))
        return rows + _rows("sql, an empty capture", ["sql", capture, "SELECT count(*) FROM packets"])


def _rows(command: str, arguments: Sequence[str]) -> list[Row]:
    words = [sys.executable, "-m", "testbed.cli.main", *arguments]
    _processor_s(words)  # compiles; the first list is kept
    pairs = [(_processor_s(words), _processor_s(PEER)) for _ in range(PAIRS)]
    seconds = statistics.median(own for own, _ in pairs)
    asked = ASKED_S.get(command)
    ratio = statistics.median(own / peer for own, peer in pairs)
    return [
        {"name": f"cutset {command}, processor", "value": seconds, "asked": asked, "unit": "s"},
        {"name": f"cutset {command}, beside importing click", "value": ratio, "unit": "ratio"},
    ]


def _processor_s(words: list[str]) -> float:
    """Processor time of a process, user and system."""
    with subprocess.Popen(words, stdout=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, words
    return used.ru_utime + used.ru_stime
