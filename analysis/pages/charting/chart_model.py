"""A chart as plain data: series over two axes, with what explains them. Pages and figures draw the same one.

`page.py` puts a chart into a page, where assets/chart.js draws it with uPlot; `figure.py` draws it with
matplotlib. Neither computes values: what a chart shows is decided by whoever fills this model.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal

Values = Sequence[float | None]
"""None is a gap."""
Kind = Literal["linear", "logarithmic", "date", "category"]
Form = Literal["line", "dots", "bars", "band"]

LOGARITHMIC_FROM = 100.0  # largest over smallest: two decades
HEADROOM = 1.14  # above the highest value, for the names of faults
NEAR = 3.0  # a reference line further above the highest value would flatten the series
_EPOCH = date(1970, 1, 1).toordinal()


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis. Without `low` or `high`, the values decide."""

    label: str  # with its unit
    unit: str = ""  # after a value that is read out
    kind: Kind = "linear"
    low: float | None = None
    high: float | None = None
    from_zero: bool = True  # a linear axis holds 0
    ticks: Sequence[float] = ()  # where they are to stand; else at round numbers
    names: Sequence[str] = ()  # of a category axis: of the values 0, 1 and so on


@dataclass(frozen=True, slots=True)
class Series:
    """The points of one series. `low` and `high`: the uncertainty or the spread of each."""

    name: str
    colour: str  # as CSS has it
    x: Sequence[float]
    y: Values
    low: Values = ()
    high: Values = ()
    label: str = ""  # written at its end; series of one label have it once
    subject: str = ""  # what can be switched off with others of its name: a region, a run
    group: str = ""  # likewise: a percentile, a direction
    dash: str = "solid"  # as `topologies.palette` has it
    width: float = 2.0
    form: Form = "line"  # "bars": dots with bars from low to high; "band": only what is between these
    markers: bool = False  # a dot at each point of a line
    faint: bool = False  # of a band
    read_out: bool = True  # under the pointer


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of the horizontal axis. `end` is None if it lasts to the end; hatched: without evidence."""

    label: str
    start: float
    end: float | None
    fault: str = ""
    links: Sequence[str] = ()  # on which its name is written; on charts of no link it always is
    hatched: bool = False
    row: int = 0  # where its name stands, below those of spans that it is within
    other: bool = False  # other people's traffic: a strip along the bottom of charts of no link


@dataclass(frozen=True, slots=True)
class Reference:
    """A horizontal line, or band from `low` to `high`; or the diagonal. near: not far above the values."""

    label: str
    low: float
    high: float
    diagonal: bool = False
    near: bool = False


@dataclass(frozen=True, slots=True)
class Mark:
    """A position on the horizontal axis, with what happened there. status: "good", "bad" or ""."""

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
    series: tuple[Series, ...]
    spans: tuple[Span, ...] = ()
    references: tuple[Reference, ...] = ()
    marks: tuple[Mark, ...] = ()
    links: tuple[str, ...] = ()  # what it is about
    together: str = ""  # charts of one name are zoomed and switched together
    scale: str = ""  # those of one name also share their vertical axis
    note: str = ""
    small: bool = False


def two_decades(values: Sequence[float]) -> bool:
    """Whether values above 0 span so much that only a logarithmic axis shows them."""
    positive = [value for value in values if value > 0]
    return bool(positive) and max(positive) / min(positive) >= LOGARITHMIC_FROM


def highest(series: Sequence[Series]) -> float:
    """The highest value of any, 0 if there is none."""
    return max((y for one in series for y in (*one.y, *one.high) if y is not None), default=0.0)


def as_day(day: date) -> int:
    """Where a date stands on an axis of dates: days since 1970-01-01."""
    return day.toordinal() - _EPOCH
