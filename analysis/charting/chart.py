"""A chart as plain data: curves, dots, bands of uncertainty, grey spans and marks over two axes."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from analysis.charting.axis import Axis

Values = Sequence[float | None]


@dataclass(frozen=True, slots=True)
class Curve:
    """A line through its points; None is a gap. `label` is written at its end; dots: points, no line."""

    name: str
    colour: str  # as CSS has it
    x: Sequence[float]
    y: Values
    label: str = ""
    dash: str = "solid"  # by plotly's names, as `topologies.palette` has them
    dots: bool = False
    read_out: bool = True  # under the pointer


@dataclass(frozen=True, slots=True)
class Ribbon:
    """A band of uncertainty, from `low` to `high`."""

    colour: str
    x: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    faint: bool = False


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of the horizontal axis in grey, with its name."""

    label: str
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Mark:
    """A place on the horizontal axis, with what happened there. kind: "good", "bad" or ""."""

    label: str
    at: float
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """One chart. `x_first_day`: if given, x counts days from this one, and dates are written."""

    key: str
    title: str
    unit: str
    x: Axis
    y: Axis
    curves: Sequence[Curve]
    ribbons: Sequence[Ribbon] = ()
    spans: Sequence[Span] = ()
    marks: Sequence[Mark] = ()
    x_unit: str = "s"
    x_first_day: date | None = None
    small: bool = False
