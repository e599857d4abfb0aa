"""Which runs make a test fail before it has looked at a number, and in which words."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from experiments.nights import Failure
from testbed.cli.made_runs import MadeRun
from testbed.nightly.results import OF_VERDICTS

ALLOWABLE = ("failed", "invalid", "crashed")
"""The verdicts that a test can allow. A run without any verdict is never allowed."""
NAMED_MAX = 3


class RunFailedError(AssertionError):
    """A run is not sound, or did not hold its experiment's expectations. failure: of which kind."""

    def __init__(self, failure: Failure, text: str) -> None:
        self.failure = failure
        super().__init__(f"{failure}: {text}")


def refuse_unsound(runs: Collection[MadeRun], allow: Collection[str], *, analyze: bool) -> None:
    """Raises RunFailedError for the first run whose verdict is neither passed nor allowed."""
    for run in runs:
        found = _failure(run, allow, analyze=analyze)
        if found:
            raise RunFailedError(found[0], f"{found[1]} ({run.directory.path})")


def _failure(run: MadeRun, allow: Collection[str], *, analyze: bool) -> tuple[Failure, str] | None:
    if run.summary is not None:
        verdict = run.summary["verdict"]
        failure = None if verdict in allow else OF_VERDICTS[verdict]
        return None if failure is None else (failure, _why(run, run.summary))
    ended = run.record.get("outcome")
    if run.problem is not None:
        crashed = "zero_ns" in run.record["times"] and ended != "completed"
        return (Failure.CRASH if crashed else Failure.HARNESS), run.problem
    if analyze or ended == "completed" or "crashed" in allow:
        return None
    return Failure.CRASH, f"the run {ended or 'died'}: {_problems(run)}"


def _why(run: MadeRun, summary: Mapping[str, Any]) -> str:
    if summary["verdict"] == "invalid":
        return f"the run is invalid, its numbers show nothing: {_some(summary['fidelity']['reasons'])}"
    if summary["verdict"] == "crashed":
        return f"the run did not come to its end: {_problems(run)}"
    unheld = [
        f"{each['text']} (it was {_shown(each['value'])})"
        for each in summary["expectations"]
        if not each["held"]
    ]
    return f"did not hold: {_some(unheld)}" if unheld else _problems(run)


def _problems(run: MadeRun) -> str:
    """What went wrong beside expectations: nodes that ended, packets and records that disagree."""
    agreement = (run.summary or {}).get("agreement") or {}
    said = [*run.record.get("problems", ()), *map(str, agreement.get("disagreements", ()))]
    return _some(said) if said else "nothing says why"


def _some(texts: Sequence[str]) -> str:
    more = f"; and {len(texts) - NAMED_MAX} more" if len(texts) > NAMED_MAX else ""
    return "; ".join(texts[:NAMED_MAX]) + more


def _shown(value: object) -> str:
    return "not measured" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
