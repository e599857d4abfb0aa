"""The cost of the complete analysis of a run with 100,000 clients that follow 4 of 10,000 topics each: time,
and memory of all its processes together (shared pages once: PSS).
"""

import os
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import psutil

from node import systems
from tests.bench.rows import Row, row
from tests.many_clients import make_run

CLIENTS, TOPICS = 100_000, 10_000
LOOK_S = 0.2
BROKER = Path(__file__).parents[2] / "broker" / "topic_broker.py"


def pss_bytes(process: psutil.Process) -> int:
    """Return the PSS of a process and its descendants, as far as they can be read before they end."""
    found = 0
    with suppress(psutil.Error):
        found += sum(own_bytes(each) for each in (process, *process.children(recursive=True)))
    return found


def own_bytes(process: psutil.Process) -> int:
    """Return the PSS of one process; 0 if it has ended."""
    try:
        rollup = Path(f"/proc/{process.pid}/smaps_rollup").read_text()
        return next(int(line.split()[1]) << 10 for line in rollup.splitlines() if line[:4] == "Pss:")
    except (OSError, StopIteration):
        return 0


def analysed(run: Path) -> tuple[float, float, int]:
    """Seconds, seconds of processors, and the most bytes at a time, of `cutset analyze`."""
    command = [Path(sys.executable).with_name("cutset"), "analyze", run]
    started_s, most = time.monotonic(), 0
    before = os.times()
    with psutil.Popen(command, stdout=sys.stderr) as process:
        while process.poll() is None:
            most = max(most, pss_bytes(process))
            time.sleep(LOOK_S)
    after = os.times()
    cpu_s = after.children_user + after.children_system - before.children_user - before.children_system
    return time.monotonic() - started_s, cpu_s, most


def measure() -> list[Row]:
    """Rows for `make bench`."""
    os.environ[systems.MODULES_VARIABLE] = str(BROKER)
    systems.systems.cache_clear()
    with tempfile.TemporaryDirectory() as folder:
        run = make_run(Path(folder), clients=CLIENTS, topics=TOPICS)
        seconds, cpu_s, most = analysed(run.path)
    name = f"{CLIENTS:,} clients, {TOPICS:,} topics, 4 each"
    return [
        row(f"{name}: analysis", seconds, "s", 120.0),
        row(f"{name}: processors", cpu_s, "s"),
        row(f"{name}: memory", most / 2**20, "MiB", 2048.0),
    ]
