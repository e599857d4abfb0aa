"""The result of a run of a sweep, a night or a test: its state, its failure and the reason."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from experiments.campaigns.campaign import CampaignRun, FailureKind, RunHeadline, RunState
from experiments.expectations import missed_text
from experiments.files.sanitize import sanitize
from experiments.records.run_record import Outcome, RunRecord

Run = TypeVar("Run", bound=CampaignRun)

NAMED_MAX = 3
"""At most this many reasons are shown in a line, the worst first."""


@dataclass(frozen=True, slots=True)
class PerformedRun:
    """A run that was executed.

    run_record: the content of run.json. summary: the content of summary.json; None if it was not analysed;
    problem: why, if it should have been.
    """

    run_record: RunRecord
    summary: dict[str, Any] | None = None
    problem: str | None = None

    @property
    def failure(self) -> FailureKind | None:
        """The kind of its failure; None if it passed, or ended well and was not to be analysed."""
        return self._judgement[0]

    @property
    def why(self) -> str:
        """The reason for its failure, in one line."""
        return self._judgement[1]

    @property
    def _judgement(self) -> tuple[FailureKind | None, str]:
        from analysis.history.regressions.findings import failure_of, failure_reason

        record, summary = self.run_record, self.summary or {}
        unanalysed = self.summary is None and self.problem is None and record.outcome is Outcome.COMPLETED
        row = {
            "verdict": "passed" if unanalysed else summary.get("verdict") or "crashed",
            "outcome": record.outcome or f"died while {record.phase}",
            "reasons": _some((summary.get("fidelity") or {}).get("reasons") or ()),
            "problems": _some([*filter(None, [self.problem]), *record.problems]),
        }
        missed = [missed_text(each) for each in summary.get("expectations") or () if not each["held"]]
        return failure_of(row, missed), failure_reason(row, missed)


def concluded(run: Run, made: PerformedRun, took_s: float) -> Run:
    """Return an ended run of a campaign with its result."""
    return replace(
        run,
        state=RunState.DONE if made.run_record.outcome is Outcome.COMPLETED else RunState.FAILED,
        verdict=made.summary.get("verdict") if made.summary else None,
        failure=made.failure,
        problem=sanitize(made.why) or None,
        duration_s=round(took_s, 3),
        headline=RunHeadline.from_summary(made.summary or {}),
    )


def broken(run: Run, problem: str, took_s: float) -> Run:
    """Return a run that could not be made, or was not completed."""
    return replace(
        run,
        state=RunState.FAILED,
        verdict=None,
        failure=FailureKind.HARNESS,
        problem=sanitize(problem),
        duration_s=round(took_s, 3),
        headline=RunHeadline(),
    )


def _some(texts: Sequence[str]) -> list[str]:
    more = len(texts) - NAMED_MAX
    return [*texts[:NAMED_MAX], *([f"and {more} more"] if more > 0 else [])]
