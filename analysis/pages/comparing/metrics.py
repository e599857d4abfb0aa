"""What came out otherwise: every headline number of the runs, and by how much it differs from the first's.

A number is called better or worse only where both runs can be relied on.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from analysis.history.metrics import Metric, headline
from analysis.pages.comparing.sides import Side
from analysis.pages.report.formatting import EN_DASH
from analysis.pages.report.metric_words import (
    SMALL_CHANGE,
    change_of,
    change_text,
    direction_of,
    title_of,
    value_text,
)

SAME = "same"
_STATUS = {"better": "good", "worse": "bad"}


@dataclass(frozen=True, slots=True)
class Measured:
    """A metric in one run. `change`: against the first run, as text. status: "good", "bad" or ""."""

    text: str
    value: float | None
    change: str = ""
    status: str = ""


@dataclass(frozen=True, slots=True)
class Compared:
    """A metric in every run."""

    metric: str
    title: str
    values: tuple[Measured, ...]
    size: float  # of the largest difference, as a fraction; what was nothing before counts as 1

    @property
    def nothing(self) -> bool:
        """Whether there was nothing of it in any run: no event lost, say."""
        return all(value.value == 0 for value in self.values)

    @property
    def section(self) -> str:
        """throughput, latency, recovery, events or fidelity."""
        return self.metric.partition(".")[0]


def compared(sides: Sequence[Side]) -> tuple[Compared, ...]:
    """Every headline number that any of the runs has, in the summary's order."""
    found = [{metric.name: metric for metric in headline(side.record.summary)} for side in sides]
    names = list(dict.fromkeys(name for metrics in found for name in metrics))
    judged = [sides[0].record.valid and side.record.valid for side in sides]
    return tuple(_compared(name, [metrics.get(name) for metrics in found], judged) for name in names)


def standing_out(rows: Sequence[Compared], limit: int = 6) -> tuple[Compared, ...]:
    """The metrics that are clearly better or worse in some run, the largest differences first."""
    clear = [row for row in rows if any(value.status for value in row.values)]
    return tuple(sorted(clear, key=lambda row: -row.size)[:limit])


def _compared(name: str, metrics: Sequence[Metric | None], judged: Sequence[bool]) -> Compared:
    known = next(metric for metric in metrics if metric is not None)
    first = metrics[0].value if metrics[0] is not None else None
    values = [
        _measured(metric, known, first, judged=both) for metric, both in zip(metrics, judged, strict=True)
    ]
    sizes = [_size(first, metric.value) for metric in metrics[1:] if metric is not None and first is not None]
    return Compared(
        name, title_of(name), (Measured(values[0].text, first), *values[1:]), max(sizes, default=0.0)
    )


def _measured(metric: Metric | None, known: Metric, first: float | None, *, judged: bool) -> Measured:
    if metric is None:
        return Measured(EN_DASH, None)
    text = value_text(metric.value, known.unit)
    if first is None:
        return Measured(text, metric.value)
    if metric.value == first:
        return Measured(text, metric.value, SAME)
    change = change_of(first, metric.value)
    clear = change is None or abs(change) >= SMALL_CHANGE
    direction = direction_of(metric.value - first, known.better) if clear and judged else ""
    sign = "+" if metric.value > first else "\u2212"
    difference = change_text(change) or sign + value_text(abs(metric.value - first), known.unit)
    return Measured(text, metric.value, difference, _STATUS.get(direction, ""))


def _size(first: float, value: float) -> float:
    change = change_of(first, value)
    return abs(change) if change is not None else float(value != first)
