"""What each system did over time, small: one row for each, the same two axes for all.

On the left the events that have to cross the cut, as one client beyond it gets them; on the right the latency
until every client has an event, the worst origin's p95. Lines are the median over repetitions, bands reach
from the least to the most.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

import numpy as np

from analysis.pages.charting.chart_model import Axis, Chart, Series
from analysis.pages.report.charts import TIME, spans
from analysis.pages.systems.sides import System, SystemRun, cut_of
from analysis.timelines.arrays import Ints, ints
from analysis.timelines.delivery_records import read_files
from experiments.declared import Trait
from node.core.deliveries import RecordKind
from topologies.palette import BLUE

TOGETHER = "systems"
BIN_S = 0.25
CROSSING = Axis("events/s from beyond the cut, at one client", "events/s", low=0.0)
LATENCY = Axis("p95 until every client has an event, ms", "ms", kind="logarithmic")
ABOVE_USUAL = 4.0
"""So many times the usual rate fit on the axis: what was held back comes at once, and is cut off there."""
ROOM = 1.3  # above and below what is shown of latency
_GAP = 1.5  # bins

Points = Mapping[float, float]
"""A value for the middle of each bin, in s since time 0."""
Spread = Mapping[float, list[float]]
"""Those of all repetitions."""


@dataclass(frozen=True, slots=True)
class SystemCharts:
    """A system with its two charts."""

    system: System
    both: tuple[Chart, Chart]


def system_charts(systems: Sequence[System]) -> tuple[SystemCharts, ...]:
    """Of each system that ran."""
    ran = [system for system in systems if system.runs]
    crossing = [_over_runs(system, _crossing) for system in ran]
    latency = [_over_runs(system, _latency) for system in ran]
    usual = usual_rate(value for found in crossing for value in _all(found))
    late = [value for found in latency for value in _all(found) if value > 0] or [1.0]
    axes = (
        replace(CROSSING, high=ABOVE_USUAL * usual),
        replace(LATENCY, low=min(late) / ROOM, high=max(late) * ROOM),
    )
    end_s = max(run.record.length_s for system in ran for run in system.told)
    return tuple(
        SystemCharts(
            system,
            (
                _chart(system, "crossing", axes[0], through, end_s),
                _chart(system, "latency", axes[1], delays, end_s),
            ),
        )
        for system, through, delays in zip(ran, crossing, latency, strict=True)
    )


def usual_rate(rates: Iterable[float]) -> float:
    """The rate of a bin in which anything came: a cut may last longer than all else."""
    return median([rate for rate in rates if rate > 0] or [1.0])


def _all(found: Spread) -> list[float]:
    return [value for values in found.values() for value in values]


def _crossing(run: SystemRun) -> Points:
    """Events a second from one side of the cut at a client of the other, whichever way they came."""
    record, cut = run.record, cut_of(run.record)
    zero_ns = record.run.times.zero_ns
    if cut is None or zero_ns is None:
        return {}
    sides, clients, count = cut.regions, record.plan.having(Trait.SUBSCRIBER), 0
    bins = np.zeros(int(record.length_s / BIN_S) + 1, np.int64)
    for here, there in (sides, sides[::-1]):
        hosts = [process.host for process in clients if process.region == here]
        streams = [stream.number for stream in record.plan.streams if stream.region == there]
        count += len(hosts)
        files = [(host, run.directory.host_deliveries(host)) for host in hosts]
        records = read_files(files, streams, clocks=record.clocks)
        got = ints(records, "kind") == RecordKind.DELIVERED
        at: Ints = (ints(records, "t_ns")[got] - zero_ns) // round(BIN_S * 1e9)
        within = (at >= 0) & (at < bins.size)
        np.add.at(bins, at[within], ints(records, "count")[got][within])
    if not count:
        return {}
    rates = bins / (count * BIN_S)
    return {round((place + 0.5) * BIN_S, 6): float(rate) for place, rate in enumerate(rates[:-1])}


def _latency(run: SystemRun) -> Points:
    """The worst origin's p95, by when events were published."""
    worst: dict[float, float] = {}
    for row in run.record.latency:
        if row["p95_ms"] is not None:
            at_s = round(row["start_s"] + row["bin_s"] / 2, 6)
            worst[at_s] = max(worst.get(at_s, 0.0), row["p95_ms"])
    return worst


def _over_runs(system: System, of: Callable[[SystemRun], Points]) -> Spread:
    found = defaultdict(list)
    for run in system.told:
        for at_s, value in of(run).items():
            found[at_s].append(value)
    return dict(sorted(found.items()))


def _chart(system: System, key: str, y: Axis, values: Spread, end_s: float) -> Chart:
    xs, ys = _with_gaps(values)
    several = len(system.told) > 1
    line = Series(
        key,
        BLUE,
        xs,
        [None if each is None else float(f"{median(each):.5g}") for each in ys],
        low=[None if each is None else min(each) for each in ys] if several else (),
        high=[None if each is None else max(each) for each in ys] if several else (),
        subject=system.name,
        width=1.6,
    )
    return Chart(
        key=f"{key}-{system.name}",
        title=system.name,
        x=Axis(TIME, "s", low=0.0, high=end_s),
        y=y,
        series=(line,) if xs else (),
        spans=spans(system.shown),
        together=TOGETHER,
        small=True,
    )


def _with_gaps(values: Spread) -> tuple[list[float], list[list[float] | None]]:
    """None between bins that do not follow each other."""
    width = min((b - a for a, b in pairwise(values)), default=0.0)
    xs: list[float] = []
    ys: list[list[float] | None] = []
    for at_s, found in values.items():
        if xs and at_s - xs[-1] > _GAP * width:
            xs.append(round(xs[-1] + width, 6))
            ys.append(None)
        xs.append(at_s)
        ys.append(found)
    return xs, ys
