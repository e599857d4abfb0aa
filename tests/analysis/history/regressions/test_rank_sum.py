"""The rank sum test is exact, conservative with ties, and corrected for correlated nights."""

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from analysis.history.regressions.change_points import deflated, neighbours_correlation, rank_sum_p


def counted_out(one: list[float], other: list[float]) -> float:
    """Return the p-value by enumerating all assignments of the numbers to the first group."""

    def pairs(chosen: tuple[float, ...], rest: list[float]) -> int:
        won = sum(a > b for a in chosen for b in rest)
        return max(won, len(chosen) * len(rest) - won)

    everything = one + other
    ways = [
        pairs(chosen, [value for value in everything if value not in chosen])
        for chosen in combinations(everything, len(one))
    ]
    found = pairs(tuple(one), other)
    return sum(each >= found for each in ways) / len(ways)


def test_small_groups_match_an_exhaustive_count() -> None:
    one, other = [5.0, 9.0, 10.0, 11.0], [1.0, 2.0, 3.0, 4.0, 6.0, 7.0, 8.0]
    assert rank_sum_p(np.array(one), np.array(other)) == pytest.approx(counted_out(one, other))


@pytest.mark.parametrize(("few", "many"), [(5, 60), (12, 90), (20, 30)])
def test_the_rank_sum_test_agrees_with_scipy(few: int, many: int) -> None:
    rng = np.random.default_rng(few)
    one, other = rng.normal(1.5, 1, few), rng.normal(0, 1, many)
    expected = mannwhitneyu(one, other, method="exact").pvalue
    assert rank_sum_p(one, other) == pytest.approx(expected, rel=1e-6)


def test_five_of_sixty_nights_are_significant_and_four_are_not() -> None:
    among_hundreds = 0.05 / 800 / 65
    before = np.arange(60.0)
    assert rank_sum_p(100 + np.arange(5.0), before) < among_hundreds
    assert rank_sum_p(100 + np.arange(4.0), before) > among_hundreds


def test_ties_never_increase_significance() -> None:
    before, after = np.repeat([7.0, 7.5], [50, 10]), np.array([7.5, 7.5, 7.5, 7.5, 7.0, 7.5])
    rng = np.random.default_rng(1)
    for _ in range(50):
        jitter = rank_sum_p(after + rng.uniform(0, 0.1, 6), before + rng.uniform(0, 0.1, 60))
        assert rank_sum_p(after, before) >= jitter or jitter > 0.01
    assert rank_sum_p(np.full(6, 7.0), np.full(60, 7.0)) == 1.0


def test_no_values_give_no_result() -> None:
    assert rank_sum_p(np.array([]), np.array([1.0])) == 1.0


def test_correlated_neighbours_reduce_significance() -> None:
    assert deflated(1e-6, 0.0) == 1e-6
    assert 1e-6 < deflated(1e-6, 0.3) < deflated(1e-6, 0.6) < 1.0


def test_the_correlation_of_neighbours_uses_ranks() -> None:
    rng = np.random.default_rng(3)
    alone = rng.standard_normal(400)
    alike = alone.copy()
    for night in range(1, 400):
        alike[night] += 0.6 * alike[night - 1]
    assert neighbours_correlation(alone) < 0.1
    assert 0.45 < neighbours_correlation(alike) < 0.7
    alone[200:202] = 1e9
    assert neighbours_correlation(alone) < 0.1
    assert neighbours_correlation(np.repeat([7.0, 7.2], [399, 1])) == 0.0  # steps have no order of their own
