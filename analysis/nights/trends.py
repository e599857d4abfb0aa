"""A series as a chart: nights as dots, the level between change points with its bands, and the change points.

The dark band holds the level's median with 95 %, the faint one holds nine of ten nights.
"""

import itertools
from collections.abc import Iterable, Sequence
from datetime import date

import numpy as np

from analysis.charting.axis import Axis, linear
from analysis.charting.chart import Curve, Figure, Mark, Ribbon
from analysis.intervals import median_interval
from analysis.nights.change_words import size_of
from analysis.regressions.findings import Finding
from analysis.regressions.series import Series
from analysis.report.metric_words import title_of
from topologies.palette import BLUE

NIGHTS_SHOWN = 400
TICKS = 4
_FIT_FROM = 0.5  # an axis whose lowest value is above this share of the highest does not start at 0
_DOTS = "color-mix(in oklab, var(--accent) 65%, var(--surface))"
_LEVEL = "var(--ink)"
_STATUS = {"better": "good", "worse": "bad"}
_TWICE_THE_SAME_DAYS = 3  # the same change, found by both ways of looking


def trend(
    series: Series, findings: Iterable[Finding], since: date, until: date, *, small: bool = True
) -> Figure:
    """The chart of a series, from one day to another. findings: those of this series."""
    days = [date.fromisoformat(night) for night in series.dates]
    begin = next((i for i, day in enumerate(days) if day >= since), len(days))
    x = [(day - since).days for day in days[begin:]]
    y = series.nights.medians[begin:]
    changes = _apart(sorted(findings, key=lambda finding: finding.first_bad_night))
    edges = [0, *(_index(series, finding.first_bad_night) - begin for finding in changes), len(x)]
    pieces = [(max(a, 0), b) for a, b in itertools.pairwise(edges) if b > max(a, 0)]
    curves = [
        Curve("", _DOTS, x, [_digits(value) for value in y], dots=True),
        *(_level(x, y, *piece) for piece in pieces),
    ]
    fitted = bool(len(y)) and float(y.min()) > _FIT_FROM * float(y.max())
    return Figure(
        key=f"{series.suite}-{series.entry}-{series.metric}",
        title=title_of(series.metric),
        unit=series.unit,
        x=_days_axis(since, until),
        y=linear([float(value) for value in y], from_zero=not fitted, ticks=3),
        curves=curves,
        ribbons=[ribbon for piece in pieces for ribbon in _bands(x, y, *piece)],
        marks=[
            Mark(
                size_of(finding),
                (date.fromisoformat(finding.first_bad_night) - since).days - 0.5,
                _STATUS.get(finding.direction, ""),
            )
            for finding in changes
            if finding.first_bad_night >= since.isoformat()
        ],
        x_unit="",
        x_first_day=since,
        small=small,
    )


def _apart(findings: Sequence[Finding]) -> list[Finding]:
    """A change once, also if both ways of looking found it."""
    kept: list[Finding] = []
    for finding in findings:
        day = date.fromisoformat(finding.first_bad_night)
        if kept and (day - date.fromisoformat(kept[-1].first_bad_night)).days < _TWICE_THE_SAME_DAYS:
            continue
        kept.append(finding)
    return kept


def _index(series: Series, night: str) -> int:
    return next((i for i, day in enumerate(series.dates) if day >= night), len(series.dates))


def _level(x: Sequence[int], y: np.ndarray, start: int, end: int) -> Curve:
    level = _digits(float(np.median(y[start:end])))
    return Curve("level", _LEVEL, [x[start], x[end - 1]], [level, level], read_out=False)


def _bands(x: Sequence[int], y: np.ndarray, start: int, end: int) -> list[Ribbon]:
    values = y[start:end]
    level = median_interval(values)
    low, high = np.quantile(values, (0.05, 0.95))
    across = [x[start], x[end - 1]]
    return [
        Ribbon(BLUE, across, [float(low)] * 2, [float(high)] * 2, faint=True),
        Ribbon(BLUE, across, [level.low] * 2, [level.high] * 2),
    ]


def _days_axis(since: date, until: date) -> Axis:
    """Ticks at the beginnings of months, or evenly where there are few days."""
    length = max(1, (until - since).days)
    firsts = [day for day in range(length + 1) if date.fromordinal(since.toordinal() + day).day == 1]
    if len(firsts) < 2:
        firsts = list(range(0, length + 1, max(1, length // 3)))
    step = -(-len(firsts) // TICKS)
    return Axis(-0.5, length + 0.5, tuple(float(day) for day in firsts[::step]))


def _digits(value: float) -> float:
    """Seven significant digits: an axis may show a series whose nights differ in the fifth alone."""
    return float(f"{value:.7g}")
