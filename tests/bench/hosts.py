"""The time to start twenty machines of a lab in parallel: a complete `cutset run --on` with five machines per
region and a negligible event rate. All machines and the controller share this machine's processors.

The first run copies Cutset to the machines, the second finds it there.
"""

import json
import tempfile
import time
from pathlib import Path

from tests.bench.rows import CUTSET, Row, row
from tests.testbed.machines.lab import Lab

MACHINES = 20
REGIONS = 4
BRING_UP_S = 10.0
TIMEOUT_S = 300.0
EXPERIMENT = """
name: small
topology: four-regions
system: sprinkler
roles: {proxy: 1, driver: 1, client: 3}
workload: {event_size: 10B, rate: 500/s}
duration: 2s
"""


def measure() -> list[Row]:
    """Seconds until machines can be used, and until the network stands on all of them."""
    rows: list[Row] = []
    with Lab(MACHINES) as lab, tempfile.TemporaryDirectory() as folder:
        experiment = Path(folder) / "small.yaml"
        experiment.write_text(EXPERIMENT)
        serves = {name: {"serves": [f"r{number % REGIONS}"]} for number, name in enumerate(lab.machines)}
        inventory = lab.write_inventory("twenty.yaml", machines=serves, shipping={"when": "end"})
        for which in ("first time, our code is brought", "again"):
            rows += _run(lab, experiment, inventory, Path(folder) / which[:5].strip(), which)
    return rows


def _run(lab: Lab, experiment: Path, inventory: Path, out: Path, which: str) -> list[Row]:
    began_ns = time.time_ns()
    done = lab.run(
        [*CUTSET, "run", experiment, "--on", inventory, "--out", out, "--no-analyze"], timeout_s=TIMEOUT_S
    )
    assert done.returncode == 0, done.stderr
    (run,) = out.iterdir()
    times = json.loads((run / "run.json").read_text())["times"]
    machines = [json.loads(path.read_text())["times"] for path in run.glob("machines/*/run.json")]
    stands_ns = max(machine["network_ns"] for machine in machines)
    ready_ns = max(machine["ready_ns"] for machine in machines)

    def spent(name: str, value_ns: int, asked_s: float = TIMEOUT_S) -> Row:
        asked = asked_s if asked_s < TIMEOUT_S else None
        missed = value_ns > asked_s * 1e9
        return row(f"{MACHINES} machines{name} ({which})", value_ns / 1e9, "s", asked, missed=missed)

    return [
        spent(" logged in to and examined", times["started_ns"] - began_ns),
        spent(": supervisors, sandboxes, networks", stands_ns - times["started_ns"], BRING_UP_S),
        spent(": nodes ready, from the start of supervisors", ready_ns - times["started_ns"]),
    ]
