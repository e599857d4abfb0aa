"""Series have the measured figures, sorted by night, without runs that do not count."""

from pathlib import Path

from analysis.history import History
from analysis.history.metrics import Metric
from analysis.history.regressions.series import MetricSeries, series_of
from tests.analysis.history.records import make_record


def history(folder: Path, *runs: tuple[str, str, str, float]) -> History:
    """Return a history of runs (night, entry, verdict, p95 latency), in this order."""
    kept = History(folder)
    for number, (night, entry, verdict, p95_ms) in enumerate(runs):
        kept.append(
            make_record(
                night=night,
                run=f"run-{number}",
                entry=entry,
                verdict=verdict,
                valid=verdict != "invalid",
                metrics=(
                    Metric("latency.p95_ms", p95_ms, "ms", "lower"),
                    Metric("events.published", 100.0, "events", ""),
                ),
            )
        )
    return kept


def series(folder: Path, *runs: tuple[str, str, str, float]) -> list[MetricSeries]:
    kept = history(folder, *runs)
    return series_of(kept.runs(), kept.metrics())


def test_a_night_is_the_median_of_its_runs(tmp_path: Path) -> None:
    (only,) = series(
        tmp_path,
        ("2026-03-02", "a", "passed", 9.0),
        ("2026-03-01", "a", "passed", 5.0),
        ("2026-03-01", "a", "failed", 2.0),
        ("2026-03-01", "a", "passed", 3.0),
    )
    assert only.dates == ("2026-03-01", "2026-03-02")
    assert (list(only.nights.medians), list(only.nights.runs)) == ([3.0, 9.0], [3, 1])
    assert (list(only.nights.lowest), list(only.nights.highest)) == ([2.0, 9.0], [5.0, 9.0])


def test_runs_that_are_invalid_or_crashed_do_not_count(tmp_path: Path) -> None:
    (only,) = series(
        tmp_path,
        ("2026-03-01", "a", "passed", 5.0),
        ("2026-03-01", "a", "invalid", 50.0),
        ("2026-03-02", "a", "crashed", 50.0),
    )
    assert only.dates == ("2026-03-01",)
    assert list(only.nights.medians) == [5.0]


def test_series_refer_to_runs_by_their_row(tmp_path: Path) -> None:
    kept = history(
        tmp_path,
        ("2026-03-01", "a", "passed", 5.0),
        ("2026-03-01", "a", "passed", 4.0),
        ("2026-03-02", "a", "passed", 6.0),
    )
    runs = kept.runs()
    (only,) = series_of(runs, kept.metrics())
    names = [[runs["run"][int(row)].as_py() for row in only.rows_of(night)] for night in range(2)]
    assert names == [["run-1", "run-0"], ["run-2"]]  # by their values, within a night


def test_a_history_without_runs_has_no_series(tmp_path: Path) -> None:
    assert series(tmp_path) == []
    assert series(tmp_path, ("2026-03-01", "a", "crashed", 5.0)) == []
