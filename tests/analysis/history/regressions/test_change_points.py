"""Lasting changes of level are found at their beginning; noise, single nights and slow weeks are not
reported.
"""

import numpy as np
import pytest

from analysis.history.regressions.change_points import LEVEL_MIN, change_points, normal_scores
from tests.analysis.history.regressions.noise import KINDS, nights

AMONG_HUNDREDS = 0.05 / 800
THROUGHPUT, LATENCY, RECOVERY = KINDS


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_quiet_years_have_none(kind):  # type: ignore[no-untyped-def]
    found = [
        shift
        for seed in range(60)
        for shift in change_points(nights(kind, 365, np.random.default_rng([seed, 3])).medians)
        if shift.p <= AMONG_HUNDREDS
    ]
    assert found == []


def test_the_range_of_a_change_point_mostly_contains_it() -> None:
    held = found = 0
    for seed in range(40):
        rng = np.random.default_rng([seed, 5])
        series = nights(LATENCY, 230, rng, worse_from=200, fraction=0.06).medians
        for shift in change_points(series):
            found += 1
            held += shift.earliest <= 200 <= shift.latest
            assert shift.earliest <= shift.at <= shift.latest
    assert found >= 38
    assert held >= 0.92 * found


def test_a_change_and_its_reversal_are_two_change_points() -> None:
    series = nights(THROUGHPUT, 200, np.random.default_rng(1), worse_from=120, fraction=0.1).medians
    series[150:] /= 0.9
    assert [shift.at for shift in change_points(series)] == [120, 150]


def test_fewer_nights_than_the_shortest_piece_are_no_new_level() -> None:
    series = nights(THROUGHPUT, 200, np.random.default_rng(1)).medians
    series[100 : 100 + LEVEL_MIN - 2] *= 3
    assert change_points(series) == []


def test_slow_weeks_are_no_change() -> None:
    false = 0
    for seed in range(40):
        rng = np.random.default_rng([seed, 6])
        series = rng.standard_normal(300)
        for night in range(1, 300):
            series[night] += 0.5 * series[night - 1]
        false += any(shift.p <= AMONG_HUNDREDS for shift in change_points(100 + series))
    assert false <= 1


def test_constant_or_short_series_have_no_change_point() -> None:
    assert change_points(np.zeros(100)) == []
    assert change_points(np.arange(2.0 * LEVEL_MIN - 1)) == []
    assert change_points(np.array([])) == []


def test_scores_have_the_order_of_the_values_and_no_outliers() -> None:
    values = np.array([3.0, 1e9, 1.0, 2.0, 2.0])
    scores = normal_scores(values)
    assert list(np.argsort(scores, kind="stable")) == list(np.argsort(values, kind="stable"))
    assert scores[3] == scores[4]
    assert scores.std() == pytest.approx(1.0)
    assert np.abs(scores).max() < 2
