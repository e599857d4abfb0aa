"""Lower part of the morning page: failures and tonight's experiments."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np

from analysis.history.regressions.findings import (
    EntryVerdict,
    NightFindings,
    RegressionFinding,
    RunVerdict,
)
from analysis.history.regressions.series import MetricSeries
from analysis.pages.nights.night_reader import EarlierNights, Levels, NightSuiteEntry, Row
from analysis.pages.nights.site_paths import Site, run_address, to_comparison, to_entry
from analysis.pages.nights.verdicts import SIGNS, Strip, status_of, strip, verdict_text
from analysis.pages.report.formatting import (
    EN_DASH,
    STATUS_OF_CHANGE,
    change_of,
    change_text,
    day_text,
    number,
    value_text,
)
from experiments.campaigns.nights import run_title

WHY_MAX = 160
_BETWEEN = "; "
"""Separator of reasons, as `analysis.history.regressions.findings` joins them."""
_KINDS = {"expectation": "Failed", "fidelity": "Invalid", "crash": "Crashed", "harness": "Could not run"}


@dataclass(frozen=True, slots=True)
class TonightValue:
    """One of tonight's numbers. change: from the usual value."""

    what: str
    text: str
    change: str = ""
    status: str = ""


@dataclass(frozen=True, slots=True)
class RunMark:
    """The symbol of one of tonight's runs."""

    sign: str
    status: str
    title: str
    address: str


@dataclass(frozen=True, slots=True)
class EntryRow:
    """An experiment tonight."""

    name: str
    address: str
    marks: tuple[RunMark, ...]
    values: tuple[TonightValue, ...]
    strip: Strip


@dataclass(frozen=True, slots=True)
class SuiteRows:
    """A suite's last night."""

    name: str
    night: str
    rows: tuple[EntryRow, ...]


@dataclass(frozen=True, slots=True)
class FailedRun:
    """A run that failed."""

    kind: str
    name: str
    why: str
    address: str
    comparison: str | None
    short: str
    allowed: bool


def shortened_reasons(why: str, reasons: int = 1) -> str:
    """Return the first reasons of a joined text, and the number of the others."""
    parts = why.split(_BETWEEN)
    text = _BETWEEN.join(parts[:reasons])
    text = text if len(text) <= WHY_MAX else text[: WHY_MAX - 1].rstrip() + "…"
    return text if len(parts) <= reasons else f"{text} (and {number(len(parts) - reasons)} more)"


def failed_runs(checked: NightFindings, past: EarlierNights, site: Site) -> list[FailedRun]:
    """Return tonight's runs that did not pass; runs of one experiment that failed the same way are merged."""
    same_failure: dict[tuple[str, str, bool], list[RunVerdict]] = defaultdict(list)
    for entry in checked.verdicts:
        for run in entry.runs:
            if run.failure is not None:
                same_failure[entry.entry, _KINDS[run.failure.value], run.allowed].append(run)
    return [_wrong(key, runs, past, site) for key, runs in same_failure.items()]


def _wrong(
    key: tuple[str, str, bool], runs: Sequence[RunVerdict], past: EarlierNights, site: Site
) -> FailedRun:
    entry, kind, allowed = key
    why = runs[0].why
    row = past.run(runs[0].run)
    times = f", {len(runs)} times" if len(runs) > 1 else ""
    return FailedRun(
        f"{kind}, which is allowed" if allowed else kind,
        f"{entry}{times}" if times else run_title(entry, runs[0].repeat),
        shortened_reasons(why, 2),
        run_address(row, site) if row else "",
        to_comparison(runs[0].run) if site.comparison(runs[0].run).exists() else None,
        f"{entry}: {kind[:1].lower() + kind[1:]}{times}, {shortened_reasons(why)}",
        allowed,
    )


def suite_rows(
    checked: NightFindings, entries: Sequence[NightSuiteEntry], usual: Levels, site: Site
) -> SuiteRows:
    """Return these experiments of a suite, even if they did not run tonight; notable ones first."""
    tonight = {verdict.entry: verdict for verdict in checked.verdicts}
    fresh = {(f.entry, f.metric): f for f in checked.findings if f.new or f in checked.worse}
    worse = {finding.entry for finding in checked.worse}

    def calm(entry: NightSuiteEntry) -> tuple[bool, bool]:
        verdict = tonight.get(entry.name)
        fine = verdict is not None and all(run.failure is None or run.allowed for run in verdict.runs)
        return entry.name not in worse, fine

    rows = tuple(
        EntryRow(
            entry.name,
            to_entry(entry.suite, entry.name),
            _marks(tonight.get(entry.name), entry.nights.get(checked.night, ()), site),
            _values(entry, checked.night, usual, fresh),
            strip(entry, checked.night),
        )
        for entry in sorted(entries, key=calm)
    )
    return SuiteRows(entries[0].suite, day_text(date.fromisoformat(checked.night)), rows)


def _marks(verdict: EntryVerdict | None, rows: Sequence[Row], site: Site) -> tuple[RunMark, ...]:
    if verdict is None:
        return ()
    addresses = {row["run"]: run_address(row, site) for row in rows}
    return tuple(
        RunMark(
            SIGNS[run.verdict],
            status_of(run.verdict, allowed=run.allowed),
            ": ".join(
                filter(None, [verdict_text(run.verdict, allowed=run.allowed), shortened_reasons(run.why)])
            ),
            addresses.get(run.run, ""),
        )
        for run in verdict.runs
    )


def _values(
    entry: NightSuiteEntry, night: str, usual: Levels, fresh: Mapping[tuple[str, str], RegressionFinding]
) -> tuple[TonightValue, ...]:
    by_metric = {series.metric: series for series in entry.series}
    switches = [metric for metric in by_metric if metric.endswith(".switch_s")]
    slowest = max(switches, key=lambda metric: float(np.median(by_metric[metric].nights.medians)), default="")
    wanted = (
        ("Throughput", "throughput.events_per_s"),
        ("Latency p95", "latency.p95_ms"),
        ("Recovery", slowest),
    )
    return tuple(_value(what, by_metric.get(metric), night, usual, fresh) for what, metric in wanted)


def _value(
    what: str,
    series: MetricSeries | None,
    night: str,
    usual: Levels,
    fresh: Mapping[tuple[str, str], RegressionFinding],
) -> TonightValue:
    finding = fresh.get((series.entry, series.metric)) if series else None
    if series is None or series.dates[-1] != night:
        gone = finding is not None and finding.after is None
        return TonightValue(what, value_text(None, ""), status="bad") if gone else TonightValue(what, EN_DASH)
    value = float(series.nights.medians[-1])
    level = usual.get((series.suite, series.entry, series.metric), {}).get(night)
    return TonightValue(
        what,
        value_text(value, series.unit),
        change_text(change_of(level, value)),
        STATUS_OF_CHANGE[finding.direction] if finding else "",
    )
