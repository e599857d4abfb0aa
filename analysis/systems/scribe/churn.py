"""Event delivery during churn or cuts of transit links, from Scribe's study. Not in the papers."""

from collections.abc import Sequence
from operator import itemgetter
from statistics import median
from typing import Any

from analysis.pages.charting.chart_model import Axis
from analysis.pages.report.charts.sweep_charts import SweepChart, sweep_series
from analysis.pages.report.formatting import number
from analysis.pages.study.results import StudyContent, StudyResults
from analysis.systems.papers import PaperComparison

VARIANTS = ("exactly-once", "best-effort")
NOT_THERE = "not in the papers"
Row = dict[str, Any]


def page(results: StudyResults) -> StudyContent:
    """Return the study's charts and numbers."""
    rows: list[Row] = [row for seed in results.seeds for row in results.rows(seed, "scenarios").to_pylist()]
    beside: list[PaperComparison] = []
    for minutes in sorted({row["session_min"] for row in rows}, key=lambda each: (each == 0, each)):
        for variant in VARIANTS:
            case = f"sessions of {minutes} min" if minutes else "a cut of 60 s"
            beside += _of_case(case, variant, _rows_of(rows, minutes, variant))
    charts = (
        _chart(rows, "lost", "Missed events", "part of the due events, %", _lost),
        _chart(
            rows,
            "repair",
            "Time until an orphan has a new parent",
            "95th percentile, s",
            itemgetter("repair_p95_s"),
        ),
        _chart(
            rows,
            "maintenance",
            "Messages for maintenance",
            "messages/s per node",
            itemgetter("maintenance_per_s"),
        ),
    )
    notes = (
        "An event is due at a member that subscribed before it and stayed for one minute after it.",
        "Nodes fail without notice; a new node immediately replaces each and follows its topics.",
        "The cut affects all links of one transit domain to others; routes do not change during it.",
    )
    return StudyContent(charts, tuple(beside), notes)


def _rows_of(rows: Sequence[Row], session_min: float, variant: str) -> list[Row]:
    return [row for row in rows if (row["session_min"], row["variant"]) == (session_min, variant)]


def _of_case(what: str, variant: str, rows: Sequence[Row]) -> list[PaperComparison]:
    if not rows:
        return []

    def line(name: str, value: str) -> PaperComparison:
        return PaperComparison(f"{what}, {variant}: {name}", NOT_THERE, value)

    middle = {name: median(row[name] for row in rows) for name in rows[0] if name != "variant"}
    return [
        line(
            "delivered part of the due events",
            f"{100 - median(map(_lost, rows)):.4g} % of {number(middle['due'])}",
        ),
        line("delay, median and p99", f"{middle['delay_median_s']:.2g} s, {middle['delay_p99_s']:.3g} s"),
        line(
            "time until an orphan has a new parent, median and p95",
            f"{middle['repair_median_s']:.3g} s, {middle['repair_p95_s']:.3g} s of {middle['repairs']:g}",
        ),
        line("messages for maintenance, per second and node", f"{middle['maintenance_per_s']:.3g}"),
    ]


def _lost(row: Row) -> float:
    return 100.0 * float(row["due"] - row["came"]) / float(max(1, row["due"]))


def _chart(rows: Sequence[Row], key: str, title: str, axis: str, measure: Any) -> SweepChart:
    series = []
    sessions = sorted({row["session_min"] for row in rows if row["session_min"]})
    for place, variant in enumerate(VARIANTS):
        medians = [median(map(measure, _rows_of(rows, minutes, variant))) for minutes in sessions]
        series.append(sweep_series(variant, place, x=sessions, y=medians))
    return SweepChart(key, title, Axis("mean session, min", "min"), Axis(axis), tuple(series))
