"""The number of processes that a machine can run, and the cost of a batch at each of them.

Complete runs of three regions: two proxies, a configuration service, a driver of 20 events/s and an
increasing number of clients in each, without captures. A batch reaches a node every 67 ms; its cost is the
processor time of all nodes and the frames on links for it, divided by batches and nodes, including heartbeats
and gossip. On a busy machine the processors' share is that of this run alone.

The limit is the cost of a batch at a node: about 1.4 ms of processor time on a machine with other jobs, more
than half of it in clients, a third in the relay. It takes ten packets on the LAN (20 frames here, one on each
of two links): seven are NOTIFYs to random neighbours and the TCP acknowledgements. 46 clients per region are
also measured with `keep_fanout`: neighbours that ask stay among the F. Virtual time shows its benefit
independent of the machine: NOTIFYs for a batch at a client, and the latency.
"""

import contextlib
import json
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from node.protocols.sprinkler.messages import Answered, Notify
from tests.bench.rows import CUTSET, Row, row
from tests.node.cluster import COARSE, Cluster, S

REGIONS, OTHERS = 3, 4  # of each region's processes are no clients
FLUSH_S, RATE_PER_S = 0.2, 20
CLIENTS = ((20, None, False), (46, 15.0, False), (46, 15.0, True), (96, 30.0, False))
"""In a region; after how many seconds all are to be ready; whether the fanout is kept."""
SIMULATED_CLIENTS, SETTLED_S, COUNTED_S = 46, 4, 8
BUSY, P95_MS = 0.8, 300.0  # asked: at most
WARM_S, MEASURED_S = 4.0, 10.0
TIMEOUT_S = 240.0
LOOK_S = 0.1
EXPERIMENT = """
name: held
topology: three-regions
system: sprinkler
roles: {{proxy: 2, configuration: 1, driver: 1, client: {clients}}}
parameters: {{flush_interval: {flush_ms:.0f}ms, keep_fanout: {keeps}}}
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
    for clients, ready_s, keeps in CLIENTS:
        with tempfile.TemporaryDirectory() as folder:
            rows += _rows(clients, ready_s, Path(folder), keeps=keeps)
    return [*rows, *_simulated_rows()]


def _simulated_rows() -> list[Row]:
    """Compare the kept fanout with the paper's, in virtual time."""
    (told, p95_ms), (told_kept, p95_kept_ms) = (
        (_notifies_a_batch(keeps=keeps), _simulated_p95_ms(keeps=keeps)) for keeps in (False, True)
    )
    count = REGIONS * (SIMULATED_CLIENTS + OTHERS)
    return [
        _row(count, "simulated, NOTIFYs for a batch, kept / shuffled", told_kept / told, 0.4, ""),
        _row(count, "simulated, latency, p95, kept / shuffled", p95_kept_ms / p95_ms, 0.5, ""),
        _row(count, "simulated, latency, p95, kept", p95_kept_ms, P95_MS, "ms"),
    ]


def _notifies_a_batch(*, keeps: bool) -> float:
    """NOTIFYs to a client for each batch that it gets, in one region."""
    flush_us = int(FLUSH_S * 1e6)
    parameters = {**COARSE, "flush_interval_us": flush_us, "keep_fanout": keeps}
    cluster = Cluster(regions=1, clients=SIMULATED_CLIENTS, rate_per_s=RATE_PER_S, parameters=parameters)
    cluster.run((SETTLED_S + COUNTED_S) * S)
    sent = [line.message for line in cluster.network.trace if line.time_us > SETTLED_S * S]
    kinds = Counter(type(message) for message in sent)
    return kinds[Notify] / kinds[Answered]


def _simulated_p95_ms(*, keeps: bool) -> float:
    with tempfile.TemporaryDirectory() as folder:
        experiment, out = Path(folder) / "held.yaml", Path(folder) / "runs"
        experiment.write_text(_experiment(SIMULATED_CLIENTS, keeps=keeps))
        command = [*CUTSET, "run", str(experiment), "--on", "simulator", "--out", str(out)]
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        (run,) = out.iterdir()
        p95_ms: float = json.loads((run / "summary.json").read_text())["latency"]["p95_ms"]
        return p95_ms


def _experiment(clients: int, *, keeps: bool) -> str:
    flush_ms = FLUSH_S * 1000
    return EXPERIMENT.format(clients=clients, flush_ms=flush_ms, rate=RATE_PER_S, keeps=str(keeps).lower())


def _rows(clients: int, ready_asked_s: float | None, folder: Path, *, keeps: bool) -> list[Row]:
    experiment, out = folder / "held.yaml", folder / "runs"
    experiment.write_text(_experiment(clients, keeps=keeps))
    count, kept = REGIONS * (clients + OTHERS), "kept fanout, " if keeps else ""
    with _running([*CUTSET, "run", str(experiment), "--out", str(out)]) as process:
        if not _await_running(process, out):
            return [_row(count, f"{kept}ready", None, ready_asked_s, "s")]
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
        _row(count, f"{kept}ready", ready_s, ready_asked_s, "s"),
        _row(count, f"{kept}processors", busy, BUSY, "of all"),
        _row(count, f"{kept}latency, p95", summary["latency"]["p95_ms"], P95_MS, "ms"),
        _row(count, f"{kept}a batch at a node", nodes_us, None, "us"),
        _row(count, f"{kept}a batch at a node", frames_per_s / batches_per_s, None, "frames"),
        _row(count, f"{kept}a frame in the relay", relay_us, None, "us"),
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
