"""Forecast of how busy a run keeps this machine, from earlier runs on it.

The cost of a run is nearly proportional to the batches that its processes receive: each driver makes a batch
every flush interval, and each proxy and each client receives it once. run.json of each earlier run records
how busy the processors were, which gives the processor time per received batch. The forecast uses the median
of the earlier runs. For a saturated earlier run this is only a lower limit. There is no forecast without
earlier runs on this machine, and none for workloads in closed loop.
"""

import os
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median

from experiments.declared import Trait
from experiments.planned.plan import Plan
from experiments.records.run_record import Outcome, RunRecord, read_record
from topologies.errors import InputError

RUNS_MAX = 30
"""The number of newest runs that are read."""
LIKE = 8.0
"""Earlier runs are used only if their batches per second differ by at most this factor."""
SATURATED = 0.95
HARDLY = 0.90
SECONDS_MIN = 3


@dataclass(frozen=True, slots=True)
class Forecast:
    """Expected use of all processors, from 0 to 1, and the number of earlier runs it is based on."""

    busy: float
    takes_per_s: float
    processes: int
    processors: int
    runs: int

    def warning(self) -> str | None:
        """Return a warning if the run is expected to saturate the machine."""
        if self.busy < HARDLY:
            return None
        by = f"{self.runs} earlier run{'s' if self.runs > 1 else ''}"
        return (
            f"this machine is probably too slow: {self.processes} processes that take"
            f" {self.takes_per_s:,.0f} batches a second need about {self.busy:.0%} of its {self.processors}"
            f" processors, based on {by} here; a run is invalid above"
            f" {SATURATED:.0%}; fewer processes or drivers, or a longer flush_interval, reduce the load"
        )


def forecast(plan: Plan, runs: Path) -> Forecast | None:
    """Return the forecast for this plan from earlier runs in `runs` on this machine, or None."""
    takes = takes_per_s(plan)
    processors = os.cpu_count() or 1
    if not takes:
        return None
    costs = [
        busy * processors / earlier
        for earlier, busy in _earlier(runs, (platform.node(), processors))
        if takes / LIKE <= earlier <= takes * LIKE
    ]
    if not costs:
        return None
    busy = takes * median(costs) / processors
    return Forecast(busy, takes, len(plan.processes), processors, len(costs))


def takes_per_s(plan: Plan) -> float | None:
    """Return how many batches proxies and clients receive per second, or None if unknown beforehand."""
    workload, interval_us = plan.workload, plan.parameters.get("flush_interval_us")
    rate_per_s = workload.get("rate_per_s")
    if not interval_us or not rate_per_s or workload.get("closed_loop"):
        return None
    publishing = len(plan.having(Trait.PUBLISHER))
    taking = len(plan.having(Trait.SERVER, Trait.SUBSCRIBER))
    return float(publishing * min(float(rate_per_s), 1e6 / interval_us) * taking)


def _earlier(runs: Path, machine: tuple[str, int]) -> Iterator[tuple[float, float]]:
    """Yield the batches received per second and the processor use of the newest completed runs.

    machine: host name and number of processors; runs of other machines are skipped.
    """
    files = sorted(runs.glob("*/run.json"), reverse=True)[:RUNS_MAX]  # names begin with the time
    for file in files:
        try:
            record = read_record(file)
        except InputError:
            continue  # of another version, or damaged: not usable
        takes, busy = takes_per_s(record.plan), _busy(record)
        here = not record.machines and (record.machine.hostname, record.machine.cpus) == machine
        if here and record.outcome is Outcome.COMPLETED and takes and busy:
            yield takes, busy


def _busy(record: RunRecord) -> float | None:
    """Return the mean processor use while the drivers ran, or None if it is not known."""
    zero_ns, stopped_ns = record.times.zero_ns, record.times.stopped_ns
    if zero_ns is None or stopped_ns is None:
        return None
    mine = [sample.busy for sample in record.cpu if zero_ns <= sample.t_ns <= stopped_ns]
    return fmean(mine) if len(mine) >= SECONDS_MIN else None
