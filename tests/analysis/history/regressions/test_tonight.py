"""A deviating night is found at once if its runs agree; a single deviating run is not."""

import numpy as np
import pytest

from analysis.history.regressions.series import Nights
from analysis.history.regressions.tonight import departure, first_nonzero_count
from tests.analysis.history.regressions.noise import KINDS, nights, until

AMONG_HUNDREDS = 0.05 / 800
THROUGHPUT, LATENCY, RECOVERY = KINDS


def is_found(series: Nights, level_from: int = 0, resolution: float = 0.01) -> bool:
    departed = departure(series, level_from, resolution)
    return departed is not None and departed.p <= AMONG_HUNDREDS


def of_counts(*counts: tuple[float, ...]) -> Nights:
    """Return nights with these counts, one list per night's runs."""
    arrays = [np.array(each, float) for each in counts]
    return Nights(
        *(np.array([how(each) for each in arrays]) for how in (np.median, np.min, np.max)),
        np.array([each.size for each in arrays]),
    )


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("repeat", [1, 3])
def test_quiet_nights_are_like_the_others(kind, repeat):  # type: ignore[no-untyped-def]
    false = 0
    for seed in range(15):
        series = nights(kind, 165, np.random.default_rng([seed, 7]), repeat=repeat)
        false += sum(is_found(until(night, series)) for night in range(65, 166))
    assert false <= 1


@pytest.mark.parametrize(("kind", "fraction"), [(THROUGHPUT, 0.1), (THROUGHPUT, 0.3), (LATENCY, 0.3)])
def test_a_large_change_is_found_on_its_first_night(kind, fraction):  # type: ignore[no-untyped-def]
    found = 0
    for seed in range(20):
        rng = np.random.default_rng([seed, 8])
        found += is_found(nights(kind, 101, rng, worse_from=100, fraction=fraction))
    assert found >= 18


def test_single_runs_must_agree_on_three_consecutive_nights() -> None:
    series = nights(THROUGHPUT, 103, np.random.default_rng(1), repeat=1, worse_from=100, fraction=0.3)
    assert [is_found(until(night, series)) for night in (101, 102, 103)] == [False, False, True]
    departed = departure(series, 0, 0.01)
    assert departed is not None
    assert departed.since == 100
    assert departed.after / departed.before == pytest.approx(0.7, abs=0.03)


def test_one_usual_run_of_three_makes_the_night_usual() -> None:
    series = nights(LATENCY, 101, np.random.default_rng(1))
    off = Nights(series.medians.copy(), series.lowest, series.highest, series.runs)
    off.medians[100] *= 2
    assert not is_found(off)


def test_a_past_outlier_hides_no_departure() -> None:
    series = nights(THROUGHPUT, 101, np.random.default_rng(1), worse_from=100, fraction=0.3)
    for values in (series.medians, series.lowest, series.highest):
        values[50] *= 0.3
    assert is_found(series)


def test_a_night_is_compared_with_the_level_since_the_last_change() -> None:
    series = nights(THROUGHPUT, 121, np.random.default_rng(1), worse_from=100, fraction=0.1)
    assert is_found(until(101, series))
    assert not is_found(series, level_from=100)


def constant(*values: float) -> Nights:
    """Return nights of three runs each with this value."""
    return of_counts(*((value,) * 3 for value in values))


@pytest.mark.parametrize("tonight", [0.7, 1.3])
def test_a_constant_figure_is_flagged_on_its_first_deviation(tonight: float) -> None:
    assert is_found(constant(*[1.0] * 100, tonight))


def test_differences_below_the_resolution_of_a_constant_figure_are_ignored() -> None:
    assert not is_found(constant(*[1.0] * 100, 1.03), resolution=0.02)


def test_a_nearly_constant_figure_may_deviate_as_far_as_before() -> None:
    assert not is_found(constant(*[1.0] * 50, 1.28, *[1.0] * 50, 1.3))
    assert is_found(constant(*[1.0] * 50, 1.02, *[1.0] * 50, 1.3))


def test_few_nights_are_inconclusive() -> None:
    assert (
        departure(nights(LATENCY, 10, np.random.default_rng(1), worse_from=9, fraction=0.9), 0, 0.01) is None
    )


def test_one_lost_event_is_found_when_there_never_was_one() -> None:
    departed = first_nonzero_count(of_counts(*[(0, 0, 0)] * 30, (0, 1, 0)))
    assert departed is not None
    assert (departed.before, departed.after, departed.p, departed.since) == (0.0, 1.0, 0.0, 30)


def test_losses_are_found_again_until_they_end() -> None:
    departed = first_nonzero_count(of_counts(*[(0, 0, 0)] * 30, (0, 1, 0), (2, 0, 0)))
    assert departed is not None
    assert departed.since == 30
    assert first_nonzero_count(of_counts(*[(0, 0, 0)] * 30, (0, 1, 0), (0, 0, 0))) is None


def test_recurring_losses_are_not_new() -> None:
    assert first_nonzero_count(of_counts(*[(0, 0, 0)] * 20, (0, 3, 0), *[(0, 0, 0)] * 5, (0, 1, 0))) is None
