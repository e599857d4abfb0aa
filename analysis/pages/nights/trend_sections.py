"""The trends of an experiment's page: selection, order, and a chart of each series.

A chart has nights as dots, the level between change points with its bands, and the change points. The dark
band is the 95 % interval of the level's median, the faint one contains nine of ten nights.
"""

import itertools
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import date, timedelta

import numpy as np
from markupsafe import Markup

from analysis.history.regressions.findings import RegressionFinding
from analysis.history.regressions.series import MetricSeries as Nights
from analysis.intervals import median_interval
from analysis.pages.charting.chart_model import Axis, Chart, ChartMark, ChartSeries, as_day
from analysis.pages.charting.chart_page import embedded
from analysis.pages.nights.change_words import size_of
from analysis.pages.nights.night_reader import NightSuiteEntry
from analysis.pages.report.formatting import STATUS_OF_CHANGE, title_of
from experiments.records.summary import SECTION_TITLES
from topologies.drawing.palette import BLUE

_ORDER = {
    metric: number
    for number, metric in enumerate(
        (
            "throughput.events_per_s",
            "throughput.slowest_client_events_per_s",
            "throughput.bytes_per_s",
            "latency.p50_ms",
            "latency.p95_ms",
            "latency.p99_ms",
            "latency.mean_ms",
            "latency.max_ms",
        )
    )
}
NIGHTS_SHOWN = 400
_FIT_FROM = 0.5  # an axis does not start at 0 if the lowest value is above this fraction of the highest
_DOTS = "color-mix(in oklab, var(--accent) 65%, var(--surface))"
_LEVEL = "var(--ink)"
_TWICE_THE_SAME_DAYS = 3  # days within which both methods found the same change


def sections(
    entry: NightSuiteEntry, findings: Sequence[RegressionFinding]
) -> tuple[list[tuple[str, list[Chart]]], list[str]]:
    """Return titles with their charts, and titles of series that were 0 on every night."""
    found: dict[str, list[Chart]] = defaultdict(list)
    nothing = []
    until = date.fromisoformat(entry.last)
    since = _since(entry, until)
    for series in sorted(entry.series, key=lambda one: _ORDER.get(one.metric, len(_ORDER))):
        if not series.nights.highest.any():
            nothing.append(title_of(series.metric))
            continue
        section = series.metric.partition(".")[0]
        found[section].append(trend(series, _findings_of(series, findings), since, until))
    ordered = [(title, found[name]) for name, title in SECTION_TITLES.items() if found[name]]
    return ordered, nothing


def trend_of(
    entry: NightSuiteEntry,
    finding: RegressionFinding,
    findings: Sequence[RegressionFinding],
    nights: int = 120,
) -> Markup:
    """Return the chart of a finding's series from some nights before it to the last."""
    series = next((one for one in entry.series if one.metric == finding.metric), None)
    if series is None:
        return Markup("")
    until = date.fromisoformat(entry.last)
    first = date.fromisoformat(finding.first_bad_night)
    since = max(_since(entry, until), min(first - timedelta(days=30), until - timedelta(days=nights)))
    key = f"finding-{finding.suite}-{finding.entry}-{finding.metric}-{finding.first_bad_night}"
    return embedded(trend(series, _findings_of(series, findings), since, until, key))


def _since(entry: NightSuiteEntry, until: date) -> date:
    first = date.fromisoformat(next(iter(entry.nights)))
    return max(first, until - timedelta(days=NIGHTS_SHOWN))


def _findings_of(series: Nights, findings: Sequence[RegressionFinding]) -> list[RegressionFinding]:
    return [each for each in findings if each.metric == series.metric]


def trend(
    series: Nights, findings: Iterable[RegressionFinding], since: date, until: date, key: str = ""
) -> Chart:
    """Return the chart of a series, from one day to another. findings: those of this series."""
    days = [date.fromisoformat(night) for night in series.dates]
    begin = next((i for i, day in enumerate(days) if day >= since), len(days))
    x = [as_day(day) for day in days[begin:]]
    y = series.nights.medians[begin:]
    changes = _apart(sorted(findings, key=lambda finding: finding.first_bad_night))
    edges = [0, *(_index(series, finding.first_bad_night) - begin for finding in changes), len(x)]
    pieces = [(max(a, 0), b) for a, b in itertools.pairwise(edges) if b > max(a, 0)]
    nights = ChartSeries("", _DOTS, x, [_digits(value) for value in y], form="dots")
    fitted = bool(len(y)) and float(y.min()) > _FIT_FROM * float(y.max())
    return Chart(
        key=key or f"{series.suite}-{series.entry}-{series.metric}",
        title=title_of(series.metric),
        x=Axis("night", kind="date", low=as_day(since) - 0.5, high=as_day(until) + 0.5),
        y=Axis(series.unit or "number", series.unit, from_zero=not fitted),
        series=(nights, *(one for piece in pieces for one in _level(x, y, *piece))),
        marks=tuple(
            ChartMark(
                size_of(finding),
                as_day(date.fromisoformat(finding.first_bad_night)) - 0.5,
                STATUS_OF_CHANGE.get(finding.direction, ""),
            )
            for finding in changes
            if finding.first_bad_night >= since.isoformat()
        ),
        small=True,
    )


def _apart(findings: Sequence[RegressionFinding]) -> list[RegressionFinding]:
    """Return each change once, even if both methods found it."""
    kept: list[RegressionFinding] = []
    for finding in findings:
        day = date.fromisoformat(finding.first_bad_night)
        if kept and (day - date.fromisoformat(kept[-1].first_bad_night)).days < _TWICE_THE_SAME_DAYS:
            continue
        kept.append(finding)
    return kept


def _index(series: Nights, night: str) -> int:
    return next((i for i, day in enumerate(series.dates) if day >= night), len(series.dates))


def _level(x: Sequence[int], y: np.ndarray, start: int, end: int) -> tuple[ChartSeries, ...]:
    """Return the level between two changes, with its two bands."""
    values = y[start:end]
    median = _digits(float(np.median(values)))
    certain = median_interval(values)
    low, high = (float(value) for value in np.quantile(values, (0.05, 0.95)))
    across = (x[start], x[end - 1])

    def band(low: float, high: float, *, faint: bool = False) -> ChartSeries:
        return ChartSeries(
            "", BLUE, across, (), (low,) * 2, (high,) * 2, form="band", faint=faint, read_out=False
        )

    level = ChartSeries("level", _LEVEL, across, (median,) * 2, read_out=False)
    return band(low, high, faint=True), band(certain.low, certain.high), level


def _digits(value: float) -> float:
    """Return seven significant digits: a series may vary only in the fifth."""
    return float(f"{value:.7g}")
