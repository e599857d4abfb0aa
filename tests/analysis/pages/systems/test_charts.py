"""The axis that all systems' charts share."""

import pytest

from analysis.pages.systems.charts import usual_rate


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
