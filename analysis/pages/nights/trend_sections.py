"""Which trends an experiment's page shows, in which order, and which series have nothing to show."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import date, timedelta

from markupsafe import Markup

from analysis.history.regressions.findings import Finding
from analysis.history.regressions.series import Series
from analysis.pages.charting.model import Chart
from analysis.pages.charting.page import embedded
from analysis.pages.nights.reading import Entry
from analysis.pages.nights.trends import NIGHTS_SHOWN, trend
from analysis.pages.report.metric_words import title_of

_TITLES = {"throughput": "Throughput", "latency": "Latency", "recovery": "Recovery", "events": "Events"}
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


def sections(entry: Entry, findings: Sequence[Finding]) -> tuple[list[tuple[str, list[Chart]]], list[str]]:
    """Titles with their charts, and titles of series that were 0 on every night."""
    found: dict[str, list[Chart]] = defaultdict(list)
    nothing = []
    until = date.fromisoformat(entry.last)
    since = _since(entry, until)
    for series in sorted(entry.series, key=lambda one: _ORDER.get(one.metric, len(_ORDER))):
        if not series.nights.highest.any():
            nothing.append(title_of(series.metric))
            continue
        section = series.metric.partition(".")[0]
        found[section].append(trend(series, _of(series, findings), since, until))
    ordered = [(title, found[name]) for name, title in _TITLES.items() if found[name]]
    return ordered, nothing


def trend_of(entry: Entry, finding: Finding, findings: Sequence[Finding], nights: int = 120) -> Markup:
    """The chart of a finding's series around it: from some nights before it to the last."""
    series = next((one for one in entry.series if one.metric == finding.metric), None)
    if series is None:
        return Markup("")
    until = date.fromisoformat(entry.last)
    first = date.fromisoformat(finding.first_bad_night)
    since = max(_since(entry, until), min(first - timedelta(days=30), until - timedelta(days=nights)))
    key = f"finding-{finding.suite}-{finding.entry}-{finding.metric}-{finding.first_bad_night}"
    return embedded(trend(series, _of(series, findings), since, until, key))


def _since(entry: Entry, until: date) -> date:
    first = date.fromisoformat(next(iter(entry.nights)))
    return max(first, until - timedelta(days=NIGHTS_SHOWN))


def _of(series: Series, findings: Sequence[Finding]) -> list[Finding]:
    return [each for each in findings if each.metric == series.metric]
