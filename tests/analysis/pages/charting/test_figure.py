"""Names at the ends of lines keep their order, do not overlap, and stay on the plot."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from analysis.pages.charting.chart_model import Axis, Chart, ChartSeries, ChartSpan
from analysis.pages.charting.figure import draw, spread_labels

GAP = 0.05


def test_labels_of_coinciding_lines_are_spread_around_them() -> None:
    placed = spread_labels([0.5, 0.5], GAP)
    assert [round(height, 9) for height in placed] == [0.475, 0.525]


@given(st.lists(st.floats(0, 1), max_size=15))
def test_labels_do_not_overlap_and_keep_their_order(heights: list[float]) -> None:
    placed = spread_labels(sorted(heights), GAP)
    assert len(placed) == len(heights)
    assert all(upper - lower >= GAP - 1e-6 for lower, upper in pairwise(placed))
    assert all(-1e-9 <= height <= 1 + 1e-9 for height in placed)


def shades_of(*stretches: tuple[float, float | None]) -> dict[tuple[float, float], float]:
    """Return the shaded spans of a chart and their darkness."""
    axes = Figure().add_subplot()
    spans = tuple(ChartSpan(f"f{number}", start, end) for number, (start, end) in enumerate(stretches))
    line = ChartSeries("", "black", (0.0, 10.0), (0.0, 1.0))
    draw(axes, Chart("", "", Axis("", low=0.0, high=10.0), Axis(""), (line,), spans))
    found = {}
    for patch in axes.patches:
        box = patch.get_extents().transformed(axes.transData.inverted())
        found[round(box.x0, 6), round(box.x1, 6)] = round(patch.get_alpha(), 4)
    return found


def test_spans_without_overlap_have_one_shade() -> None:
    assert shades_of((1, 2), (3, 4)) == {(1, 2): 0.12, (3, 4): 0.12}


def test_overlapping_spans_are_darker() -> None:
    assert shades_of((1, 5), (3, None)) == {(1, 3): 0.12, (3, 5): 0.2256, (5, 10): 0.12}


def test_more_than_two_overlapping_spans_are_no_darker() -> None:
    shades = shades_of(*((start, None) for start in range(1, 7)))
    assert max(shades.values()) == 0.2256
    assert (min(begin for begin, _ in shades), max(end for _, end in shades)) == (1, 10)
