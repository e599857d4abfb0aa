"""Verdicts of runs as signs, and over the nights as a strip."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from analysis.charting.drawing import day_text
from analysis.nights.reading import Entry, Row

STRIP_NIGHTS = 30
STATUS = {"passed": "good", "failed": "bad", "invalid": "bad", "crashed": "bad"}
SIGNS = {"passed": "✓", "failed": "✕", "invalid": "?", "crashed": "!"}
_WORST = ("passed", "invalid", "failed", "crashed")


@dataclass(frozen=True, slots=True)
class Cell:
    """A night in a strip. verdict: the worst of its runs', or "none"."""

    verdict: str
    title: str


@dataclass(frozen=True, slots=True)
class Strip:
    """Nights beside each other, the last one at the right; label says it in words."""

    nights: tuple[Cell, ...]
    label: str


def worst(runs: Sequence[Row]) -> str:
    """The worst verdict of some runs; "none" if there are none."""
    return max((run["verdict"] for run in runs), key=_WORST.index, default="none")


def strip(entry: Entry, until: str, nights: int = STRIP_NIGHTS) -> Strip:
    """The last nights of an entry, up to this one."""
    last = date.fromisoformat(until)
    days = [last - timedelta(days=ago) for ago in range(nights - 1, -1, -1)]
    found = [worst(entry.nights.get(day.isoformat(), ())) for day in days]
    cells = tuple(
        Cell(verdict, f"{day_text(day)}: {'did not run' if verdict == 'none' else verdict}")
        for day, verdict in zip(days, found, strict=True)
    )
    ran = [verdict for verdict in found if verdict != "none"]
    return Strip(cells, f"{ran.count('passed')} of the last {len(ran)} nights passed")
