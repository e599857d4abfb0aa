"""A sweep as read from disk: its runs with their plans and results, and statistics over repetitions.

The properties of a run (number of regions and drivers, fanout) come from the run's own plan rather than from
the swept values, so a figure can be drawn from any sweep with the required points. Runs that are missing, not
analysed or failed are kept; only analysed runs count for figures.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from experiments.campaigns.sweep import axes, value_text
from experiments.campaigns.sweepdir import SweepDirectory, SweepRecord, SweepRun
from experiments.declared import Trait
from experiments.expectations import number_of
from experiments.planned.plan import Plan
from experiments.planned.plan_values import NUMBER_MAX
from experiments.records.rundir import RunDirectory
from topologies.errors import InputError

Json = Mapping[str, Any]
Key = TypeVar("Key", bound=Hashable)

SETTLED_FROM_S = 0.3
"""Sprinkler 5.2: "measurements do not start until 300ms into an experiment"."""


@dataclass(frozen=True)
class SweepRunResult:
    """One run of a sweep. plan is None and summary is empty if the run has none."""

    point: SweepRun
    directory: RunDirectory
    plan: Plan | None = None
    summary: Json = field(default_factory=dict)

    @property
    def short_label(self) -> str:
        """The swept values by the last parts of their paths: `fanout=2 shuffle_time=30ms`."""
        return " ".join(
            f"{path.split('.')[-1]}={value_text(value)}" for path, value in self.point.values.items()
        )

    def figure(self, section: str, name: str) -> float | None:
        """Return a figure of the summary, or None if it was not measured."""
        value = (self.summary.get(section) or {}).get(name)
        return None if value is None else float(value)

    def parameter(self, name: str) -> Any:
        """Return a numeric parameter of the system, or None if there is none."""
        value: Any = None if self.plan is None else self.plan.parameters.get(name)
        return value if number_of(value) and abs(value) < NUMBER_MAX else None

    def workload(self, name: str) -> Any:
        """Return a setting of the workload."""
        return None if self.plan is None else self.plan.workload.get(name)

    @property
    def regions(self) -> tuple[str, ...]:
        """The regions' names."""
        return () if self.plan is None else tuple(region.name for region in self.plan.regions)

    @property
    def drivers(self) -> int:
        """The number of drivers in all regions together."""
        return 0 if self.plan is None else len(self.plan.having(Trait.PUBLISHER))

    @property
    def offered_per_s(self) -> float | None:
        """Events a second that all drivers together publish; None for a closed loop."""
        rate = self.workload("rate_per_s")
        return None if rate is None or not self.drivers else float(rate) * self.drivers

    @property
    def throughput_per_s(self) -> float | None:
        """Events a second at the slowest client, over the whole run."""
        slowest = self.figure("throughput", "slowest_client_events_per_s")
        return self.figure("throughput", "events_per_s") if slowest is None else slowest

    @cached_property
    def settled_per_s(self) -> float | None:
        """Events a second at one client, mean over clients, after the start-up phase."""
        rows = [row for row in self.rows("throughput") if row["scope"] == "region" and self._settled(row)]
        values = [row["events_per_s"] for row in rows if row["events_per_s"] is not None]
        return sum(values) / len(values) if values else self.figure("throughput", "events_per_s")

    @cached_property
    def latency_ms(self) -> Mapping[str, float]:
        """Mean latency of the events of each region, after the start-up phase."""
        sums: dict[str, tuple[float, int]] = {}
        for row in self.rows("latency"):
            if self._settled(row):
                total, count = sums.get(row["origin"], (0.0, 0))
                sums[row["origin"]] = (total + row["mean_ms"] * row["count"], count + row["count"])
        return {origin: total / count for origin, (total, count) in sums.items() if count}

    @cached_property
    def open_connections(self) -> tuple[Json, ...]:
        """The TCP connections that were open when a link failed that came back (`schemas.TCP_OUTAGES`)."""
        return tuple(row for row in self.rows("tcp_outages") if row["open"])

    def _settled(self, row: Json) -> bool:
        """Return whether a bin lies between the start-up phase and the end of the drivers."""
        end_s = 0.0 if self.plan is None else self.plan.duration_us / 1e6
        return bool(row["start_s"] >= SETTLED_FROM_S and row["start_s"] + row["bin_s"] <= end_s + 1e-9)

    def rows(self, table: str) -> list[dict[str, Any]]:
        """Return the rows of a table; none if it is missing."""
        return _table(self.directory.table(table))


@dataclass(frozen=True, slots=True)
class SweepResults:
    """A whole sweep. `axes`: the paths that were swept over more than one value, in their order."""

    directory: SweepDirectory
    record: SweepRecord
    runs: tuple[SweepRunResult, ...]

    @property
    def experiment(self) -> Json:
        """The experiment as written in its file."""
        return self.record.experiment

    @property
    def swept(self) -> dict[str, list[Any]]:
        """The values of each path, variants by their names."""
        return axes(self.experiment.get("sweep") or {}, self.experiment.get("variants") or {})

    @property
    def axes(self) -> tuple[str, ...]:
        """The paths that were swept over more than one value."""
        return tuple(path for path, values in self.swept.items() if len(values) > 1)

    @property
    def measured(self) -> tuple[SweepRunResult, ...]:
        """The runs that were analysed and did not crash."""
        return tuple(run for run in self.runs if run.summary and run.summary.get("verdict") != "crashed")


@dataclass(frozen=True, slots=True)
class RepetitionSpread:
    """A quantity over repetitions."""

    mean: float
    median: float
    low: float
    high: float
    count: int


def read_sweep(directory: SweepDirectory) -> SweepResults:
    """Return a sweep's record and the results of its runs. Raises InputError if there is no sweep."""
    record = directory.read()
    return SweepResults(directory, record, tuple(_read_run(directory, point) for point in record.runs))


def repetition_spread(values: Iterable[float | None]) -> RepetitionSpread | None:
    """Return the spread of the measured values; None if there are none."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    return RepetitionSpread(sum(known) / len(known), median(known), min(known), max(known), len(known))


def grouped(
    runs: Sequence[SweepRunResult],
    key: Callable[[SweepRunResult], Key],
    value: Callable[[SweepRunResult], float | None],
) -> dict[Key, RepetitionSpread]:
    """Return the spread of a value over the runs of each key, in order of the keys' first appearance."""
    found: dict[Key, list[float | None]] = {}
    for run in runs:
        found.setdefault(key(run), []).append(value(run))
    spreads = {name: repetition_spread(values) for name, values in found.items()}
    return {name: each for name, each in spreads.items() if each is not None}


def _read_run(directory: SweepDirectory, point: SweepRun) -> SweepRunResult:
    run = directory.run_of(point)
    try:
        plan = run.read_run().plan
        summary = run.read_summary() if run.summary_json.exists() else {}
    except InputError:
        return SweepRunResult(point, run)  # missing or truncated; the page reports it
    return SweepRunResult(point, run, plan, summary)


def _table(path: Path) -> list[dict[str, Any]]:
    try:
        rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    except (pa.ArrowInvalid, OSError):
        return []  # not analysed, or truncated
    return rows
