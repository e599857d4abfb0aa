"""The check of a night: every series of the history up to that night, its findings, failures and verdicts.

Each series is checked twice: for change points anywhere in the year, and for a difference between tonight and
the nights on the present level, including a figure that is missing. Hundreds of series are examined and each
answer may be chance, so the required confidence is raised (Bonferroni): on a night when nothing changed, the
chance of any finding is at most WRONG_MAX.

Tonight's verdicts are listed by entry, with the last night on which each passed.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from typing import Any, Final

import pyarrow as pa

from analysis.history import History
from analysis.history.history_schemas import HistoryFilter
from analysis.history.record import check_night as check_date
from analysis.history.regressions.change_points import Shift, change_points
from analysis.history.regressions.explanations import (
    finding_from_departure,
    finding_from_missing_figure,
    finding_from_shift,
    levels,
)
from analysis.history.regressions.findings import (
    EntryVerdict,
    NightFindings,
    RegressionFinding,
    RunVerdict,
    failure_of,
    failure_reason,
)
from analysis.history.regressions.series import MetricSeries, is_relevant_change, resolution_of, series_of
from analysis.history.regressions.tonight import (
    Measured,
    departure,
    first_nonzero_count,
    measured_nights,
    missing,
)

WRONG_MAX: Final = 0.01
"""The chance of any finding on a night when nothing changed. It is smaller in practice:
docs/nightly.md.
"""
DAYS: Final = 365
"""Length of the history that is examined."""
_NEW_NIGHTS: Final = 5
"""A change point is new if it was not detected on any of this number of nights before tonight."""


def check_night(history: History, night: str, suite: str | None = None) -> NightFindings:
    """Return all findings of a night, from the year before it. suite: only this suite.

    Raises AnalysisError if `night` is not a date.
    """
    check_date(night)
    where = HistoryFilter(suite=suite, since=_days_before(night, DAYS), until=night)
    return check(*history.tables(where), night)


def check(runs: pa.Table, metrics: pa.Table, expectations: pa.Table, night: str) -> NightFindings:
    """Check a night as `check_night` does.

    The tables are as the history returns them and end with that night.
    """
    series = series_of(runs, metrics)
    found = findings_of(series, runs, night)
    rows = runs.to_pylist()
    results = results_by_run(expectations)
    return NightFindings(
        night=night,
        findings=tuple(found),
        verdicts=tuple(verdicts_of(rows, results, night)),
        series=len(series),
    )


def findings_of(
    series: Sequence[MetricSeries], runs: pa.Table, night: str, looked_at: int | None = None
) -> list[RegressionFinding]:
    """Return the significant changes of these series, the most urgent first.

    looked_at: number of series that are examined that night, if it is not these.
    """
    doubt_max = WRONG_MAX / max(1, 2 * (looked_at or len(series)))
    measured = measured_nights(runs, night)
    found = [
        finding
        for each in series
        for finding in _findings(each, runs, measured[each.suite, each.entry], night, doubt_max)
    ]
    return sorted(found, key=_urgency)


def _findings(
    series: MetricSeries, runs: pa.Table, measured: Measured, night: str, doubt_max: float
) -> Iterator[RegressionFinding]:
    """Yield the findings of one series. doubt_max: the largest p-value of a finding."""
    shifts = change_points(series.nights.medians)
    for shift in shifts:
        if shift.p <= doubt_max and _is_relevant(series, shift):
            new = series.dates[-1] == night and not _was_known(series, shift, doubt_max)
            yield finding_from_shift(series, shift, runs, _confidence(shift.p, doubt_max), new=new)
    gone = missing(series, measured, night)
    if gone is not None and gone.p <= doubt_max:
        new = gone.known > doubt_max
        yield finding_from_missing_figure(
            series, gone, measured, runs, _confidence(gone.p, doubt_max), new=new
        )
    if series.dates[-1] != night:
        return
    departed = first_nonzero_count(series.nights) if series.better == "lower" else None
    if departed is None:
        resolution = resolution_of(series.metric, series.unit)
        departed = departure(series.nights, shifts[-1].at if shifts else 0, resolution)
    if (
        departed is not None
        and departed.p <= doubt_max
        and is_relevant_change(departed.before, departed.after, series.metric, series.unit)
    ):
        yield finding_from_departure(series, departed, runs, _confidence(departed.p, doubt_max))


def _is_relevant(series: MetricSeries, shift: Shift) -> bool:
    return is_relevant_change(*levels(series, shift), series.metric, series.unit)


def _was_known(series: MetricSeries, shift: Shift, doubt_max: float) -> bool:
    """Return whether the same shift was found on one of the nights before tonight."""
    for ago in range(1, _NEW_NIGHTS + 1):
        for former in change_points(series.nights.medians[:-ago]):
            same = former.earliest <= shift.latest and shift.earliest <= former.latest
            if same and former.p <= doubt_max and _is_relevant(series, former):
                return True
    return False


def _confidence(p: float, doubt_max: float) -> float:
    """Return the confidence that a finding is not chance, given all series of the night."""
    return 1 - p / doubt_max * WRONG_MAX


def results_by_run(expectations: pa.Table) -> dict[tuple[str, str], list[tuple[str, bool]]]:
    """Return each expectation's text and whether it held, by (night, run)."""
    results: dict[tuple[str, str], list[tuple[str, bool]]] = {}
    columns = (expectations[name].to_pylist() for name in ("night", "run", "text", "held"))
    for night, run, text, held in zip(*columns, strict=True):
        results.setdefault((night, run), []).append((text, bool(held)))
    return results


def _urgency(found: RegressionFinding) -> tuple[object, ...]:
    size = abs(found.change) if found.change is not None else float("inf")
    return (not found.new, found.direction != "worse", -size, found.suite, found.entry, found.metric)


def _days_before(night: str, days: int) -> str:
    return (date.fromisoformat(night) - timedelta(days=days - 1)).isoformat()


Row = Mapping[str, Any]
ResultsByRun = Mapping[tuple[str, str], Sequence[tuple[str, bool]]]


def verdicts_of(runs: Sequence[Row], expectations: ResultsByRun, night: str) -> list[EntryVerdict]:
    """Return the verdict of each entry that ran tonight, in the order of their start.

    runs: rows of the table `runs`, oldest first. expectations: by (night, run) each text and whether it held.
    """
    tonight: dict[tuple[str, str], list[Row]] = {}
    before: dict[tuple[str, str], dict[str, list[Row]]] = {}
    for run in runs:
        key = run["suite"], run["entry"]
        if run["night"] == night:
            tonight.setdefault(key, []).append(run)
        else:
            before.setdefault(key, {}).setdefault(run["night"], []).append(run)
    entries = sorted(tonight.items(), key=lambda item: min(run["started_ns"] for run in item[1]))
    return [_entry(entry_runs, before.get(key, {}), expectations) for key, entry_runs in entries]


def _entry(
    mine: Sequence[Row], before: Mapping[str, Sequence[Row]], expectations: ResultsByRun
) -> EntryVerdict:
    good = [
        night for night, runs in sorted(before.items()) if all(run["verdict"] == "passed" for run in runs)
    ]
    return EntryVerdict(
        suite=mine[0]["suite"],
        entry=mine[0]["entry"],
        experiment=mine[0]["experiment"],
        runs=tuple(_run(run, expectations) for run in mine),
        last_good_night=good[-1] if good else None,
        last_good_runs=tuple(run["run"] for run in before[good[-1]]) if good else (),
    )


def _run(run: Row, expectations: ResultsByRun) -> RunVerdict:
    missed = [text for text, held in expectations.get((run["night"], run["run"]), ()) if not held]
    return RunVerdict(
        run=run["run"],
        path=run["path"],
        repeat=run["repeat"],
        verdict=run["verdict"],
        failure=failure_of(run, missed),
        why=failure_reason(run, missed),
        allowed=run["allow_failure"],
    )
