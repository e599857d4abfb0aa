"""What the check of a night says: findings of metrics, failures over the history, verdicts of the entries;
and of what kind a failure is, from what the history has of a run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from experiments.campaigns.campaign import Failure

Kind = Literal["change point", "tonight"]
Direction = Literal["worse", "better"]
Pattern = Literal["new", "lasting", "flaky", "over"]
_CRASHED: Final = "crashed"
_DISAGREED: Final = "its packets and its deliveries tell different stories"


@dataclass(frozen=True, slots=True)
class Finding:
    """A metric that changed.

    kind: `change point` for a level that lasts, `tonight` for the night itself, which lies further off than
    such nights do. before, after: medians of the nights before and since, in `unit`; of counts that were 0,
    after is the largest; None if the figure is no longer measured. change: (after - before) / before, None
    where there is none; interval: 95 % bounds of it. Nights are dates.

    first_bad_night is the likeliest. It may be any from earliest_night to latest_night (95 %), so the commits
    are those beside all of them: what changed it came after last_good_commit and is in first_bad_commit;
    if they are the same, it was no commit. also_changed: what else is not as it was on those two nights, as
    "kernel 6.18.1 -> 6.18.4" or, of settings, "workload.rate 2000/s -> 1000/s".

    runs_before, runs_after: names of runs to look at, of the nights last before and first since. confidence:
    of 1; the more series are looked at, the more each must show. new: nobody could know before this night.
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
class Flake:
    """How often something fails: an expectation among the runs that are sound, or another kind of failure
    among all runs of an entry.

    text: the expectation, or for other kinds the latest reason. rate: failed / runs; interval: its 95 %
    bounds. tonight: how many of tonight's failed. pattern: `new` if it failed tonight and not once before;
    `lasting` if it failed in every run since failing_since, at least two nights; `flaky` if it fails now and
    then; `over` if it failed before and not in the last FLAKE_OVER_NIGHTS nights that have it.
    run: the latest that failed; allowed: whether its night passes without it.
    """

    suite: str
    entry: str
    text: str
    failure: Failure
    failed: int
    runs: int
    rate: float
    interval: tuple[float, float]
    tonight: int
    pattern: Pattern
    failing_since: str | None
    last_failed_night: str
    run: str
    allowed: bool


@dataclass(frozen=True, slots=True)
class RunVerdict:
    """One run of tonight. failure: None if it passed; why: in a line, empty if it passed.

    allowed: whether the night passes without it.
    """

    run: str
    path: str
    repeat: int
    verdict: str
    failure: Failure | None
    why: str
    allowed: bool


@dataclass(frozen=True, slots=True)
class EntryVerdict:
    """An entry tonight: its runs. last_good_night: the latest before tonight on which all of its runs passed,
    and last_good_runs those runs; None and () if there is none."""

    suite: str
    entry: str
    experiment: str
    runs: tuple[RunVerdict, ...]
    last_good_night: str | None
    last_good_runs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NightFindings:
    """The findings of a night: new and worse ones first, then by size. series: how many were examined."""

    night: str
    findings: tuple[Finding, ...]
    flakes: tuple[Flake, ...]
    verdicts: tuple[EntryVerdict, ...]
    series: int

    @property
    def worse(self) -> tuple[Finding, ...]:
        """For what the night fails: change points on the first night that knows of them, and whatever is far
        off tonight, also for the second time."""
        found = (each for each in self.findings if each.direction == "worse")
        return tuple(each for each in found if each.new or each.kind == "tonight")


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
