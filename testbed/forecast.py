"""Whether a machine will carry a run, said before it starts: how busy earlier runs kept the same machine.

What a run costs is nearly in proportion to how often some process takes a batch: each driver makes a batch
every flush interval, and each proxy and each client takes it once. The processor time for one of these is
known from earlier runs, whose run.json says how busy the processors were; their median is what the next one
is expected to cost. Of an earlier run that was saturated it is only known that it cost at least so much.
Without earlier runs on this machine nothing is said, nor of workloads that go as fast as they can.
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
"""So many of the newest runs are looked at."""
LIKE = 8.0
"""A run whose batches are more than so many times as many, or as few, tells nothing of another."""
SATURATED = 0.95
HARDLY = 0.90
SECONDS_MIN = 3


@dataclass(frozen=True, slots=True)
class Forecast:
    """How busy the processors will be, as a part of all of them, and by how many earlier runs."""

    busy: float
    takes_per_s: float
    processes: int
    processors: int
    runs: int

    def warning(self) -> str | None:
        """That the run will hardly be valid, if so."""
        if self.busy < HARDLY:
            return None
        by = f"{self.runs} earlier run{'s' if self.runs > 1 else ''}"
        return (
            f"this machine will hardly carry it: {self.processes} processes that take"
            f" {self.takes_per_s:,.0f} batches a second need some {self.busy:.0%} of its {self.processors}"
            f" processors, by {by} here, and a run is invalid over"
            f" {SATURATED:.0%}; fewer processes or drivers, or a longer flush_interval, cost less"
        )


def forecast(plan: Plan, runs: Path) -> Forecast | None:
    """What earlier runs in `runs` say of this plan, on this machine; None if they say nothing."""
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
    """How often a second some proxy or client takes a batch; None where that is not known beforehand."""
    workload, interval_us = plan.workload, plan.parameters.get("flush_interval_us")
    rate_per_s = workload.get("rate_per_s")
    if not interval_us or not rate_per_s or workload.get("closed_loop"):
        return None
    publishing = len(plan.having(Trait.PUBLISHER))
    taking = len(plan.having(Trait.SERVER, Trait.SUBSCRIBER))
    return float(publishing * min(float(rate_per_s), 1e6 / interval_us) * taking)


def _earlier(runs: Path, machine: tuple[str, int]) -> Iterator[tuple[float, float]]:
    """Of the newest runs on a machine, known by its name and processors, that came to their end: batches
    taken a second, and how busy it was.
    """
    files = sorted(runs.glob("*/run.json"), reverse=True)[:RUNS_MAX]  # names begin with the time
    for file in files:
        try:
            record = read_record(file)
        except InputError:
            continue  # of another version, or torn: it says nothing
        takes, busy = takes_per_s(record.plan), _busy(record)
        here = not record.machines and (record.machine.hostname, record.machine.cpus) == machine
        if here and record.outcome is Outcome.COMPLETED and takes and busy:
            yield takes, busy


def _busy(record: RunRecord) -> float | None:
    """While the drivers ran."""
    zero_ns, stopped_ns = record.times.zero_ns, record.times.stopped_ns
    if zero_ns is None or stopped_ns is None:
        return None
    mine = [sample.busy for sample in record.cpu if zero_ns <= sample.t_ns <= stopped_ns]
    return fmean(mine) if len(mine) >= SECONDS_MIN else None
