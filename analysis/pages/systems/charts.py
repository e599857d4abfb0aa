"""Small charts of each system over time: one row per system, with common axes.

On the left: events that have to cross the cut, as one client beyond it receives them, in percent of the
system's usual rate. On the right: latency until every client has an event, the worst origin's p95. Lines are
medians over repetitions, bands range from minimum to maximum.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from statistics import mean, median

import numpy as np

from analysis.arrays import Ints, ints
from analysis.pages.charting.chart_model import Axis, Chart, ChartSeries, with_gaps
from analysis.pages.report.charts.charts import TIME, spans
from analysis.pages.systems.sides import ComparedSystem, SystemRun, cut_of
from analysis.timelines.delivery.delivery_records import read_files
from experiments.declared import Trait
from node.core.deliveries import RecordKind
from topologies.drawing.palette import BLUE

TOGETHER = "systems"
BIN_S = 0.25
IN_A_BIN = 5
"""Fewest events of a bin at the usual rate: slow systems have longer bins."""
BINS_MAX = 8
"""Limit of basic bins in one bin."""
CROSSING = Axis("events from beyond the cut, % of the usual rate", "%", low=0.0, high=400.0)
"""A burst of held-back events is clipped at the upper limit."""
LATENCY = Axis("p95 until every client has an event, ms", "ms", kind="logarithmic")
ROOM = 1.3  # margin factor above and below the latencies shown

Points = Mapping[float, float]
"""A value for the middle of each bin, in seconds since time 0."""
Spread = Mapping[float, list[float]]
"""The values of all repetitions."""


@dataclass(frozen=True, slots=True)
class SystemCharts:
    """A system with its two charts. usual: events/s that are 100 % in the left one."""

    system: ComparedSystem
    usual: float
    both: tuple[Chart, Chart]


def system_charts(systems: Sequence[ComparedSystem]) -> tuple[SystemCharts, ...]:
    """Return the charts of each system that ran."""
    ran = [system for system in systems if system.runs]
    latency = [_collected(map(_latency, system.basis)) for system in ran]
    late = [value for found in latency for values in found.values() for value in values if value > 0] or [1.0]
    delay = replace(LATENCY, low=min(late) / ROOM, high=max(late) * ROOM)
    end_s = max(run.record.length_s for system in ran for run in system.basis)
    return tuple(
        SystemCharts(
            system,
            usual,
            (
                _chart(system, "crossing", CROSSING, through, end_s),
                _chart(system, "latency", delay, delays, end_s),
            ),
        )
        for system, (usual, through), delays in zip(ran, map(_percent_of_usual, ran), latency, strict=True)
    )


def usual_rate(rates: Iterable[float]) -> float:
    """Return the median rate of bins with events; a cut may last longer than all else."""
    return median([rate for rate in rates if rate > 0] or [1.0])


def _percent_of_usual(system: ComparedSystem) -> tuple[float, Spread]:
    """Return a system's usual rate, events/s, and the rates over time in percent of it."""
    found = [_crossing(run) for run in system.basis]
    rough = usual_rate(rate for points in found for rate in points.values())
    factor = min(BINS_MAX, ceil(IN_A_BIN / (rough * BIN_S)))
    found = [longer_bins(points, factor) for points in found]
    usual = usual_rate(rate for points in found for rate in points.values())
    return usual, _collected({at_s: 100 * rate / usual for at_s, rate in each.items()} for each in found)


def longer_bins(points: Points, factor: int) -> Points:
    """Return means over `factor` consecutive bins each; the rest is left out."""
    times, rates = list(points), list(points.values())
    starts = range(0, len(times) - factor + 1, factor)
    return {round(mean(times[n : n + factor]), 6): mean(rates[n : n + factor]) for n in starts}


def _crossing(run: SystemRun) -> Points:
    """Return events per second from one side of the cut at a client of the other, by any path."""
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
    """Return the worst origin's p95, by publication time."""
    worst: dict[float, float] = {}
    for row in run.record.latency:
        if row["p95_ms"] is not None:
            at_s = round(row["start_s"] + row["bin_s"] / 2, 6)
            worst[at_s] = max(worst.get(at_s, 0.0), row["p95_ms"])
    return worst


def _collected(runs: Iterable[Points]) -> Spread:
    found = defaultdict(list)
    for points in runs:
        for at_s, value in points.items():
            found[at_s].append(value)
    return dict(sorted(found.items()))


def _chart(system: ComparedSystem, key: str, y: Axis, values: Spread, end_s: float) -> Chart:
    xs, ys = with_gaps(values)
    several = len(system.basis) > 1
    line = ChartSeries(
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
