"""A chart as plain data: series over two axes, with annotations. Pages and figures draw the same chart.

`chart_page.py` embeds a chart into a page, where assets/chart.js draws it with uPlot; `figure.py` draws it
with matplotlib. Neither computes values; the code that builds the chart does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from typing import Literal, TypeVar

Y = TypeVar("Y")

Values = Sequence[float | None]
"""Values of points; None is a gap."""
Kind = Literal["linear", "logarithmic", "date", "category"]
Form = Literal["line", "dots", "bars", "band"]

LOGARITHMIC_FROM = 100.0  # largest over smallest: two decades
HEADROOM = 1.14  # factor above the highest value, for the names of faults
NEAR = 3.0  # a reference line beyond this factor of the highest value would flatten the series
GAP_BINS = 1.5  # points further apart than this many bins have a gap between them
_EPOCH = date(1970, 1, 1).toordinal()


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis. Without `low` or `high`, the values determine its ends."""

    label: str  # with its unit
    unit: str = ""  # shown after a value
    kind: Kind = "linear"
    low: float | None = None
    high: float | None = None
    from_zero: bool = True  # a linear axis includes 0
    ticks: Sequence[float] = ()  # positions; by default round numbers
    names: Sequence[str] = ()  # names of a category axis, for the values 0, 1 and so on


@dataclass(frozen=True, slots=True)
class ChartSeries:
    """The points of one series. `low` and `high`: the uncertainty or the range of each."""

    name: str
    colour: str  # CSS colour
    x: Sequence[float]
    y: Values
    low: Values = ()
    high: Values = ()
    label: str = ""  # written at its end, once for all series with this label
    subject: str = ""  # group for switches: a region, a run
    group: str = ""  # second group for switches: a percentile, a direction
    dash: str = "solid"  # as in `topologies.drawing.palette`
    width: float = 2.0
    form: Form = "line"  # "bars": dots with bars from low to high; "band": only the area between these
    markers: bool = False  # a dot at each point of a line
    faint: bool = False  # for bands
    read_out: bool = True  # shown under the pointer


@dataclass(frozen=True, slots=True)
class ChartSpan:
    """A range of the horizontal axis. `end` is None if it lasts to the end; hatched: without evidence."""

    label: str
    start: float
    end: float | None
    fault: str = ""
    links: Sequence[str] = ()  # charts of these links show its name; charts of no link always do
    hatched: bool = False
    row: int = 0  # row of its name, below overlapping spans
    other: bool = False  # background traffic: a strip along the bottom of charts of no link


@dataclass(frozen=True, slots=True)
class Reference:
    """A horizontal line, or band from `low` to `high`; or the diagonal.

    near: shown only close to the values.
    """

    label: str
    low: float
    high: float
    diagonal: bool = False
    near: bool = False


@dataclass(frozen=True, slots=True)
class ChartMark:
    """A position on the horizontal axis, with a label. status: "good", "bad" or ""."""

    label: str
    at: float
    status: str = ""


@dataclass(frozen=True, slots=True)
class Chart:
    """One chart."""

    key: str
    title: str
    x: Axis
    y: Axis
    series: tuple[ChartSeries, ...]
    spans: tuple[ChartSpan, ...] = ()
    references: tuple[Reference, ...] = ()
    marks: tuple[ChartMark, ...] = ()
    links: tuple[str, ...] = ()  # links that it shows
    together: str = ""  # charts with this name are zoomed and switched together
    scale: str = ""  # charts with this name share their vertical axis
    note: str = ""
    small: bool = False


def two_decades(values: Sequence[float]) -> bool:
    """Return whether the positive values need a logarithmic axis."""
    positive = [value for value in values if value > 0]
    return bool(positive) and max(positive) / min(positive) >= LOGARITHMIC_FROM


def highest(series: Sequence[ChartSeries]) -> float:
    """Return the highest value of all series, 0 if there is none."""
    return max((y for one in series for y in (*one.y, *one.high) if y is not None), default=0.0)


def as_day(day: date) -> int:
    """Return a date's position on an axis of dates: days since 1970-01-01."""
    return day.toordinal() - _EPOCH


def with_gaps(points: Mapping[float, Y], bin_s: float | None = None) -> tuple[list[float], list[Y | None]]:
    """Return points in ascending order with None where bins are missing between them.

    bin_s: the width of a bin; None: the least distance of two points.
    """
    width = min((b - a for a, b in pairwise(points)), default=0.0) if bin_s is None else bin_s
    xs: list[float] = []
    ys: list[Y | None] = []
    for x, y in points.items():
        if xs and x - xs[-1] > GAP_BINS * width:
            xs.append(round(xs[-1] + width, 6))
            ys.append(None)
        xs.append(x)
        ys.append(y)
    return xs, ys
