"""Turn the detectors' indices into findings: nights, commits, runs, and other changes."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from analysis.history.regressions.change_points import LEVEL_MIN, NIGHTS_BESIDE, Shift
from analysis.history.regressions.circumstances import CIRCUMSTANCES, also_changed
from analysis.history.regressions.findings import Direction, Kind, RegressionFinding
from analysis.history.regressions.series import Floats, MetricSeries
from analysis.history.regressions.tonight import (
    AGREEING_MIN,
    LEVEL_NIGHTS,
    Departure,
    Measured,
    MissingFigure,
)
from analysis.intervals import change_interval

RUNS_SHOWN: Final = 6


def levels(series: MetricSeries, shift: Shift) -> tuple[float, float]:
    """Return the medians of the nights before and since a change point."""
    before, after = _beside(series, shift)
    return float(np.median(before)), float(np.median(after))


def finding_from_shift(
    series: MetricSeries, shift: Shift, runs: pa.Table, confidence: float, *, new: bool
) -> RegressionFinding:
    """Return a change of level as a finding."""
    span = ShiftSpan(shift.at, shift.earliest, shift.latest, *_beside(series, shift))
    return _finding(
        series, runs, span, levels(series, shift), kind="change point", confidence=confidence, new=new
    )


def finding_from_departure(
    series: MetricSeries, departed: Departure, runs: pa.Table, confidence: float
) -> RegressionFinding:
    """Return an unusual night as a finding. It is new on the first night that could detect it."""
    nights, since = series.nights, departed.since
    before = nights.medians[max(0, since - LEVEL_NIGHTS) : since]
    span = ShiftSpan(since, since, since, before, nights.medians[since:])
    known = 0 if departed.p == 0 else AGREEING_MIN  # a count that is no longer 0 needs no agreement
    new = since == nights.medians.size - 1 or int(nights.runs[since:-1].sum()) < known
    return _finding(
        series, runs, span, (departed.before, departed.after), kind="tonight", confidence=confidence, new=new
    )


def finding_from_missing_figure(
    series: MetricSeries,
    gone: MissingFigure,
    measured: Measured,
    runs: pa.Table,
    confidence: float,
    *,
    new: bool,
) -> RegressionFinding:
    """Return a figure that is no longer measured as a finding.

    After LEVEL_MIN nights its kind is a change point.
    """
    first = gone.nights[0]
    rows = int(series.rows_of(len(series.dates) - 1).min()), measured[first][0]
    return RegressionFinding(
        **_named(series, runs, *rows),
        kind="tonight" if len(gone.nights) < LEVEL_MIN else "change point",
        direction="worse",
        before=float(np.median(series.nights.medians[-LEVEL_NIGHTS:])),
        after=None,
        change=None,
        interval=None,
        first_bad_night=first,
        last_good_night=series.dates[-1],
        earliest_night=first,
        latest_night=first,
        runs_before=_names(series, runs, range(len(series.dates) - 1, -1, -1)),
        runs_after=tuple(runs["run"][row].as_py() for night in gone.nights for row in measured[night])[
            :RUNS_SHOWN
        ],
        confidence=confidence,
        new=new,
    )


@dataclass(frozen=True, slots=True)
class ShiftSpan:
    """The place of a change: its first night, the range of that, and the nights' medians before and since."""

    at: int
    earliest: int
    latest: int
    before: Floats
    after: Floats


def _finding(
    series: MetricSeries,
    runs: pa.Table,
    span: ShiftSpan,
    levels: tuple[float, float],
    *,
    kind: Kind,
    confidence: float,
    new: bool,
) -> RegressionFinding:
    rows = (int(series.rows_of(night).min()) for night in (span.earliest - 1, span.latest))
    return RegressionFinding(
        **_named(series, runs, *rows),
        kind=kind,
        direction=_direction(series.better, *levels),
        before=levels[0],
        after=levels[1],
        change=(levels[1] - levels[0]) / abs(levels[0]) if levels[0] else None,
        interval=_interval(span.before, span.after) if levels[0] else None,
        first_bad_night=series.dates[span.at],
        last_good_night=series.dates[span.at - 1],
        earliest_night=series.dates[span.earliest],
        latest_night=series.dates[span.latest],
        runs_before=_names(series, runs, range(span.at - 1, -1, -1)),
        runs_after=_names(series, runs, range(span.at, len(series.dates))),
        confidence=confidence,
        new=new,
    )


def _named(series: MetricSeries, runs: pa.Table, last_good: int, first_bad: int) -> dict[str, Any]:
    """Return what identifies a figure, and what changed between two rows of runs."""
    good, bad = (_circumstances(runs, row) for row in (last_good, first_bad))
    return {
        **{name: getattr(series, name) for name in ("suite", "entry", "metric", "unit")},
        "first_bad_commit": bad["commit"],
        "last_good_commit": good["commit"],
        "also_changed": also_changed(good, bad),
    }


def _beside(series: MetricSeries, shift: Shift) -> tuple[Floats, Floats]:
    medians = series.nights.medians
    return medians[max(shift.start, shift.at - NIGHTS_BESIDE) : shift.at], medians[shift.at : shift.end]


def _direction(better: str, before: float, after: float) -> Direction:
    return "better" if (after > before) == (better == "higher") else "worse"


def _interval(before: Floats, after: Floats) -> tuple[float, float]:
    """Return bounds of the change as a fraction of the level before. Equal nights give equal bounds."""
    rng = np.random.default_rng(before.size)
    if min(before.min(), after.min()) > 0:
        low, high = change_interval(np.log(before), np.log(after), rng)
        return math.expm1(low), math.expm1(high)
    low, high = change_interval(before, after, rng)
    base = abs(float(np.median(before)))
    return (low / base, high / base) if base else (0.0, 0.0)


def _circumstances(runs: pa.Table, row: int) -> dict[str, str]:
    """Return the circumstances of the run in that row."""
    return {name: runs[name][row].as_py() or "" for name in ("commit", *CIRCUMSTANCES)}


def _names(series: MetricSeries, runs: pa.Table, nights: Iterable[int]) -> tuple[str, ...]:
    """Return the names of the first night's runs, and of further nights while all of a night's names fit."""
    names: list[str] = []
    for night in nights:
        of_night = [runs["run"][int(row)].as_py() for row in np.sort(series.rows_of(night))]
        if names and len(names) + len(of_night) > RUNS_SHOWN:
            break
        names += of_night
    return tuple(names[:RUNS_SHOWN])
