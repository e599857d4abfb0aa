"""The plots of a sweep as plain data, and those that serve any sweep.

One definition serves the interactive page (assets/sweep_plots.js, plotly) and the PNG and SVG figures
(sweep_figures.py, matplotlib).
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from analysis.sweeps import Spread, Sweep, SweptRun, grouped
from topologies.palette import colour_of, dash_of

LINES_MAX = 14  # colours and dashes tell so many apart


@dataclass(frozen=True, slots=True)
class SweepLine:
    """One line. `low` and `high`: the least and most over repetitions, where there are any."""

    name: str
    colour: str
    dash: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Reference:
    """A horizontal line, or band from `low` to `high`, of the paper or of what was asked; or the diagonal."""

    label: str
    low: float
    high: float
    diagonal: bool = False


@dataclass(frozen=True, slots=True)
class Comparison:
    """A number of the paper and ours."""

    what: str
    paper: str
    ours: str


@dataclass(frozen=True, slots=True)
class SweepChart:
    """One plot. `of`: the figure of the paper that it is drawn as."""

    key: str
    title: str
    x_label: str  # with its unit
    y_label: str
    lines: tuple[SweepLine, ...]
    of: str = ""
    x_logarithmic: bool = False
    y_logarithmic: bool = False
    x_ticks: tuple[float, ...] = ()
    x_names: tuple[str, ...] = ()  # of the ticks, where x are no numbers: points with bars, no lines
    references: tuple[Reference, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    note: str = ""


Value = Callable[[SweptRun], float | None]
Name = Callable[[SweptRun], Hashable]


def lines_of(
    runs: Sequence[SweptRun], x: Value, line: Name, y: Value, name: Callable[[Any], str] = str
) -> tuple[SweepLine, ...]:
    """A line for each value of `line`, in order, with the spread of `y` over runs of the same `x`."""
    points = grouped(runs, lambda run: (line(run), x(run)), y)
    names = sorted({key[0] for key in points}, key=_order)[:LINES_MAX]
    found = []
    for number, each in enumerate(names):
        mine = sorted((at, value) for (of, at), value in points.items() if of == each and at is not None)
        if mine:
            found.append(line_of(name(each), number, mine))
    return tuple(found)


def line_of(name: str, number: int, points: Sequence[tuple[float, Spread]]) -> SweepLine:
    """A line through means; `number` decides on its colour."""
    several = any(value.count > 1 for _, value in points)
    return SweepLine(
        name=name,
        colour=colour_of(number),
        dash=dash_of(number),
        x=tuple(float(at) for at, _ in points),
        y=tuple(value.mean for _, value in points),
        low=tuple(value.low for _, value in points) if several else (),
        high=tuple(value.high for _, value in points) if several else (),
    )


def generic_charts(sweep: Sweep) -> tuple[SweepChart, ...]:
    """Throughput and latency against the axis with the most numbers, a line for the values of the others."""
    axes = [axis for axis in sweep.axes if _numeric(sweep, axis)]
    if not axes:
        return ()
    counts = {axis: len({_value(run, axis) for run in sweep.runs}) for axis in axes}
    along = max(axes, key=lambda axis: counts[axis])
    others = [axis for axis in sweep.axes if axis != along]

    def x(run: SweptRun) -> float | None:
        return quantity(_value(run, along))

    def line(run: SweptRun) -> tuple[Any, ...]:
        return tuple(_value(run, axis) for axis in others)

    def named(values: tuple[Any, ...]) -> str:
        return ", ".join(f"{axis.split('.')[-1]} {value}" for axis, value in zip(others, values, strict=True))

    wanted: list[tuple[str, str, str, Value]] = [
        ("throughput", "Throughput", "events/s at the slowest client", lambda run: run.throughput_per_s),
        (
            "latency",
            "Latency",
            "p99 until every client has it, ms",
            lambda run: run.figure("latency", "p99_ms"),
        ),
    ]
    charts = [
        SweepChart(key, title, along, label, lines_of(sweep.measured, x, line, y, named))
        for key, title, label, y in wanted
    ]
    return tuple(chart for chart in charts if chart.lines)


def quantity(value: Any) -> float | None:
    """The number at the beginning of a value as an experiment has it ("30ms", "20000/s", 4)."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    text = str(value)
    end = next((at for at, sign in enumerate(text) if sign not in "0123456789."), len(text))
    try:
        return float(text[:end])
    except ValueError:
        return None


def _numeric(sweep: Sweep, axis: str) -> bool:
    return all(quantity(value) is not None for value in (sweep.experiment.get("sweep") or {})[axis])


def _value(run: SweptRun, axis: str) -> Any:
    value = run.point.values.get(axis)
    return value if isinstance(value, int | float | str | None) else str(value)


def _order(value: Any) -> tuple[Any, ...]:
    """Numbers by size, texts after them, and texts with numbers by these."""
    if isinstance(value, tuple):
        return (2, *(_order(part) for part in value))
    number = quantity(value)
    return (0, number, str(value)) if number is not None else (1, 0.0, str(value))
