"""The result of a run of a sweep, a night or a test: its state, its failure and the reason."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from analysis.history.regressions.findings import failure_of, failure_reason
from experiments.campaigns.campaign import CampaignRun, FailureKind, RunHeadline, RunState
from experiments.expectations import missed_text
from experiments.files.sanitize import sanitize
from experiments.records.run_record import Outcome, RunRecord
from testbed.runner.run_control import RunResult

Run = TypeVar("Run", bound=CampaignRun)

NAMED_MAX = 3
"""At most this many reasons are shown in a line, the worst first."""


def concluded(
    run: Run, record: RunRecord, summary: Mapping[str, Any] | None, took_s: float, problem: str | None = None
) -> Run:
    """Return an ended run. summary: None if it was not analysed; problem: why, if it should have been."""
    failure, reason = judgement(record, summary, problem)
    return replace(
        run,
        state=RunState.DONE if record.outcome is Outcome.COMPLETED else RunState.FAILED,
        verdict=summary.get("verdict") if summary else None,
        failure=failure,
        problem=sanitize(reason) or None,
        duration_s=round(took_s, 3),
        headline=RunHeadline.from_summary(summary or {}),
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


def judgement(
    record: RunRecord, summary: Mapping[str, Any] | None, problem: str | None
) -> tuple[FailureKind | None, str]:
    """Return the kind of failure and the reason in one line.

    The kind is None if the run passed, or ended well and was not to be analysed. problem: why it has no
    summary, if it should have one.
    """
    unanalysed = summary is None and problem is None and record.outcome is Outcome.COMPLETED
    row = {
        "verdict": "passed" if unanalysed else (summary or {}).get("verdict") or "crashed",
        "outcome": record.outcome or f"died while {record.phase}",
        "reasons": _some(((summary or {}).get("fidelity") or {}).get("reasons") or ()),
        "problems": _some([*filter(None, [problem]), *record.problems]),
    }
    expectations = (summary or {}).get("expectations") or ()
    missed = [missed_text(each) for each in expectations if not each["held"]]
    return failure_of(row, missed), failure_reason(row, missed)


def why_not_analysed(ended: RunResult) -> str:
    """Return why a run that was to be analysed has no summary."""
    return "there is too little disk to analyse it" if ended.measured else "it ended before time 0"


def _some(texts: Sequence[str]) -> list[str]:
    more = len(texts) - NAMED_MAX
    return [*texts[:NAMED_MAX], *([f"and {more} more"] if more > 0 else [])]
