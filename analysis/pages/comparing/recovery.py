"""Recovery side by side: for each fault its times as bars over one axis, a bar for each run."""

from collections.abc import Sequence
from dataclasses import dataclass

from analysis.pages.comparing.sides import Side
from analysis.pages.report.bands import fault_label
from analysis.pages.report.formatting import seconds
from analysis.pages.report.recovery import TIMES


@dataclass(frozen=True, slots=True)
class Bar:
    """One run's time. share: of the longest one of its fault, 0 to 1; None: not measured."""

    side: Side
    text: str
    share: float | None


@dataclass(frozen=True, slots=True)
class Phase:
    """One of recovery's times in every run."""

    title: str
    meaning: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class FaultRecovery:
    """One fault's recovery in every run."""

    label: str
    phases: tuple[Phase, ...]


def recoveries(sides: Sequence[Side]) -> tuple[FaultRecovery, ...]:
    """One for each fault that any of the runs recovered from, in the order of the faults."""
    labels: dict[str, set[str]] = {}
    for side in sides:
        for fault in side.record.summary.get("faults") or ():
            if fault["name"] in (side.record.summary.get("recovery") or {}):
                labels.setdefault(fault["name"], set()).add(fault_label(fault["kind"], fault["target"]))
    # A fault that is not the same in all runs goes by its name.
    return tuple(
        _recovery(sides, name, found.pop() if len(found) == 1 else name) for name, found in labels.items()
    )


def _recovery(sides: Sequence[Side], name: str, label: str) -> FaultRecovery:
    found = [(side.record.summary.get("recovery") or {}).get(name) or {} for side in sides]
    known = [figures[key] for figures in found for key, _, _ in TIMES if figures.get(key) is not None]
    longest = max(known, default=0.0) or 1.0
    phases = (
        Phase(
            title,
            meaning,
            tuple(
                Bar(side, seconds(value := figures.get(key)), None if value is None else value / longest)
                for side, figures in zip(sides, found, strict=True)
            ),
        )
        for key, title, meaning in TIMES
        if any(figures.get(key) is not None for figures in found)
    )
    return FaultRecovery(label, tuple(phases))
