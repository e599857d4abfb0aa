"""Comparison of an overlay built by joins with the same one constructed directly, and the papers' numbers."""

import math
from collections.abc import Callable

import numpy as np

from analysis.pages.charting.chart_model import Axis
from analysis.pages.report.charts.sweep_charts import SweepChart, sweep_series
from analysis.pages.study.results import StudyResults, Values
from analysis.pages.study.study_page import PaperComparison, StudyContent

DIGIT_VALUES = 16
MADE = ("joins", "at once")
Measure = Callable[[int], float]


def page(results: StudyResults) -> StudyContent:
    """Return the study's charts and numbers."""
    if not results.seeds:
        return StudyContent((), ())
    count = results.record.parameters["nodes"]
    papers = {
        "hops": f"fewer than {math.ceil(math.log(count, DIGIT_VALUES))} on average",
        "distance": "1.59 to 2.2 times the direct one",
        "entries": "",
    }

    def rows(what: str, key: str, measure: Callable[[str], Measure]) -> tuple[PaperComparison, ...]:
        return tuple(
            PaperComparison(f"{what}, {_named(made)}", papers[key], results.shown(measure(made)))
            for made in MADE
        )

    beside = (
        *rows("Hops of a route", "hops", lambda made: _mean(results, "routes", "hops", made)),
        *rows("Distance of routes over the direct one", "distance", lambda made: _distance(results, made)),
        *rows(
            "Entries of a routing table", "entries", lambda made: _mean(results, "tables", "entries", made)
        ),
        *(
            PaperComparison(what, paper, results.shown(lambda seed, name=name: results.number(seed, name)))  # type: ignore[misc]
            for what, paper, name in (
                ("Messages per join", "O(log N)", "messages_a_join"),
                ("Leaf sets that differ from the neighbours on the ring", "0", "wrong_leaf_sets"),
                ("Routes that do not end at the closest node", "0", "missed_joins"),
            )
        ),
    )
    charts = (
        _chart(results, "routes", "hops", "Hops of a route"),
        _chart(results, "tables", "entries", "Entries"),
    )
    notes = ("Each node joins through the nearest present node; there are no failures.",)
    return StudyContent(charts, beside, notes)


def _named(made: str) -> str:
    return {"joins": "by joins", "at once": "constructed directly"}[made]


def _values(results: StudyResults, seed: int, table: str, column: str, made: str) -> Values:
    found: Values = results.column(seed, table, column)[results.column(seed, table, "made") == made]
    return found


def _mean(results: StudyResults, table: str, column: str, made: str) -> Measure:
    return lambda seed: float(_values(results, seed, table, column, made).mean())


def _distance(results: StudyResults, made: str) -> Measure:
    def ratio(seed: int) -> float:
        took = _values(results, seed, "routes", "took_us", made)
        return float(took.sum() / _values(results, seed, "routes", "direct_us", made).sum())

    return ratio


def _chart(results: StudyResults, table: str, column: str, title: str) -> SweepChart:
    series = []
    for number, made in enumerate(MADE):
        found, counts = np.unique(_values(results, results.seeds[0], table, column, made), return_counts=True)
        share = 100 * counts / counts.sum()
        series.append(
            sweep_series(_named(made), number, x=tuple(map(float, found.tolist())), y=tuple(share.tolist()))
        )
    return SweepChart(column, title, Axis(title.lower()), Axis("share of all, %", "%"), tuple(series))
