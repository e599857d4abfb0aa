"""Comparison of an overlay built by joins with the same one constructed directly, and the papers' numbers."""

import math
from collections.abc import Callable, Iterator

import numpy as np

from analysis.pages.charting.chart_model import Axis
from analysis.pages.report.charts.sweep_charts import SweepChart, sweep_series
from analysis.pages.study.results import Measure, StudyContent, StudyResults
from analysis.systems.papers import PaperComparison, PaperValue, paper_value
from analysis.systems.scribe.depth import DIGIT_VALUES

MADE = {"joins": "by joins", "at once": "constructed directly"}


def page(results: StudyResults) -> StudyContent:
    """Return the study's charts and numbers."""
    count = results.record.parameters["nodes"]
    hops = f"fewer than {math.ceil(math.log(count, DIGIT_VALUES))} on average"

    def both(
        what: str, paper: PaperValue | str | None, measure: Callable[[str], Measure]
    ) -> Iterator[PaperComparison]:
        return (results.compared(f"{what}, {name}", paper, measure(made)) for made, name in MADE.items())

    def mean(table: str, column: str) -> Callable[[str], Measure]:
        return lambda made: results.statistic(table, column, np.mean, made=made)

    def distance(made: str) -> Measure:
        took, direct = (
            results.statistic("routes", column, np.sum, made=made) for column in ("took_us", "direct_us")
        )
        return lambda seed: took(seed) / direct(seed)

    beside = (
        *both("Hops of a route", hops, mean("routes", "hops")),
        *both("Distance of routes over the direct one", paper_value("scribe-2002", "distance"), distance),
        *both("Entries of a routing table", "", mean("tables", "entries")),
        results.compared(
            "Messages per join",
            paper_value("scribe-2002", "join-messages"),
            results.single("messages_a_join"),
        ),
        *_growth(results),
        results.compared(
            "Leaf sets that differ from the neighbours on the ring", "0", results.single("wrong_leaf_sets")
        ),
        results.compared("Routes that do not end at the closest node", "0", results.single("missed_joins")),
    )
    charts = (
        _chart(results, "routes", "hops", "Hops of a route"),
        _chart(results, "tables", "entries", "Entries"),
    )
    notes = ("Each node joins through the nearest present node; there are no failures.",)
    return StudyContent(charts, beside, notes)


def _growth(results: StudyResults) -> Iterator[PaperComparison]:
    """Yield the messages per join while the overlay grew from one size to the next."""
    sizes = results.column(results.seeds[0], "growth", "nodes").tolist()

    def measure(at: int) -> Measure:
        def messages_a_join(seed: int) -> float:
            sent = results.column(seed, "growth", "messages")
            return float((sent[at] - sent[at - 1]) / (sizes[at] - sizes[at - 1]))

        return messages_a_join

    for at in range(1, len(sizes)):
        growth = f"from {sizes[at - 1]:,} to {sizes[at]:,} nodes"
        paper = paper_value("scribe-2002", "join-messages")
        yield results.compared(f"Messages per join, {growth}", paper, measure(at))


def _chart(results: StudyResults, table: str, column: str, title: str) -> SweepChart:
    series = []
    for number, (made, name) in enumerate(MADE.items()):
        values = results.column(results.seeds[0], table, column, made=made)
        found, counts = np.unique(values, return_counts=True)
        series.append(sweep_series(name, number, x=found, y=100 * counts / counts.sum()))
    return SweepChart(column, title, Axis(title.lower()), Axis("share of all, %", "%"), tuple(series))
