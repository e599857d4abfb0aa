"""How long a network takes to come up, with all its links carried, and what its ends cost.

Each number is the median of `REPEATS`; the interpreter's own start and that of the sandbox are not in it.
"""

import statistics
import time

from testbed.links.selection import select_emulator
from testbed.network.network import Network
from tests.bench.rows import Row, row
from tests.testbed.network.plans import make_plan
from tests.testbed.sandboxed import sandboxed

REPEATS = 3
CASES = (
    ("100 hosts in one region, relay links, up", 1, 100, 5.0),
    ("4 regions with 3 hosts each, relay links, up", 4, 3, 2.0),
)


def bring_up(regions: int, hosts: int) -> dict[str, float]:
    """Seconds to bring a network up, to probe it, and to release it. Runs in a sandbox."""
    started_s = time.monotonic()
    with Network(make_plan(regions, hosts), select_emulator("relay", 1)) as network:
        up_s = time.monotonic()
        network.probe("before")
        probed_s = time.monotonic()
    return {"up": up_s - started_s, "probe": probed_s - up_s, "down": time.monotonic() - probed_s}


def measure() -> list[Row]:
    """Rows for `make bench`."""
    rows: list[Row] = []
    for name, regions, hosts, asked_s in CASES:
        results = [sandboxed(bring_up, regions, hosts) for _ in range(REPEATS)]
        up_s = statistics.median(result["up"] for result in results)
        down_s = statistics.median(result["down"] for result in results)
        rows.append(row(name, up_s, "s", asked_s))
        rows.append(row(name.replace(", up", ", down"), down_s, "s"))
        if regions > 1:
            probe_s = statistics.median(result["probe"] for result in results)
            rows.append(row("probing all pairs of regions", probe_s, "s", 1.5))
    return rows
