"""Charts of a sweep: the generic ones for any sweep, and helpers for the others."""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from analysis.pages.charting.chart_model import Axis, Chart, ChartSeries
from analysis.sweeps import RepetitionSpread, SweepResults, SweepRunResult, grouped
from analysis.systems.papers import PaperComparison
from experiments.campaigns.sweep import value_text
from topologies.drawing.palette import colour_of, dash_of
from topologies.quantities import BY_SUFFIX, FRACTION

LINES_MAX = 14  # number of distinguishable colours and dashes
MARKERS_MAX = 30  # distinguishable points of a line
FIGURES = (("full_s", "total"), ("beyond_way_s", "less the new path"))
SIDEWAYS = 0.1  # offset so that bars do not overlap
LENGTH_OF_FAULT = re.compile(r"faults\.[^.]+\.for")
LENGTHS_MIN = 3
"""Fewest lengths of an outage that make a plot along them."""
RETRY = "TCP retransmits"
KINDS = (*BY_SUFFIX, FRACTION)
SIZES = {unit: float(size) for kind in KINDS for unit, size in kind.units.items()}
NOTE = (
    "Points are medians over runs, and bars range from minimum to maximum. Runs in which a stream stays"
    " stalled have no such time: see the expectations."
)


@dataclass(frozen=True, slots=True)
class SweepChart(Chart):
    """One plot. `of`: the figure of the paper that it corresponds to."""

    of: str = ""
    comparisons: tuple[PaperComparison, ...] = ()


Value = Callable[[SweepRunResult], float | None]
Name = Callable[[SweepRunResult], Hashable]


def lines_of(
    runs: Sequence[SweepRunResult], x: Value, line: Name, y: Value, name: Callable[[Any], str] = str
) -> tuple[ChartSeries, ...]:
    """Return a line for each value of `line`, in order, with the spread of `y` over runs of the same `x`."""
    points = grouped(runs, lambda run: (line(run), x(run)), y)
    names = sorted({key[0] for key in points}, key=_order)[:LINES_MAX]
    found = []
    for number, each in enumerate(names):
        own = sorted((at, value) for (of, at), value in points.items() if of == each and at is not None)
        if own:
            found.append(line_of(name(each), number, own))
    return tuple(found)


def line_of(name: str, number: int, points: Sequence[tuple[float, RepetitionSpread]]) -> ChartSeries:
    """Return a line through means; `number` determines its colour."""
    several = any(value.count > 1 for _, value in points)
    return sweep_series(
        name,
        number,
        x=[at for at, _ in points],
        y=[value.mean for _, value in points],
        low=tuple(value.low for _, value in points) if several else (),
        high=tuple(value.high for _, value in points) if several else (),
    )


def sweep_series(
    name: str, number: int, *, x: Iterable[float], y: Iterable[float], **more: Any
) -> ChartSeries:
    """Return the series with this number in its chart; `more`: further fields of ChartSeries."""
    xs, ys = tuple(map(float, x)), tuple(map(float, y))
    markers, dash = len(xs) <= MARKERS_MAX, dash_of(number)
    return ChartSeries(name, colour_of(number), xs, ys, label=name, dash=dash, markers=markers, **more)


ChartBuilder = Callable[[SweepResults], tuple[SweepChart, ...]]
"""A function that draws some charts of a sweep; one without series is left out."""


def generic_charts(sweep: SweepResults) -> tuple[SweepChart, ...]:
    """Return throughput and latency along the axis with the most values.

    There is a line for each value of the other axes.
    """
    units = {axis: unit for axis in sweep.axes if (unit := common_unit(sweep.swept[axis])) is not None}
    if not units:
        return ()
    along = max(units, key=lambda axis: len({_value(run, axis) for run in sweep.runs}))
    unit = units[along]
    label = along if not unit or unit.startswith("/") else f"{along}, {unit}"
    others = [axis.split(".")[-1] for axis in sweep.axes if axis != along]

    def chart(key: str, title: str, y: Axis, value: Value) -> SweepChart:
        def named(values: tuple[Any, ...]) -> str:
            return ", ".join(f"{axis} {value}" for axis, value in zip(others, values, strict=True))

        return SweepChart(
            key, title, Axis(label), y, _lines_along(sweep, along, unit, sweep.measured, value, name=named)
        )

    throughput = Axis("events/s at the slowest client", "events/s")
    latency = Axis("p99 until every client has it, ms", "ms")
    charts = (
        chart("throughput", "Throughput", throughput, lambda run: run.throughput_per_s),
        chart("latency", "Latency", latency, lambda run: run.figure("latency", "p99_ms")),
    )
    return tuple(chart for chart in charts if chart.series)


def _lines_along(
    sweep: SweepResults,
    along: str,
    unit: str,
    runs: Sequence[SweepRunResult],
    y: Value,
    *,
    name: Callable[[Any], str],
) -> tuple[ChartSeries, ...]:
    """Return a line along one field, in this unit, for each value of the others."""
    others = [axis for axis in sweep.axes if axis != along]

    def x(run: SweepRunResult) -> float | None:
        return in_unit(_value(run, along), unit)

    return lines_of(runs, x, lambda run: tuple(_value(run, axis) for axis in others), y, name)


def quantity(value: Any) -> tuple[float, str] | None:
    """Return number and unit of an experiment's value: 30 and ms for "30ms", 4 and no unit for 4."""
    if isinstance(value, bool):
        return None
    text = str(value)
    end = next((at for at, sign in enumerate(text) if sign not in "0123456789."), len(text))
    try:
        found = (
            (float(value), "") if isinstance(value, int | float) else (float(text[:end]), text[end:].strip())
        )
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found[0]) else None


def common_unit(values: Iterable[Any]) -> str | None:
    """Return the smallest unit of these values, "" for plain numbers; None if they are not of one kind."""
    found = [quantity(value) for value in values]
    units = {each[1] for each in found if each is not None}
    if None in found or not units:
        return None
    if len(units) == 1 or any(units <= kind.units.keys() for kind in KINDS):
        return min(units, key=lambda unit: SIZES.get(unit, 1.0))
    return None


def in_unit(value: Any, unit: str) -> float | None:
    """Return the number of an experiment's value in another unit of its kind."""
    if (found := quantity(value)) is None:
        return None
    number, own = found
    return number if own == unit else number * SIZES[own] / SIZES[unit]


def _value(run: SweepRunResult, axis: str) -> Any:
    value = run.point.values.get(axis)
    return value if isinstance(value, int | float | str | None) else str(value)


def _order(value: Any) -> tuple[Any, ...]:
    """Return a sort key: numbers by size, then texts, those with numbers by these."""
    if isinstance(value, tuple):
        return (2, *(_order(part) for part in value))
    found = quantity(value)
    return (1, 0.0, str(value)) if found is None else (0, found[0] * SIZES.get(found[1], 1.0), str(value))


def convergence_charts(sweep: SweepResults) -> tuple[SweepChart, ...]:
    """Return how long streams take to flow again after the last change of a run.

    It is one plot along the field with the most values; none if no run of the sweep had changes. Along the
    length of an outage, it also shows when TCP retransmitted, and there is a plot of lost events.

    Points are medians over runs, with minimum and maximum: a bound must hold for the worst of a few dozen
    runs.
    """
    counts = {axis: len(sweep.swept[axis]) for axis in sweep.axes}
    runs = [run for run in sweep.measured if run.figure("convergence", "last_change_s")]
    if not counts or not runs:
        return ()
    lengths = [axis for axis in counts if LENGTH_OF_FAULT.fullmatch(axis) and counts[axis] >= LENGTHS_MIN]
    if lengths:
        return _outage_charts(sweep, lengths[0], runs)
    axis = max(counts, key=lambda axis: counts[axis])
    by_name: dict[str, list[SweepRunResult]] = defaultdict(list)
    for run in runs:
        by_name[value_text(run.point.values.get(axis))].append(run)
    lines = [_line(number, title, key, by_name) for number, (key, title) in enumerate(FIGURES)]
    return (
        SweepChart(
            key="convergence",
            title="Every stream flows again at every client",
            x=Axis(axis.split(".")[-1], kind="category", names=tuple(by_name)),
            y=Axis("since the last change, s", "s"),
            series=tuple(line for line in lines if line.x),
            note=NOTE,
        ),
    )


def _outage_charts(sweep: SweepResults, axis: str, runs: Sequence[SweepRunResult]) -> tuple[SweepChart, ...]:
    """Return plots along the length of an outage, with a line for each value of the other axes."""

    def lines(section: str, name: str, title: str) -> tuple[ChartSeries, ...]:
        def named(values: tuple[Any, ...]) -> str:
            return ", ".join(map(str, values)) or title

        return _lines_along(sweep, axis, "s", runs, lambda run: run.figure(section, name), name=named)

    flows = lines("convergence", "full_s", "every stream flows")
    retries = lines("convergence", "tcp_retry_s", RETRY) if len(flows) == 1 else ()
    retries = tuple(
        replace(each, colour=colour_of(1), dash="dash", name=RETRY, label=RETRY) for each in retries
    )
    along = Axis("length of the outage, s", "s", "logarithmic")
    return tuple(
        chart
        for chart in (
            SweepChart(
                key="convergence",
                title="Every stream flows again at every client",
                x=along,
                y=Axis("since the link was back, s", "s"),
                series=(*flows, *retries),
                note="Runs in which a stream stays stalled have no such time: see the expectations.",
            ),
            SweepChart(
                key="outage-losses",
                title="Events lost",
                x=along,
                y=Axis("deliveries lost", ""),
                series=lines("events", "lost", "lost"),
            ),
        )
        if chart.series
    )


def _line(number: int, title: str, key: str, runs: Mapping[str, Sequence[SweepRunResult]]) -> ChartSeries:
    """Return the line of one figure: a point for each name whose runs have it."""
    found = []
    for place, named in enumerate(runs.values()):
        known = [value for run in named if (value := run.figure("convergence", key)) is not None]
        if known:
            found.append((place + SIDEWAYS * (2 * number - 1), median(known), min(known), max(known)))
    x, y, low, high = zip(*found, strict=True) if found else ((), (), (), ())
    return ChartSeries(title, colour_of(number), x, y, low, high, label=title, form="bars")
