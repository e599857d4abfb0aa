"""Figure 3 of Scribe's draft of 2001, from the study of a tree's depth, beside what the draft says of it."""

import math
from statistics import fmean

import numpy as np

from analysis.pages.charting.chart_model import Axis, Reference, Series
from analysis.pages.report.charts.sweep_charts import SweepChart, sweep_series
from analysis.pages.study.results import Results, Values
from analysis.pages.study.study_page import Beside, Content

DIGIT_VALUES = 16
"""Of a digit of four bits."""


def page(results: Results) -> Content:
    """What the study came to."""
    if not results.seeds:
        return Content((), ())
    count, bound = results.record.parameters["nodes"], results.record.parameters["entries_max"]
    expected = math.log(count, DIGIT_VALUES)

    def last(column: str, c: int) -> str:
        return results.shown(lambda seed: _of(results, seed, column, c)[-1])

    beside = (
        Beside(
            "Mean depth with c = 0, all subscribe",
            f"{expected:.2f}, log16 N",
            last("mean", 0),
            "the last hop is the leaf set's, which may bridge several digits",
        ),
        Beside(
            "Mean depth with c = 0, over all numbers of subscribers",
            "the same",
            results.shown(lambda seed: fmean(_of(results, seed, "mean", 0).tolist())),
        ),
        Beside("Most with c = 0", f"{math.ceil(expected)}", last("most", 0)),
        Beside(
            f"Mean depth with c = {bound}, all subscribe",
            f"log_c N = {math.log(count, bound):.2f}",
            last("mean", bound),
            "a join ends at the first node of its route that is in the tree, so that nodes hang higher than"
            " without a limit only if they came early, and then have no children",
        ),
        Beside(
            "The least that any tree with so many entries a node could have",
            "",
            f"{_least(count, bound + 1):.2f}",
            "each node with as many children as it may keep",
        ),
        Beside("Nodes with children, all subscribe, c = 0", "", last("inner", 0)),
        Beside(f"The same with c = {bound}", "", last("inner", bound)),
        Beside(f"Of these with {bound} entries or more", "", last("full", bound)),
        Beside("Nodes that hang higher than without a limit", "", last("lifted", bound)),
        Beside("Of these with children", "", last("lifted_inner", bound)),
        Beside(f"Most with c = {bound}, all subscribe", "in the figure alone", last("most", bound)),
        Beside(f"Entries of a node with c = {bound}, most", f"about {bound}", last("entries_most", bound)),
    )
    return Content((_figure_3(results, bound),), beside, ("A subscriber's depth is 0 at the root.",))


def _least(count: int, entries: int) -> float:
    """The mean depth of a full tree of so many nodes, the root not counted."""
    left, depth, room, total = count - 1, 0, 1, 0
    while left:
        depth, room = depth + 1, room * entries
        total += depth * min(room, left)
        left -= min(room, left)
    return total / (count - 1)


def _of(results: Results, seed: int, column: str, c: int) -> Values:
    found: Values = results.column(seed, "depths", column)[results.column(seed, "depths", "c") == c]
    return found


def _figure_3(results: Results, bound: int) -> SweepChart:
    seed, count = results.seeds[0], results.record.parameters["nodes"]
    series: list[Series] = []
    for number, (c, column, name) in enumerate(
        (c, column, name) for c in (0, bound) for column, name in (("mean", "mean"), ("most", "most"))
    ):
        x, y = _of(results, seed, "subscribers", c), _of(results, seed, column, c)
        series.append(
            sweep_series(f"c = {c}, {name}", number, x=tuple(x.tolist()), y=tuple(map(float, y.tolist())))
        )
    return SweepChart(
        "figure-3",
        "Depth of the tree",
        Axis("subscribers", kind="logarithmic"),
        Axis("nodes between the root and a subscriber, itself included"),
        tuple(series),
        of="figure 3",
        references=(
            Reference("draft, c = 0: log16 N", *np.repeat(math.log(count, DIGIT_VALUES), 2).tolist()),
        ),
    )
