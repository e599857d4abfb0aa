"""Of what kind a failure is, from what the history has of a run."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from experiments.nights import Failure

_CRASHED: Final = "crashed"
_DISAGREED: Final = "its packets and its deliveries tell different stories"


def failure_of(run: Mapping[str, Any], missed: Sequence[str]) -> Failure | None:
    """The kind of a run's failure, None if it passed.

    run: a row of the history's table `runs`. missed: its expectations that did not hold. A run that ended by
    itself crashed, as did one of which only a node died; one that never came to be measured failed by its
    harness. A run that is invalid is nothing else: what it missed may be the machine's fault.
    """
    verdict = run["verdict"]
    if verdict == "passed":
        return None
    if verdict == "invalid":
        return Failure.FIDELITY
    if verdict == "failed":
        if missed:
            return Failure.EXPECTATION
        return Failure.CRASH if run["problems"] else Failure.FIDELITY
    return Failure.CRASH if run["outcome"] == _CRASHED else Failure.HARNESS


def why(run: Mapping[str, Any], missed: Sequence[str]) -> str:
    """The failure in a line."""
    kind = failure_of(run, missed)
    if kind is None:
        return ""
    if kind is Failure.EXPECTATION:
        return "; ".join(missed)
    if kind is Failure.FIDELITY and run["verdict"] == "failed":
        return _DISAGREED
    said = run["reasons"] if kind is Failure.FIDELITY else run["problems"]
    return "; ".join(said or ()) or str(run["outcome"])
