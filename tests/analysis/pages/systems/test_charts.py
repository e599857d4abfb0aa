"""The axis that all systems' charts share."""

import pytest

from analysis.pages.systems.charts import longer_bins, usual_rate


@pytest.mark.parametrize(
    ("rates", "usual"),
    [
        ([100.0] * 10, 100.0),
        ([100.0] * 3 + [0.0] * 30, 100.0),  # cut off for most of the run
        ([100.0] * 30 + [0.0] * 10 + [2_000.0] * 2, 100.0),  # what was held back comes at once
        ([0.0] * 5, 1.0),
        ([], 1.0),
    ],
)
def test_the_usual_rate_is_that_of_bins_in_which_anything_came(rates, usual):
    assert usual_rate(rates) == usual


def test_bins_of_a_slow_system_are_put_together():
    points = {0.125: 4.0, 0.375: 8.0, 0.625: 4.0, 0.875: 4.0, 1.125: 8.0}
    assert longer_bins(points, 1) == points
    assert longer_bins(points, 2) == {0.25: 6.0, 0.75: 4.0}
    assert longer_bins({}, 4) == {}
