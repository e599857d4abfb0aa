"""The headline numbers of a run: the figures of summary.json that are followed from night to night.

Each has a unit, which is the end of its name, and a better direction. The direction is empty for neutral
numbers, such as the number of published events. A figure that was not measured is left out and is never 0.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from experiments.records.summary import METRICS, RECOVERY, Better

_SECTIONS: Final[dict[str, dict[str, Better]]] = {
    section: {name: figure.better for name, figure in figures.items() if figure.followed}
    for section, figures in METRICS.items()
}
_RECOVERY: Final[dict[str, Better]] = {name: figure.better for name, figure in RECOVERY.items()}
_UNITS: Final = {
    "cpu_max": "",  # a fraction
    "affected_pairs": "pairs",
    "asked": "subscriptions",
    "unconfirmed": "subscriptions",
    "stalled": "pairs",
    "late_switches": "switches",
    "unordered_publishers": "events",
    "messages": "messages",
    "stress_max": "messages",
    "bytes": "B",
}
_ENDINGS: Final = {"events_per_s": "events/s", "bytes_per_s": "B/s", "_ms": "ms", "_s": "s"}
_COUNTED: Final = "events"
_PLAIN_COUNTS: Final = ("copies_mean", "copies_max")
MEASURES: Final = "measures"
"""Section of figures that the system measured itself, under its own names."""
PLAIN: Final = "number"
"""Unit of a number that has no unit and is not a fraction."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One number of a run. name: its path in summary.json, as `recovery.cut.switch_s`."""

    name: str
    value: float
    unit: str
    better: Better


def headline(summary: Mapping[str, Any]) -> list[Metric]:
    """Return the measured headline numbers of a summary.json, in a fixed order.

    These are throughput, latency, recovery from each fault, event outcomes, and machine load.
    """
    found = [
        metric for name, known in _SECTIONS.items() for metric in _metrics(name, summary.get(name), known)
    ]
    recovery = summary.get("recovery")
    for fault, figures in recovery.items() if isinstance(recovery, Mapping) else ():
        found += _metrics(f"recovery.{fault}", figures, _RECOVERY)
    for name, values in _below(summary.get(MEASURES)):
        for value, figures in _below(values):
            neither: dict[str, Better] = dict.fromkeys(figures, "")
            found += _metrics(f"{MEASURES}.{name}.{value}", figures, neither)
    return found


def unit_of(name: str) -> str:
    """Return the unit of a metric by its name, as "ms"; counts are events by default."""
    path, _, last = name.rpartition(".")
    if path.startswith(f"{MEASURES}."):
        value = "" if last == "count" else path
        return next((unit for ending, unit in _ENDINGS.items() if value.endswith(ending)), PLAIN)
    if last in _PLAIN_COUNTS:
        return PLAIN
    if last in _UNITS:
        return _UNITS[last]
    return next((unit for ending, unit in _ENDINGS.items() if last.endswith(ending)), _COUNTED)


def _below(found: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the name and content of each mapping in a part of a summary."""
    for name, value in found.items() if isinstance(found, Mapping) else ():
        if isinstance(value, Mapping):
            yield name, value


def _metrics(path: str, figures: Any, known: Mapping[str, Better]) -> Iterator[Metric]:
    if not isinstance(figures, Mapping):
        return
    for name, better in known.items():
        value = figures.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            yield Metric(f"{path}.{name}", float(value), unit_of(f"{path}.{name}"), better)
