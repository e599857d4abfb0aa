"""The cost of a hundred node processes: time from the request to the launcher to the last "ready", and
memory.

Real processes on loopback addresses, four regions of one proxy, one driver and 23 clients. Memory is the
proportional set size, which counts shared memory once.
"""

import statistics
import tempfile
import time
from pathlib import Path

import psutil

from tests.bench.rows import Row, row
from tests.node.tcp.launched import launcher, loopback_specs

REPEATS = 3
REGIONS, CLIENTS = 4, 23


def start_all(folder: Path) -> dict[str, float]:
    """Seconds until all are ready, and their memory in MB."""
    specs = loopback_specs(folder, regions=REGIONS, clients=CLIENTS)
    with launcher() as launched:
        began_s = time.monotonic()
        for spec in specs:
            launched.start(spec)
        launched.wait_ready(len(specs))
        ready_s = time.monotonic() - began_s
        pids = [message["pid"] for message in launched.all_said("started")]
        pss_bytes = sum(psutil.Process(pid).memory_full_info().pss for pid in pids)
    return {"ready_s": ready_s, "pss_mb": pss_bytes / 1e6}


def measure() -> list[Row]:
    """Rows for `make bench`."""
    results = []
    for _ in range(REPEATS):
        with tempfile.TemporaryDirectory() as folder:
            results.append(start_all(Path(folder)))
    count = REGIONS * (2 + CLIENTS)
    ready_s = statistics.median(result["ready_s"] for result in results)
    pss_mb = statistics.median(result["pss_mb"] for result in results)
    return [
        row(f"{count} node processes, all ready", ready_s, "s"),
        row(f"{count} node processes, memory", pss_mb, "MB"),
    ]
