"""Figure 3 of Scribe's draft of 2001, from the study of a tree's depth, compared with the draft's numbers."""

import math
from itertools import product
from operator import itemgetter
from statistics import fmean

from analysis.pages.charting.chart_model import Axis, ChartSeries, Reference
from analysis.pages.report.charts.sweep_charts import SweepChart, sweep_series
from analysis.pages.study.results import Measure, StudyContent, StudyResults
from analysis.systems.papers import PaperComparison, PaperValue, paper_value

DIGIT_VALUES = 16
"""The number of values of a four-bit digit."""
DRAFT_NODES = 100_000


def page(results: StudyResults) -> StudyContent:
    """Return the study's figure and numbers."""
    count, bound = results.record.parameters["nodes"], results.record.parameters["entries_max"]
    expected = math.log(count, DIGIT_VALUES)

    def last(column: str, c: int) -> Measure:
        return results.statistic("depths", column, itemgetter(-1), c=c)

    compared = results.compared
    beside = (
        compared(
            "Mean depth with c = 0, all subscribe",
            _paper("depth-base", count) or f"{expected:.2f}, log16 N",
            last("mean", 0),
        ),
        compared(
            "Mean depth with c = 0, over all numbers of subscribers",
            "the same",
            results.statistic("depths", "mean", fmean, c=0),
        ),
        compared(
            "Greatest depth with c = 0",
            _paper("depth-base-most", count) or f"{math.ceil(expected)}",
            last("most", 0),
        ),
        compared(
            f"Mean depth with c = {bound}, all subscribe",
            paper_value("scribe-2001", "depth-bounded"),
            last("mean", bound),
        ),
        PaperComparison(
            f"log_c N with c = {bound} and all {count:,} nodes", "", f"{math.log(count, bound):.2f}"
        ),
        PaperComparison(
            f"Least mean depth of any tree with {bound + 1} entries per node",
            "",
            f"{_least(count, bound + 1):.2f}",
            "each node has the maximum number of children",
        ),
        compared("Nodes with children, all subscribe, c = 0", "", last("inner", 0)),
        compared(f"Nodes with children, all subscribe, c = {bound}", "", last("inner", bound)),
        compared(f"Nodes with {bound} entries or more", "", last("full", bound)),
        compared("Nodes that hang higher than without a limit", "", last("lifted", bound)),
        compared(
            "Nodes with children that hang higher than without a limit", "", last("lifted_inner", bound)
        ),
        compared(
            f"Greatest depth with c = {bound}, all subscribe", "only in the figure", last("most", bound)
        ),
        compared(
            f"Most entries of a node with c = {bound}",
            paper_value("scribe-2001", "entries-bounded"),
            last("entries_most", bound),
        ),
    )
    return StudyContent((_figure_3(results, bound),), beside, ("A subscriber's depth is 0 at the root.",))


def _paper(name: str, count: int) -> PaperValue | None:
    """Return the draft's value if the study has as many nodes."""
    return paper_value("scribe-2001", name) if count == DRAFT_NODES else None


def _least(count: int, entries: int) -> float:
    """Return the mean depth of a full tree with `count` nodes, without the root."""
    left, depth, room, total = count - 1, 0, 1, 0
    while left:
        depth, room = depth + 1, room * entries
        total += depth * min(room, left)
        left -= min(room, left)
    return total / (count - 1)


def _figure_3(results: StudyResults, bound: int) -> SweepChart:
    seed, expected = results.seeds[0], math.log(results.record.parameters["nodes"], DIGIT_VALUES)
    series: list[ChartSeries] = []
    for number, (c, column) in enumerate(product((0, bound), ("mean", "most"))):
        x, y = (results.column(seed, "depths", name, c=c) for name in ("subscribers", column))
        series.append(sweep_series(f"c = {c}, {column}", number, x=x, y=y))
    return SweepChart(
        "figure-3",
        "Depth of the tree",
        Axis("subscribers", kind="logarithmic"),
        Axis("nodes between the root and a subscriber, including the subscriber"),
        tuple(series),
        of="figure 3",
        references=(Reference("draft, c = 0: log16 N", expected, expected),),
    )
