"""The start-up cost of commands: processor time of a process, compared with one that imports click.

Each command and its peer run in turn; the ratio is the median of the pairs', because machines are noisy.
"""

import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.analysis.capture.pcap.captures import write_pcap
from tests.bench.rows import Row, row, run_and_wait

PAIRS = 7
PEER = [sys.executable, "-c", "import click"]
COMMANDS = ("--help", "list", "plan link-failure", "run --help", "packets --help")
ASKED_S = {"list": 0.5, "plan link-failure": 0.7}


def measure() -> list[Row]:
    """Rows for `make bench`."""
    rows = [row for command in COMMANDS for row in _rows(command, command.split())]
    with tempfile.TemporaryDirectory() as folder:
        capture = str(write_pcap(Path(folder) / "empty.pcap", []))
        return rows + _rows("sql, an empty capture", ["sql", capture, "SELECT count(*) FROM packets"])


def _rows(command: str, arguments: Sequence[str]) -> list[Row]:
    words = [sys.executable, "-m", "testbed.cli.main", *arguments]
    run_and_wait(words)  # compiles; the first list is kept
    pairs = [(run_and_wait(words)[1], run_and_wait(PEER)[1]) for _ in range(PAIRS)]
    seconds = statistics.median(own for own, _ in pairs)
    asked = ASKED_S.get(command)
    ratio = statistics.median(own / peer for own, peer in pairs)
    return [
        row(f"cutset {command}, processor", seconds, "s", asked),
        row(f"cutset {command}, beside importing click", ratio, "ratio"),
    ]
