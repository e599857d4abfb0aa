"""Names at the ends of lines keep their order, keep apart, and stay on the plot."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from analysis.pages.charting.figure import spread_labels

GAP = 0.05


def test_labels_far_apart_stay_where_their_lines_end() -> None:
    assert spread_labels([0.1, 0.5, 0.9], GAP) == [0.1, 0.5, 0.9]


def test_labels_of_lines_that_coincide_are_around_them() -> None:
    placed = spread_labels([0.5, 0.5], GAP)
    assert [round(height, 9) for height in placed] == [0.475, 0.525]


@given(st.lists(st.floats(0, 1), max_size=15))
def test_labels_keep_apart_in_order_and_on_the_plot(heights: list[float]) -> None:
    placed = spread_labels(sorted(heights), GAP)
    assert len(placed) == len(heights)
    assert all(upper - lower >= GAP - 1e-6 for lower, upper in pairwise(placed))
    assert all(-1e-9 <= height <= 1 + 1e-9 for height in placed)
