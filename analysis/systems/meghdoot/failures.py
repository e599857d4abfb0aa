"""The effect of a mass failure on Meghdoot's events, from its study. The paper does not cover failures."""

import numpy as np

from analysis.pages.charting.chart_model import Axis, ChartSeries
from analysis.pages.report.charts.sweep_charts import SweepChart, sweep_series
from analysis.pages.study.results import Measure, StudyContent, StudyResults, Values
from analysis.systems.papers import PaperComparison

NOT_SAID = "not in the paper"


def page(results: StudyResults) -> StudyContent:
    """Return the study's chart and numbers."""
    variants = list(dict.fromkeys(results.column(results.seeds[0], "events", "variant").tolist()))
    beside = tuple(line for variant in variants for line in _comparisons(results, variant))
    notes = (
        "A delivery is missed if a surviving subscriber never receives an event that it was subscribed to at"
        " the time of the failure, and late if it took more than one second.",
        "Repaired: the publication time of the last event that a subscriber missed.",
        "A subscription is lost if the failure left no peer with it or its mirror image, as the zones of both"
        " failed together. It is known again when its subscriber repeats it, if it does.",
    )
    return StudyContent((_missed(results, variants),), beside, notes)


def _comparisons(results: StudyResults, variant: str) -> tuple[PaperComparison, ...]:
    def part(column: str) -> Measure:
        def of_wanted(seed: int) -> float:
            at_s, wanted, found = _events(results, seed, variant, "at_s", "wanted", column)
            return 100 * float(found[at_s >= 0].sum()) / max(1, int(wanted[at_s >= 0].sum()))

        return of_wanted

    def although_known(seed: int) -> float:
        at_s, wanted, missed, lost = _events(
            results, seed, variant, "at_s", "wanted", "missed", "missed_lost"
        )
        after = at_s >= 0
        return 100 * float((missed - lost)[after].sum()) / max(1, int(wanted[after].sum()))

    def repaired(seed: int) -> float:
        at_s, missed = _events(results, seed, variant, "at_s", "missed")
        return float(at_s[missed > 0].max(initial=0.0))

    compared = results.compared
    return (
        compared(f"Subscriptions lost, {variant}", NOT_SAID, results.single(f"lost {variant}")),
        compared(f"Deliveries missed after the failure, {variant}, %", NOT_SAID, part("missed")),
        compared(f"Missed although the subscription was not lost, {variant}, %", NOT_SAID, although_known),
        compared(f"Deliveries late after the failure, {variant}, %", NOT_SAID, part("late")),
        compared(f"Repaired after, {variant}, s", NOT_SAID, repaired),
        compared(f"Messages, {variant}", NOT_SAID, results.single(f"sent {variant}"), digits=5),
    )


def _events(results: StudyResults, seed: int, variant: str, *columns: str) -> list[Values]:
    return [results.column(seed, "events", column, variant=variant) for column in columns]


def _missed(results: StudyResults, variants: list[str]) -> SweepChart:
    """Return the chart of missed and late deliveries by publication time."""
    seed = results.seeds[0]
    series: list[ChartSeries] = []
    for variant in variants:
        at_s, wanted, missed, late = _events(results, seed, variant, "at_s", "wanted", "missed", "late")
        seconds, places = np.unique(np.floor(at_s), return_inverse=True)
        all_of = np.maximum(1, np.bincount(places, wanted))
        for name, counts in (("missed", missed), ("late", late)):
            part = 100 * np.bincount(places, counts) / all_of
            series.append(sweep_series(f"{variant}: {name}", len(series), x=seconds, y=part))
    return SweepChart(
        "missed",
        "Deliveries missed, and late",
        Axis("publication time after the failure, s", from_zero=False),
        Axis("part of the deliveries, %"),
        tuple(series),
    )
