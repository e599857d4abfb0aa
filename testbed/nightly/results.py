"""What became of a run of a night, in a line, and what the night's exit code follows from.

Of what kind a failure is, the history says better (`analysis.history.regressions.failures`).
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from experiments.expectations import missed_text
from experiments.nights import Failure, NightRecord, NightRun, State
from experiments.sweepdir import SweepRecord
from testbed.sweeps import headline, missed

OF_VERDICTS = {
    "passed": None,
    "failed": Failure.EXPECTATION,
    "invalid": Failure.FIDELITY,
    "crashed": Failure.CRASH,
}
"""What a verdict says by itself, of a run that has a summary."""
FINE, FAILED, MACHINE = 0, 1, 3
NO_REASON = "see its report"
REASONS_MAX = 2
"""Of those why a run is invalid, that stand in its line: the worst come first."""


def ended(run: NightRun, content: Mapping[str, Any], summary: Mapping[str, Any], took_s: float) -> NightRun:
    """A run that has a summary. content: run.json's."""
    return replace(
        run,
        state=State.DONE,
        verdict=summary["verdict"],
        problem=_line(why) if (why := _why(content, summary)) is not None else None,
        duration_s=round(took_s, 3),
        headline=headline(summary),
    )


def broken(run: NightRun, problem: str, took_s: float) -> NightRun:
    """A run without a summary."""
    return replace(
        run,
        state=State.FAILED,
        problem=_line(problem),
        duration_s=round(took_s, 3),
        headline={},
    )


def swept(run: NightRun, record: SweepRecord, took_s: float) -> NightRun:
    """A whole sweep that came to its end, as one run."""
    verdicts = [point.verdict or "crashed" for point in record.points]
    unmet = [f"{each['text']} did not hold" for each in missed(record)]
    kinds = [*verdicts, *("failed" for _ in unmet)]
    verdict = next((kind for kind in ("crashed", "failed", "invalid") if kind in kinds), "passed")
    others = [f"{verdicts.count(kind)} of {len(verdicts)} runs {kind}" for kind in sorted({*verdicts})]
    reasons = [*(text for text in others if not text.endswith("passed")), *unmet]
    return replace(
        run,
        state=State.DONE,
        verdict=verdict,
        failure=OF_VERDICTS[verdict],
        problem=_line("; ".join(reasons)) if reasons else None,
        duration_s=round(took_s, 3),
    )


def unmeasured(run: NightRun, content: Mapping[str, Any], took_s: float) -> NightRun:
    """A run that ended before there was anything to analyse. content: run.json's."""
    problems = content.get("problems") or [f"it ended while {content.get('phase')}"]
    return broken(run, problems[-1], took_s)


def not_fine(record: NightRecord) -> list[NightRun]:
    """The runs for which the night fails, in their order."""
    return [run for run in record.runs if run.failure is not None and not run.allow_failure]


def exit_code(record: NightRecord) -> int:
    """1 if anything failed or got worse, or nobody knows whether it did; else 3 if the machine could not do
    its part; else 0.
    """
    kinds = {run.failure for run in not_fine(record)}
    if record.findings or record.unchecked is not None or kinds - {Failure.HARNESS}:
        return FAILED
    return MACHINE if kinds else FINE


def _why(content: Mapping[str, Any], summary: Mapping[str, Any]) -> str | None:
    """In a line, why a run did not pass."""
    if summary["verdict"] == "passed":
        return None
    missed = [found for found in summary["expectations"] if not found["held"]]
    if summary["verdict"] == "failed" and missed:
        return "; ".join(map(missed_text, missed))
    said = summary["fidelity"]["reasons"] if summary["verdict"] == "invalid" else content.get("problems")
    said = list(said or [NO_REASON])
    more = [f"and {len(said) - REASONS_MAX} more"] if len(said) > REASONS_MAX else []
    return "; ".join(said[:REASONS_MAX] + more)


def _line(text: str) -> str:
    """One line that can be written anywhere: bytes that are no text came here as lone surrogates."""
    return " ".join(text.split()).encode(errors="replace").decode()
