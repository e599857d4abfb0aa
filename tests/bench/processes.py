"""The number of processes that a machine can run, and the cost of a batch at each of them.

Complete runs of three regions: two proxies, a configuration service, a driver of 20 events/s and an
increasing number of clients in each, without captures. A batch reaches a node every 67 ms; its cost is the
processor time of all nodes and the frames on links for it, divided by batches and nodes, including heartbeats
and gossip. On a busy machine the processors' share is that of this run alone.

The limit is the cost of a batch at a node: about 1.4 ms of processor time on a machine with other jobs, more
than half of it in clients, a third in the relay. It takes ten packets on the LAN (20 frames here, one on each
of two links): seven are NOTIFYs to random neighbours and the TCP acknowledgements.
"""

import contextlib
import json
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.bench.rows import CUTSET, Row, row

REGIONS, OTHERS = 3, 4  # of each region's processes are no clients
FLUSH_S, RATE_PER_S = 0.2, 20
CLIENTS = ((20, None), (46, 15.0), (96, 30.0))
"""In a region; after how many seconds all are to be ready."""
BUSY, P95_MS = 0.8, 300.0  # asked: at most
WARM_S, MEASURED_S = 4.0, 10.0
TIMEOUT_S = 240.0
LOOK_S = 0.1
EXPERIMENT = """
name: held
topology: three-regions
system: sprinkler
roles: {{proxy: 2, configuration: 1, driver: 1, client: {clients}}}
parameters: {{flush_interval: {flush_ms:.0f}ms}}
workload: {{event_size: 100B, rate: {rate}/s}}
duration: 20s
captures: none
"""


@dataclass(frozen=True, slots=True)
class Spent:
    """Processor seconds, until `at_s`."""

    at_s: float
    nodes_s: float
    relay_s: float
    all_s: float


def measure() -> list[Row]:
    """Rows for `make bench`."""
    rows: list[Row] = []
    for clients, ready_s in CLIENTS:
        with tempfile.TemporaryDirectory() as folder:
            rows += _rows(clients, ready_s, Path(folder))
    return rows


def _rows(clients: int, ready_asked_s: float | None, folder: Path) -> list[Row]:
    experiment, out = folder / "held.yaml", folder / "runs"
    experiment.write_text(EXPERIMENT.format(clients=clients, flush_ms=FLUSH_S * 1000, rate=RATE_PER_S))
    count = REGIONS * (clients + OTHERS)
    with _running([*CUTSET, "run", str(experiment), "--out", str(out)]) as process:
        if not _await_running(process, out):
            return [_row(count, "ready", None, ready_asked_s, "s")]
        time.sleep(WARM_S)
        before = _spent(process)
        time.sleep(MEASURED_S)
        after = _spent(process)
        process.wait(TIMEOUT_S)
    (run,) = out.iterdir()
    content = json.loads((run / "run.json").read_text())
    summary = json.loads((run / "summary.json").read_text())
    times, seconds = content["times"], after.at_s - before.at_s
    frames_per_s = sum(row["frames"] for row in content["counters"]) / (
        (times["ended_ns"] - times["zero_ns"]) / 1e9
    )
    batches_per_s = REGIONS * min(1 / FLUSH_S, RATE_PER_S) * (count - 2 * REGIONS)  # of all nodes
    ready_s = (times["ready_ns"] - times["started_ns"]) / 1e9
    busy = (after.all_s - before.all_s) / seconds / (psutil.cpu_count() or 1)
    nodes_us = (after.nodes_s - before.nodes_s) / seconds / batches_per_s * 1e6
    relay_us = (after.relay_s - before.relay_s) / seconds / frames_per_s * 1e6
    return [
        _row(count, "ready", ready_s, ready_asked_s, "s"),
        _row(count, "processors", busy, BUSY, "of all"),
        _row(count, "latency, p95", summary["latency"]["p95_ms"], P95_MS, "ms"),
        _row(count, "a batch at a node", nodes_us, None, "us"),
        _row(count, "a batch at a node", frames_per_s / batches_per_s, None, "frames"),
        _row(count, "a frame in the relay", relay_us, None, "us"),
    ]


def _row(count: int, name: str, value: float | None, asked: float | None, unit: str) -> Row:
    return row(f"{count} processes: {name}", value, unit, asked)


@contextlib.contextmanager
def _running(command: list[str]) -> Iterator[psutil.Popen]:
    process = psutil.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        if process.is_running():
            process.terminate()
            process.wait()


def _await_running(process: psutil.Popen, out: Path) -> bool:
    """Until drivers publish; false if that never comes."""
    until_s = time.monotonic() + TIMEOUT_S
    while process.poll() is None and time.monotonic() < until_s:
        for file in out.glob("*/run.json"):
            if json.loads(file.read_text())["times"]["zero_ns"] is not None:
                return True
        time.sleep(LOOK_S)
    return False


def _spent(process: psutil.Popen) -> Spent:
    nodes_s = relay_s = all_s = 0.0
    for child in process.children(recursive=True):
        with contextlib.suppress(psutil.Error):  # it has just ended
            times, command = child.cpu_times(), " ".join(child.cmdline())
            used_s = times.user + times.system
            all_s += used_s
            if "links.relay" in command:
                relay_s += used_s
            elif "node.tcp.launcher" in command:
                nodes_s += used_s
    return Spent(time.monotonic(), nodes_s, relay_s, all_s)
