"""Results of the check of a night: findings, failures over the history, verdicts of the entries.

The kind of a failure is derived from a run's row in the history.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from experiments.campaigns.campaign import FailureKind

Kind = Literal["change point", "tonight"]
Direction = Literal["worse", "better"]
_CRASHED: Final = "crashed"
_DISAGREED: Final = "packets and deliveries disagree"


@dataclass(frozen=True, slots=True)
class RegressionFinding:
    """A metric that changed.

    kind: `change point` for a level that lasts, `tonight` for a night that is further off than such nights
    are. before, after: medians of the nights before and since, in `unit`; for counts that were 0, after is
    the largest; None if the figure is no longer measured. change: (after - before) / before, None if
    undefined; interval: its 95 % bounds. Nights are dates.

    first_bad_night is the likeliest. It may be any night from earliest_night to latest_night (95 %), and the
    commits enclose all of them: the cause came after last_good_commit and is in first_bad_commit; if they are
    equal, it is not a commit. also_changed: other differences between those two nights, as "kernel 6.18.1 ->
    6.18.4" or, for settings, "workload.rate 2000/s -> 1000/s".

    runs_before, runs_after: names of runs to inspect, of the last nights before and the first since.
    confidence: up to 1, corrected for the number of series. new: the change could not be known before this
    night.
    """

    suite: str
    entry: str
    metric: str
    unit: str
    kind: Kind
    direction: Direction
    before: float
    after: float | None
    change: float | None
    interval: tuple[float, float] | None
    first_bad_night: str
    last_good_night: str
    earliest_night: str
    latest_night: str
    first_bad_commit: str
    last_good_commit: str
    also_changed: tuple[str, ...]
    runs_before: tuple[str, ...]
    runs_after: tuple[str, ...]
    confidence: float
    new: bool


@dataclass(frozen=True, slots=True)
class RunVerdict:
    """One run of tonight. failure: None if it passed; why: one line, empty if it passed.

    allowed: whether the night passes even if this run fails.
    """

    run: str
    path: str
    repeat: int
    verdict: str
    failure: FailureKind | None
    why: str
    allowed: bool


@dataclass(frozen=True, slots=True)
class EntryVerdict:
    """The runs of an entry tonight.

    last_good_night: the latest earlier night on which all of its runs passed; last_good_runs: those runs.
    None and () if there is no such night.
    """

    suite: str
    entry: str
    experiment: str
    runs: tuple[RunVerdict, ...]
    last_good_night: str | None
    last_good_runs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NightFindings:
    """The findings of a night: new and worse ones first, then by size. series: number of series examined."""

    night: str
    findings: tuple[RegressionFinding, ...]
    verdicts: tuple[EntryVerdict, ...]
    series: int

    @property
    def worse(self) -> tuple[RegressionFinding, ...]:
        """Findings that fail the night.

        These are change points on the first night that detects them, and metrics that are far off tonight,
        even if they were before.
        """
        found = (each for each in self.findings if each.direction == "worse")
        return tuple(each for each in found if each.new or each.kind == "tonight")


def failure_of(run: Mapping[str, Any], missed: Sequence[str]) -> FailureKind | None:
    """Return the kind of a run's failure, None if it passed.

    run: a row of the history's table `runs`. missed: its expectations that did not hold. A run that crashed
    itself and one in which only a node crashed are both crashes; one that was never measured failed by its
    harness. An invalid run counts only as invalid: the machine may have caused its missed expectations.
    """
    verdict = run["verdict"]
    if verdict == "passed":
        return None
    if verdict == "invalid":
        return FailureKind.FIDELITY
    if verdict == "failed":
        if missed:
            return FailureKind.EXPECTATION
        return FailureKind.CRASH if run["problems"] else FailureKind.FIDELITY
    return FailureKind.CRASH if run["outcome"] == _CRASHED else FailureKind.HARNESS


def failure_reason(run: Mapping[str, Any], missed: Sequence[str]) -> str:
    """Return the reason of the failure in one line."""
    kind = failure_of(run, missed)
    if kind is None:
        return ""
    if kind is FailureKind.EXPECTATION:
        return "; ".join(missed)
    if kind is FailureKind.FIDELITY and run["verdict"] == "failed":
        return _DISAGREED
    reasons = run["reasons"] if kind is FailureKind.FIDELITY else run["problems"]
    return "; ".join(reasons or ()) or str(run["outcome"])
