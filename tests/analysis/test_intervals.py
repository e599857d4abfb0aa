"""Intervals have their stated coverage."""

import numpy as np
import pytest
from scipy.stats import binomtest

from analysis.intervals import change_interval, median_interval, next_interval, rate_interval


@pytest.mark.parametrize("runs", [3, 5, 6, 9, 20])
def test_median_intervals_have_the_stated_coverage(runs: int) -> None:
    rng = np.random.default_rng(runs)
    held = said = 0.0
    for _ in range(2000):
        found = median_interval(rng.exponential(1.0, runs))
        held += found.low <= np.log(2) <= found.high
        said = found.level
    assert held / 2000 == pytest.approx(said, abs=0.02)


def test_few_runs_report_a_lower_level() -> None:
    three = median_interval(np.array([3.0, 1.0, 2.0]))
    assert (three.low, three.high, three.level) == (1.0, 3.0, 0.75)
    assert median_interval(np.arange(5.0)).level == pytest.approx(0.9375)
    assert median_interval(np.arange(6.0)).level >= 0.95
    assert median_interval(np.array([4.0])).level == 0.0
    with pytest.raises(ValueError, match="at least one value"):
        median_interval(np.array([]))


def test_change_intervals_contain_the_true_change() -> None:
    rng = np.random.default_rng(5)
    held = 0
    for number in range(200):
        before, after = rng.normal(100, 3, 60), rng.normal(110, 3, 8)
        low, high = change_interval(before, after, np.random.default_rng(number))
        held += low <= 10 <= high
    assert held >= 175  # of 190 wanted: a bootstrap of eight nights is a little too narrow


def test_one_night_takes_its_spread_from_the_others() -> None:
    rng = np.random.default_rng(5)
    low, high = change_interval(rng.normal(100, 3, 60), np.array([130.0]), np.random.default_rng(1))
    assert 20 < low < 28
    assert 32 < high < 40


@pytest.mark.parametrize(("failed", "runs"), [(0, 10), (1, 30), (15, 30), (30, 30)])
def test_a_rates_bounds_are_the_exact_ones(failed: int, runs: int) -> None:
    exact = binomtest(failed, runs).proportion_ci(0.95, method="exact")
    assert rate_interval(failed, runs) == pytest.approx((exact.low, exact.high))


@pytest.mark.parametrize("runs", [3, 5, 20])
def test_prediction_intervals_have_the_stated_coverage(runs: int) -> None:
    rng = np.random.default_rng(runs)
    within = 0
    for _ in range(2000):
        *before, one_more = np.exp(rng.normal(3, 0.2, runs + 1))
        low, high = next_interval(np.array(before), 0.9)
        within += low <= one_more <= high
    assert within / 2000 == pytest.approx(0.9, abs=0.02)


def test_constant_values_give_an_empty_interval_and_non_positive_ones_stay_unscaled() -> None:
    assert next_interval(np.array([40.0, 40.0, 40.0])) == pytest.approx((40.0, 40.0))
    low, high = next_interval(np.array([-1.0, 0.0, 1.0]))
    assert low == pytest.approx(-high)
    assert next_interval(np.zeros(5)) == (0.0, 0.0)
    assert next_interval(np.array([1e-9, 1.0, 1e9]), 0.9999) == (0.0, np.inf)
    with pytest.raises(ValueError, match="at least two values"):
        next_interval(np.array([1.0]))
