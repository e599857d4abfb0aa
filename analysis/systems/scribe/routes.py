"""Hops, distance and convergence of Pastry's routes over the number of nodes, with the papers' numbers."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from analysis.pages.charting.chart_model import Axis
from analysis.pages.report.charts.sweep_charts import SweepChart, sweep_series
from analysis.pages.study.results import Measure, StudyContent, StudyResults
from analysis.systems.papers import PaperComparison, paper_value

PAPERS = {"plane": "scribe-2001", "transit-stub": "scribe-2002"}
"""The paper that gives the distance of routes in each network."""
BINS = 10
"""Groups of pairs of routes in the chart, by the distance of their sources."""


def page(results: StudyResults) -> StudyContent:
    """Return the study's charts and numbers."""
    sizes = np.unique(results.column(results.seeds[0], "routes", "nodes")).tolist()
    charts = (
        _over_sizes(results, sizes, "hops", "Hops of a route"),
        _over_sizes(results, sizes, "distance", "Distance of routes relative to the direct one"),
        _convergence(results, sizes[-1]),
    )
    notes = (
        "Overlays are constructed directly: each entry of a table is the nearest suitable node.",
        "Convergence: the mean distance that two routes to one key travel until they meet, relative to the"
        " distance between their sources.",
    )
    return StudyContent(charts, tuple(_numbers(results, sizes)), notes)


def _measure(results: StudyResults, network: str, nodes: int, what: str) -> Measure:
    """Return the measure of hops, or of the ratio of two distances, in one overlay."""
    where = {"network": network, "nodes": nodes}
    if what == "hops":
        return results.statistic("routes", "hops", np.mean, **where)
    columns = ("took_us", "direct_us") if what == "distance" else ("until_us", "apart_us")
    over, under = (results.statistic("routes", column, np.sum, **where) for column in columns)
    return lambda seed: over(seed) / under(seed)


def _numbers(results: StudyResults, sizes: list[int]) -> Iterator[PaperComparison]:
    for network, paper in PAPERS.items():
        for nodes in sizes:
            measure = partial(_measure, results, network, nodes)
            overlay = f"{network}, {nodes:,} nodes"
            hops = paper_value("scribe-2002", "hops")
            yield results.compared(f"Hops of a route, {overlay}", hops, measure("hops"))
            distance = paper_value(paper, "distance")
            yield results.compared(f"Relative distance, {overlay}", distance, measure("distance"))
            yield results.compared(
                f"Convergence, {overlay}", paper_value("scribe-2002", "convergence"), measure("convergence")
            )


def _over_sizes(results: StudyResults, sizes: list[int], what: str, title: str) -> SweepChart:
    seed = results.seeds[0]
    series = tuple(
        sweep_series(network, number, x=sizes, y=[_measure(results, network, n, what)(seed) for n in sizes])
        for number, network in enumerate(PAPERS)
    )
    return SweepChart(what, title, Axis("nodes", kind="logarithmic"), Axis(title.lower()), series)


def _convergence(results: StudyResults, nodes: int) -> SweepChart:
    series = []
    for number, network in enumerate(PAPERS):
        apart, until = (
            results.column(results.seeds[0], "routes", column, network=network, nodes=nodes) / 1e3
            for column in ("apart_us", "until_us")
        )
        order = np.array_split(np.argsort(apart), BINS)
        means = [(apart[part].mean(), until[part].mean()) for part in order if len(part)]
        series.append(sweep_series(network, number, x=[x for x, _ in means], y=[y for _, y in means]))
    return SweepChart(
        "convergence",
        f"Convergence of two routes to one key, {nodes:,} nodes",
        Axis("distance between the sources, ms"),
        Axis("distance until the routes meet, ms"),
        tuple(series),
    )
