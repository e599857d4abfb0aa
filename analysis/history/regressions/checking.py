"""The check of a night: every series of the history up to that night, its findings, failures and verdicts.

Each series is asked twice: for change points anywhere in the year, and whether tonight is like the nights on
its present level, or lacks the figure that they had. Hundreds of series are looked at, and each answer may be
chance, so that each has to be as sure as all of them together shall be (Bonferroni): on a night when nothing
changed, anything at all is found with a chance of at most WRONG_MAX.

Tonight's verdicts stand entry by entry, with when each was last fine.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from typing import Any, Final

import pyarrow as pa

from analysis.history import History
from analysis.history.history_schemas import HistoryFilter
from analysis.history.record import check_night as check_date
from analysis.history.regressions.change_points import Shift, change_points
from analysis.history.regressions.explanations import levels, of_departure, of_missing, of_shift
from analysis.history.regressions.findings import (
    EntryVerdict,
    Finding,
    NightFindings,
    RunVerdict,
    failure_of,
    why,
)
from analysis.history.regressions.flakes import flakes_of
from analysis.history.regressions.series import Series, is_worth_a_word, resolution_of, series_of
from analysis.history.regressions.tonight import (
    Measured,
    departure,
    first_of_its_kind,
    measured_nights,
    missing,
)

WRONG_MAX: Final = 0.01
"""The chance of any finding on a night when nothing changed. In fact it is smaller: docs/regressions.md."""
DAYS: Final = 365
"""How far back is looked."""
_NEW_NIGHTS: Final = 5
"""A change point is new if none of so many nights before tonight knew of it."""


def check_night(history: History, night: str, suite: str | None = None) -> NightFindings:
    """Everything that there is to say of a night, from the year before it. suite: of this suite alone.

    Raises AnalysisError if `night` is no date.
    """
    check_date(night)
    where = HistoryFilter(suite=suite, since=_days_before(night, DAYS), until=night)
    return check(*history.tables(where), night)


def check(runs: pa.Table, metrics: pa.Table, expectations: pa.Table, night: str) -> NightFindings:
    """As `check_night`, of tables as the history returns them, which end with that night."""
    series = series_of(runs, metrics)
    found = findings_of(series, runs, night)
    rows = runs.to_pylist()
    kept = kept_of(expectations)
    return NightFindings(
        night=night,
        findings=tuple(found),
        flakes=tuple(flakes_of(rows, kept, night)),
        verdicts=tuple(verdicts_of(rows, kept, night)),
        series=len(series),
    )


def findings_of(
    series: Sequence[Series], runs: pa.Table, night: str, looked_at: int | None = None
) -> list[Finding]:
    """What changed in any of these series and is to be believed, the most pressing first.

    looked_at: how many series are looked at that night, unless it is these.
    """
    doubt_max = WRONG_MAX / max(1, 2 * (looked_at or len(series)))
    measured = measured_nights(runs, night)
    found = [
        finding
        for each in series
        for finding in _findings(each, runs, measured[each.suite, each.entry], night, doubt_max)
    ]
    return sorted(found, key=_pressing)


def _findings(
    series: Series, runs: pa.Table, measured: Measured, night: str, doubt_max: float
) -> Iterator[Finding]:
    """What one series shows. doubt_max: the p-value that it may have."""
    shifts = change_points(series.nights.medians)
    for shift in shifts:
        if shift.p <= doubt_max and _is_worth_a_word(series, shift):
            new = series.dates[-1] == night and not _was_known(series, shift, doubt_max)
            yield of_shift(series, shift, runs, _confidence(shift.p, doubt_max), new=new)
    gone = missing(series, measured, night)
    if gone is not None and gone.p <= doubt_max:
        new = gone.known > doubt_max
        yield of_missing(series, gone, measured, runs, _confidence(gone.p, doubt_max), new=new)
    if series.dates[-1] != night:
        return
    departed = first_of_its_kind(series.nights) if series.better == "lower" else None
    if departed is None:
        resolution = resolution_of(series.metric, series.unit)
        departed = departure(series.nights, shifts[-1].at if shifts else 0, resolution)
    if (
        departed is not None
        and departed.p <= doubt_max
        and is_worth_a_word(departed.before, departed.after, series.metric, series.unit)
    ):
        yield of_departure(series, departed, runs, _confidence(departed.p, doubt_max))


def _is_worth_a_word(series: Series, shift: Shift) -> bool:
    return is_worth_a_word(*levels(series, shift), series.metric, series.unit)


def _was_known(series: Series, shift: Shift, doubt_max: float) -> bool:
    """Whether one of the nights before tonight found the same."""
    for ago in range(1, _NEW_NIGHTS + 1):
        for former in change_points(series.nights.medians[:-ago]):
            same = former.earliest <= shift.latest and shift.earliest <= former.latest
            if same and former.p <= doubt_max and _is_worth_a_word(series, former):
                return True
    return False


def _confidence(p: float, doubt_max: float) -> float:
    """That it is no chance, all series of the night considered."""
    return 1 - p / doubt_max * WRONG_MAX


def kept_of(expectations: pa.Table) -> dict[tuple[str, str], list[tuple[str, bool]]]:
    """By (night, run), each expectation's text and whether it held."""
    kept: dict[tuple[str, str], list[tuple[str, bool]]] = {}
    columns = (expectations[name].to_pylist() for name in ("night", "run", "text", "held"))
    for night, run, text, held in zip(*columns, strict=True):
        kept.setdefault((night, run), []).append((text, bool(held)))
    return kept


def _pressing(found: Finding) -> tuple[object, ...]:
    size = abs(found.change) if found.change is not None else float("inf")
    return (not found.new, found.direction != "worse", -size, found.suite, found.entry, found.metric)


def _days_before(night: str, days: int) -> str:
    return (date.fromisoformat(night) - timedelta(days=days - 1)).isoformat()


Row = Mapping[str, Any]
ExpectationResult = Mapping[tuple[str, str], Sequence[tuple[str, bool]]]


def verdicts_of(runs: Sequence[Row], expectations: ExpectationResult, night: str) -> list[EntryVerdict]:
    """Each entry that ran tonight, in the order in which they began.

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
    return [_entry(mine, before.get(key, {}), expectations) for key, mine in entries]


def _entry(
    mine: Sequence[Row], before: Mapping[str, Sequence[Row]], expectations: ExpectationResult
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


def _run(run: Row, expectations: ExpectationResult) -> RunVerdict:
    missed = [text for text, held in expectations.get((run["night"], run["run"]), ()) if not held]
    return RunVerdict(
        run=run["run"],
        path=run["path"],
        repeat=run["repeat"],
        verdict=run["verdict"],
        failure=failure_of(run, missed),
        why=why(run, missed),
        allowed=run["allow_failure"],
    )
