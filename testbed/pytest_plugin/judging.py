"""Which runs make a test fail before it has looked at a number, and in which words."""

from collections.abc import Collection

from experiments.nights import Failure
from testbed.cli.made_runs import MadeRun

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
    if run.problem:
        return Failure.HARNESS, f"the run gave nothing to look at: {run.problem}"
    if run.summary is None:
        ended = run.record.get("outcome")
        crashed = not analyze and ended != "completed" and "crashed" not in allow
        return (Failure.CRASH, f"the run {ended or 'died'}: {_problems(run)}") if crashed else None
    verdict = run.summary["verdict"]
    if verdict == "passed" or verdict in allow:
        return None
    if verdict == "crashed":
        return Failure.CRASH, f"the run did not come to its end: {_problems(run)}"
    if verdict == "invalid":
        reasons = run.summary["fidelity"]["reasons"]
        return Failure.FIDELITY, f"the run is invalid, its numbers show nothing: {_some(reasons)}"
    return _unexpected(run.summary["expectations"], run)


def _unexpected(expectations: list[dict[str, object]], run: MadeRun) -> tuple[Failure, str]:
    unheld = [f"{each['text']} (it was {each['value']})" for each in expectations if not each["held"]]
    if unheld:
        return Failure.EXPECTATION, f"did not hold: {_some(unheld)}"
    return Failure.CRASH, _problems(run)


def _problems(run: MadeRun) -> str:
    agreement = (run.summary or {}).get("agreement") or {}
    said = [*run.record.get("problems", ()), *map(str, agreement.get("disagreements", ()))]
    return _some(said) if said else "nothing says why"


def _some(texts: list[str]) -> str:
    more = f"; and {len(texts) - NAMED_MAX} more" if len(texts) > NAMED_MAX else ""
    return "; ".join(texts[:NAMED_MAX]) + more
