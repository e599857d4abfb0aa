"""Verdicts of runs as signs, and of nights as a strip."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from analysis.history.history_schemas import VERDICTS
from analysis.pages.nights.night_reader import NightSuiteEntry, Row
from analysis.pages.report.formatting import day_text

STRIP_NIGHTS = 30
ALLOWED = "allowed"
"""Any verdict but passed, for a run that may fail."""
STATUS = {"passed": "good", ALLOWED: "", "failed": "bad", "invalid": "bad", "crashed": "bad"}
SIGNS = {"passed": "✓", "failed": "✕", "invalid": "?", "crashed": "!"}
_GRAVEST = (*VERDICTS[:-1], ALLOWED, VERDICTS[-1])
WORDS = {"none": "did not run", ALLOWED: "failed, which is allowed"}


@dataclass(frozen=True, slots=True)
class StripCell:
    """A night in a strip. verdict: the worst of its runs, as `counted`, or "none"."""

    verdict: str
    title: str


@dataclass(frozen=True, slots=True)
class Strip:
    """Nights side by side, the last one on the right; label describes them as text."""

    nights: tuple[StripCell, ...]
    label: str


def counted(verdict: str, *, allowed: bool) -> str:
    """Return a run's verdict for the night's status. allowed: whether the night passes if the run fails."""
    return ALLOWED if allowed and verdict != "passed" else verdict


def status_of(verdict: str, *, allowed: bool) -> str:
    """Return the status on a page: good, bad, or neither."""
    return STATUS[counted(verdict, allowed=allowed)]


def verdict_text(verdict: str, *, allowed: bool) -> str:
    """Return a run's verdict as text."""
    return f"{verdict} (allowed)" if counted(verdict, allowed=allowed) == ALLOWED else verdict


def worst(runs: Sequence[Row]) -> str:
    """Return the worst verdict of some runs; "none" if there are none."""
    found = (counted(run["verdict"], allowed=run["allow_failure"]) for run in runs)
    return min(found, key=_GRAVEST.index, default="none")


def strip(entry: NightSuiteEntry, until: str, nights: int = STRIP_NIGHTS) -> Strip:
    """Return the strip of an entry's last nights, up to this one."""
    last = date.fromisoformat(until)
    days = [last - timedelta(days=ago) for ago in range(nights - 1, -1, -1)]
    found = [worst(entry.nights.get(day.isoformat(), ())) for day in days]
    cells = tuple(
        StripCell(verdict, f"{day_text(day)}: {WORDS.get(verdict, verdict)}")
        for day, verdict in zip(days, found, strict=True)
    )
    ran = [verdict for verdict in found if verdict != "none"]
    return Strip(cells, f"{ran.count('passed')} of the last {len(ran)} nights passed")
