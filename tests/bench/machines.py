"""Whether it matters where an experiment runs: link-failure with a region on each of four machines of a lab,
and here, with the same seed. All machines share this machine's processors, so the load is small, and whether
the run on them is valid (two processors are enough for it now and then) is told, but not asked.

A time after the fault is the middle of those of all clients that it concerned. Its bar is how far these lie
apart, by how much the machines' clocks may be wrong, and half an advertisement's period: a proxy goes by when
the last one came, and when in its period a fault strikes is chance. Two runs agree if their times, each with
its bar, meet.
"""

import os
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from experiments.records.json_files import read_json
from experiments.records.rundir import RunDirectory
from tests.bench.rows import CUTSET, Row, row
from tests.testbed.machines.lab import Lab

MACHINES = 4
SEED = 1
EXPERIMENT = ["link-failure", "--seed", str(SEED)]
SETTINGS = ("workload.rate=6000/s", "duration=24s", "faults.cut.at=8s", "faults.restore.at=16s")
FAULT = "cut"
TIMES = {"switch_s": "new way", "catch_up_s": "caught up"}
TIMEOUT_S = 300.0
Run = Callable[[list[str | Path]], "subprocess.CompletedProcess[str]"]


@dataclass(frozen=True, slots=True)
class Measured:
    """A time after the fault: the middle between the first and the last client, and its bar; seconds."""

    value_s: float
    error_s: float

    def meets(self, other: "Measured") -> bool:
        """Whether both can be the same."""
        return abs(self.value_s - other.value_s) <= self.error_s + other.error_s


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a run."""

    lost: int
    valid: bool
    reasons: list[str]
    times: dict[str, Measured]


def measure() -> list[Row]:
    """Rows for `make bench`."""
    if os.geteuid() != 0:
        return []  # a lab of machines needs root
    with tempfile.TemporaryDirectory() as folder:
        with Lab(MACHINES) as lab:
            there = _outcome(
                lambda command: lab.run([*command, "--on", lab.inventory], timeout_s=TIMEOUT_S),
                Path(folder) / "there",
            )
        here = _outcome(
            lambda command: subprocess.run(
                command, check=False, capture_output=True, text=True, timeout=TIMEOUT_S
            ),
            Path(folder) / "here",
        )
    rows = []
    for place, outcome in ((f"on {MACHINES} machines", there), ("here", here)):
        rows.append(row(f"events lost {place}", outcome.lost, "", 0, missed=outcome.lost > 0))
        why = f": {outcome.reasons[0]}" if outcome.reasons else ""
        rows.append(
            row(f"valid {place}{why}", float(outcome.valid), "", missed=outcome is here and not outcome.valid)
        )
    for name, what in TIMES.items():
        if name not in there.times or name not in here.times:
            rows.append(row(f"{what} after the cut", None, "s", "measured", missed=True))
            continue
        theirs, ours = there.times[name], here.times[name]
        meet = theirs.meets(ours)
        rows += [
            row(
                f"{what} after the cut on {MACHINES} machines, ±{theirs.error_s:.3g}",
                theirs.value_s,
                "s",
                f"{ours.value_s:.3g} ±{ours.error_s:.3g}",
                missed=not meet,
            ),
            row(f"{what} after the cut here, ±{ours.error_s:.3g}", ours.value_s, "s"),
        ]
    return rows


def _outcome(run: Run, out: Path) -> Outcome:
    """Run it. Raises RuntimeError with what was said if there is no summary."""
    settings: list[str | Path] = [word for setting in SETTINGS for word in ("--set", setting)]
    done = run([*CUTSET, "run", *EXPERIMENT, *settings, "--out", out])
    found = [RunDirectory(path) for path in out.iterdir()] if out.is_dir() else []
    if not found or not found[0].summary_json.exists():
        raise RuntimeError(f"nothing was measured: {done.stderr[-1000:]}")
    summary = found[0].read_summary()
    period_s = read_json(found[0].run_json)["plan"]["parameters"]["advertisement_period_us"] / 1e6
    rows = pq.read_table(found[0].table("recovery")).to_pylist()
    mine = [row for row in rows if row["fault"] == FAULT and row["affected"]]
    measured = [name for name in TIMES if mine and all(row[name] is not None for row in mine)]
    times = {name: _measured(mine, name, period_s) for name in measured}
    fidelity = summary["fidelity"]
    return Outcome(summary["events"]["lost"], fidelity["valid"], fidelity["reasons"], times)


def _measured(rows: list[Row], name: str, period_s: float) -> Measured:
    first_s, last_s = min(row[name] for row in rows), max(row[name] for row in rows)
    clocks_s = max(row["error_s"] or 0.0 for row in rows)
    return Measured((first_s + last_s) / 2, (last_s - first_s) / 2 + clocks_s + period_s / 2)
