"""A finding names the nights, commits and runs around the range of its change."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from analysis.history.regressions.change_points import Shift
from analysis.history.regressions.explanations import RUNS_SHOWN, finding_from_departure, finding_from_shift
from analysis.history.regressions.series import MetricSeries, Nights
from analysis.history.regressions.tonight import Departure

NIGHTS = 40
SHIFT = Shift(start=0, at=20, end=NIGHTS, earliest=18, latest=22, p=1e-9)


def a_series(before: float = 100.0, after: float = 120.0, better: str = "lower") -> MetricSeries:
    """Two runs each night; the level changes on night 20."""
    level = np.where(np.arange(NIGHTS) < 20, before, after)
    nights = Nights(level, level, level, np.full(NIGHTS, 2))
    dates = tuple(f"2026-{1 + day // 28:02}-{1 + day % 28:02}" for day in range(NIGHTS))
    first = np.arange(NIGHTS + 1) * 2
    rows = np.arange(2 * NIGHTS)
    return MetricSeries("quick", "cut", "latency.p95_ms", "ms", better, dates, nights, first, rows)


def a_table(**late: str) -> pa.Table:
    """Return the table of runs. late: columns that differ from night 21 on."""
    names = ("experiment", "settings", "place", "links", "machine", "kernel", "python", "cutset")
    columns = {
        name: [name if run < 42 else late.get(name, name) for run in range(2 * NIGHTS)] for name in names
    }
    commits = [f"c{run // 2}" for run in range(2 * NIGHTS)]
    return pa.table({**columns, "commit": commits, "run": [f"r{run}" for run in range(2 * NIGHTS)]})


def test_commits_enclose_the_range_and_nights_are_the_likeliest() -> None:
    series = a_series()
    found = finding_from_shift(series, SHIFT, a_table(), 0.999, new=True)
    assert (found.last_good_commit, found.first_bad_commit) == ("c17", "c22")
    assert (found.last_good_night, found.first_bad_night) == (series.dates[19], series.dates[20])
    assert (found.earliest_night, found.latest_night) == (series.dates[18], series.dates[22])


def test_runs_are_the_last_before_and_the_first_since() -> None:
    found = finding_from_shift(a_series(), SHIFT, a_table(), 0.999, new=True)
    assert found.runs_before == ("r38", "r39", "r36", "r37", "r34", "r35")
    assert found.runs_after == ("r40", "r41", "r42", "r43", "r44", "r45")
    assert len(found.runs_after) == RUNS_SHOWN


def test_other_changes_in_the_range_are_named() -> None:
    table = a_table(kernel="6.18", links="netem")
    found = finding_from_shift(a_series(), SHIFT, table, 0.999, new=True)
    assert found.also_changed == ("links links -> netem", "kernel kernel -> 6.18")
    early = replace(SHIFT, latest=20)  # night 20 still had the old ones
    assert finding_from_shift(a_series(), early, table, 0.999, new=True).also_changed == ()


@pytest.mark.parametrize(
    ("after", "better", "direction", "change"),
    [(120.0, "lower", "worse", 0.2), (80.0, "lower", "better", -0.2), (120.0, "higher", "better", 0.2),
     (80.0, "higher", "worse", -0.2)],
)  # fmt: skip
def test_the_direction_follows_from_the_metric(
    after: float, better: str, direction: str, change: float
) -> None:
    found = finding_from_shift(a_series(after=after, better=better), SHIFT, a_table(), 0.999, new=True)
    assert (found.direction, found.change) == (direction, pytest.approx(change))
    assert found.interval == pytest.approx((change, change))  # nights that never differ


def test_a_change_from_nothing_has_no_fraction() -> None:
    found = finding_from_shift(a_series(before=0.0, after=3.0), SHIFT, a_table(), 0.999, new=True)
    assert (found.before, found.after, found.change, found.interval) == (0.0, 3.0, None, None)


def test_a_departure_is_new_on_the_first_night_with_three_runs() -> None:
    last = NIGHTS - 1

    def is_new(since: int) -> bool:
        departed = Departure(since, 100.0, 120.0, 1.0, logarithmic=False, p=1e-9)
        return finding_from_departure(a_series(), departed, a_table(), 0.999).new

    assert [is_new(last), is_new(last - 1), is_new(last - 2)] == [True, True, False]
