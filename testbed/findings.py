"""The findings of checks of a machine, this one or one of an inventory: each names what to do about it."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Self


class FindingState(StrEnum):
    """GOOD is used; NOTE is optional or has a replacement; MISSING stops a run."""

    GOOD = "good"
    NOTE = "note"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding about one subject.

    detail: the text for a list or a table's cell. problem: a clause below a table. remedy: the command or
    advice that solves it. The last two may be empty.
    """

    subject: str
    state: FindingState
    detail: str
    problem: str = ""
    remedy: str = ""

    @classmethod
    def good(cls, subject: str, detail: str) -> Self:
        """Return a finding that needs no action."""
        return cls(subject, FindingState.GOOD, detail)

    @classmethod
    def note(cls, subject: str, detail: str, problem: str = "", remedy: str = "") -> Self:
        """Return a finding that does not stop a run."""
        return cls(subject, FindingState.NOTE, detail, problem, remedy)

    @classmethod
    def missing(cls, subject: str, detail: str, problem: str = "", remedy: str = "") -> Self:
        """Return a finding that stops a run."""
        return cls(subject, FindingState.MISSING, detail, problem, remedy)
