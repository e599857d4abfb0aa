"""Compares every headline number of the runs, with its difference from the first run's."""

from collections.abc import Sequence
from dataclasses import dataclass

from analysis.history.metrics import Metric, headline
from analysis.pages.comparing.sides import ComparedRun
from analysis.pages.report.formatting import (
    EN_DASH,
    SMALL_CHANGE,
    STATUS_OF_CHANGE,
    change_of,
    change_text,
    direction_of,
    title_of,
    value_text,
)

SAME = "same"
AUDIENCE_METRICS = ("throughput.",)
"""Metrics that depend on how many events a client subscribes to.

If systems differ in that, less is not worse.
"""


@dataclass(frozen=True, slots=True)
class MetricValue:
    """A metric of one run. `change`: relative to the first run, as text. status: "good", "bad" or ""."""

    text: str
    value: float | None
    change: str = ""
    status: str = ""


@dataclass(frozen=True, slots=True)
class MetricComparison:
    """A metric of every run."""

    metric: str
    title: str
    values: tuple[MetricValue, ...]
    size: float  # largest difference, as a fraction; a first value of 0 counts as 1

    @property
    def nothing(self) -> bool:
        """Whether it is 0 in every run, such as no lost events."""
        return all(value.value == 0 for value in self.values)

    @property
    def section(self) -> str:
        """throughput, latency, recovery, events or fidelity."""
        return self.metric.partition(".")[0]


def compared(sides: Sequence[ComparedRun]) -> tuple[MetricComparison, ...]:
    """Return every headline number that any of the runs has, in the summary's order."""
    numbers = [headline(side.record.summary) for side in sides]
    found = [{metric.name: metric for metric in run_metrics} for run_metrics in numbers]
    names = list(dict.fromkeys(name for metrics in found for name in metrics))
    judged = [sides[0].record.valid and side.record.valid for side in sides]
    audiences = [side.record.plan.declared.contract.audience for side in sides]
    same_audience = [both and each == audiences[0] for both, each in zip(judged, audiences, strict=True)]
    return tuple(
        _compared(
            name,
            [metrics.get(name) for metrics in found],
            same_audience if name.startswith(AUDIENCE_METRICS) else judged,
        )
        for name in names
    )


def standing_out(rows: Sequence[MetricComparison], limit: int = 6) -> tuple[MetricComparison, ...]:
    """Return the metrics that are clearly better or worse in some run, the largest differences first."""
    clear = [row for row in rows if any(value.status for value in row.values)]
    return tuple(sorted(clear, key=lambda row: -row.size)[:limit])


def _compared(name: str, metrics: Sequence[Metric | None], judged: Sequence[bool]) -> MetricComparison:
    known = next(metric for metric in metrics if metric is not None)
    first = metrics[0].value if metrics[0] is not None else None
    values = [
        _measured(metric, known, first, judged=both) for metric, both in zip(metrics, judged, strict=True)
    ]
    sizes = [_size(first, metric.value) for metric in metrics[1:] if metric is not None and first is not None]
    return MetricComparison(
        name, title_of(name), (MetricValue(values[0].text, first), *values[1:]), max(sizes, default=0.0)
    )


def _measured(metric: Metric | None, known: Metric, first: float | None, *, judged: bool) -> MetricValue:
    if metric is None:
        return MetricValue(EN_DASH, None)
    text = value_text(metric.value, known.unit)
    if first is None:
        return MetricValue(text, metric.value)
    if metric.value == first:
        return MetricValue(text, metric.value, SAME)
    change = change_of(first, metric.value)
    clear = change is None or abs(change) >= SMALL_CHANGE
    direction = direction_of(metric.value - first, known.better) if clear and judged else ""
    sign = "+" if metric.value > first else "\u2212"
    difference = change_text(change) or sign + value_text(abs(metric.value - first), known.unit)
    return MetricValue(text, metric.value, difference, STATUS_OF_CHANGE.get(direction, ""))


def _size(first: float, value: float) -> float:
    change = change_of(first, value)
    return abs(change) if change is not None else float(value != first)
