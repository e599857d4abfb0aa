"""Hops of Meghdoot's routes over the number of peers and of dimensions, beside the paper's O(d N^(1/d))."""

from collections.abc import Iterator

import numpy as np

from analysis.pages.charting.chart_model import Axis
from analysis.pages.report.charts.sweep_charts import SweepChart, sweep_series
from analysis.pages.study.results import Measure, StudyContent, StudyResults
from analysis.systems.papers import PaperComparison


def page(results: StudyResults) -> StudyContent:
    """Return the study's chart and numbers."""
    seed = results.seeds[0]
    sizes, dimensions = (
        np.unique(results.column(seed, "routes", name)).tolist() for name in ("peers", "dimensions")
    )
    series = tuple(
        sweep_series(f"d = {d}", number, x=sizes, y=[_hops(results, d, n)(seed) for n in sizes])
        for number, d in enumerate(dimensions)
    )
    chart = SweepChart(
        "hops", "Hops of a route", Axis("peers", kind="logarithmic"), Axis("hops, mean"), series
    )
    notes = (
        "A space of d dimensions is cut N^(1/d) times in each, and a route crosses a third of these cuts on"
        " average: d/3 N^(1/d). With N below 2^d not every dimension is cut, so a route has fewer hops.",
    )
    return StudyContent((chart,), tuple(_numbers(results, sizes, dimensions)), notes)


def _hops(results: StudyResults, dimensions: int, peers: int) -> Measure:
    return results.statistic("routes", "hops", np.mean, dimensions=dimensions, peers=peers)


def _numbers(results: StudyResults, sizes: list[int], dimensions: list[int]) -> Iterator[PaperComparison]:
    for d in dimensions:
        for n in sizes:
            bound = f"O(d N^(1/d)), {d} N^(1/{d}) = {d * n ** (1 / d):.1f}"
            yield results.compared(f"Hops of a route, d = {d}, {n:,} peers", bound, _hops(results, d, n))
