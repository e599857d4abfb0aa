"""The effect of a mass failure on Meghdoot's events, from its study. The paper does not cover failures."""

import numpy as np

from analysis.pages.charting.chart_model import Axis, ChartSeries
from analysis.pages.report.charts.sweep_charts import SweepChart, sweep_series
from analysis.pages.study.results import StudyResults, Values
from analysis.pages.study.study_page import PaperComparison, StudyContent

NOT_SAID = "not in the paper"


def page(results: StudyResults) -> StudyContent:
    """Return the study's chart and numbers."""
    if not results.seeds:
        return StudyContent((), ())
    variants = list(dict.fromkeys(results.column(results.seeds[0], "events", "variant").tolist()))
    beside = tuple(line for variant in variants for line in _comparisons(results, variant))
    notes = (
        "A delivery is missed if a surviving subscriber never receives an event that it was subscribed to at"
        " the time of the failure, and late if it took more than one second.",
        "Repaired: the publication time of the last event that a subscriber missed.",
    )
    return StudyContent((_missed(results, variants),), beside, notes)


def _values(results: StudyResults, seed: int, variant: str, column: str) -> Values:
    found: Values = results.column(seed, "events", column)[
        results.column(seed, "events", "variant") == variant
    ]
    return found


def _comparisons(results: StudyResults, variant: str) -> tuple[PaperComparison, ...]:
    def part(column: str, seed: int) -> float:
        after = _values(results, seed, variant, "at_s") >= 0
        wanted = _values(results, seed, variant, "wanted")[after].sum()
        return 100 * float(_values(results, seed, variant, column)[after].sum()) / max(1, int(wanted))

    def repaired(seed: int) -> float:
        at_s = _values(results, seed, variant, "at_s")[_values(results, seed, variant, "missed") > 0]
        return max(0.0, float(at_s.max())) if len(at_s) else 0.0

    return (
        PaperComparison(
            f"Deliveries missed after the failure, {variant}, %",
            NOT_SAID,
            results.shown(lambda seed: part("missed", seed)),
        ),
        PaperComparison(
            f"Deliveries late after the failure, {variant}, %",
            NOT_SAID,
            results.shown(lambda seed: part("late", seed)),
        ),
        PaperComparison(f"Repaired after, {variant}, s", NOT_SAID, results.shown(repaired)),
        PaperComparison(
            f"Messages, {variant}",
            NOT_SAID,
            results.shown(lambda seed: results.number(seed, f"sent {variant}"), 5),
        ),
    )


def _missed(results: StudyResults, variants: list[str]) -> SweepChart:
    """Return the chart of missed and late deliveries by publication time."""
    seed = results.seeds[0]
    series: list[ChartSeries] = []
    for variant in variants:
        at_s, wanted = _values(results, seed, variant, "at_s"), _values(results, seed, variant, "wanted")
        seconds, places = np.unique(np.floor(at_s), return_inverse=True)
        all_of = np.maximum(1, np.bincount(places, wanted))
        for column in ("missed", "late"):
            part = 100 * np.bincount(places, _values(results, seed, variant, column)) / all_of
            x, y = tuple(seconds.tolist()), tuple(part.tolist())
            series.append(sweep_series(f"{variant}: {column}", len(series), x=x, y=y))
    return SweepChart(
        "missed",
        "Deliveries missed, and late",
        Axis("publication time after the failure, s", from_zero=False),
        Axis("part of the deliveries, %"),
        tuple(series),
    )
