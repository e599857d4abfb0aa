"""The result of a run of a sweep, a night or a test: its state, its failure and the reason."""

from dataclasses import dataclass, replace
from typing import Any, TypeVar

from experiments.campaigns.campaign import CampaignRun, CampaignVerdict, FailureKind, RunHeadline, RunState
from experiments.expectations import missed_text
from experiments.files.sanitize import sanitize
from experiments.records.run_record import Outcome, RunRecord
from topologies.first_texts import first_texts

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
            "reasons": first_texts((summary.get("fidelity") or {}).get("reasons") or (), NAMED_MAX),
            "problems": first_texts([*filter(None, [self.problem]), *record.problems], NAMED_MAX),
        }
        missed = [missed_text(each) for each in summary.get("expectations") or () if not each["held"]]
        return failure_of(row, missed), failure_reason(row, missed)


def concluded(run: Run, made: PerformedRun, took_s: float) -> Run:
    """Return an executed run of a campaign with its result."""
    summary = made.summary or {}
    found = ended(run, took_s, made.failure, made.why, verdict=summary.get("verdict"))
    state = RunState.DONE if made.run_record.outcome is Outcome.COMPLETED else RunState.FAILED
    return replace(found, state=state, headline=RunHeadline.from_summary(summary))


def broken(run: Run, problem: str, took_s: float) -> Run:
    """Return a run that could not be made, or was not completed."""
    return replace(ended(run, took_s, FailureKind.HARNESS, problem), state=RunState.FAILED)


def ended(
    run: Run,
    took_s: float,
    failure: FailureKind | None = None,
    problem: str = "",
    *,
    verdict: CampaignVerdict | None = None,
) -> Run:
    """Return a run of a campaign that was made, without a headline. problem: why it failed, or ""."""
    return replace(
        run,
        state=RunState.DONE,
        verdict=verdict,
        failure=failure,
        problem=sanitize(problem) or None,
        duration_s=round(took_s, 3),
        headline=RunHeadline(),
    )
