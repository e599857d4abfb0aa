"""Intermittent and permanent failures: rates over the history, with exact bounds.

A failure counts whether or not a later run of the same night passed: a retry does not hide it. Expectations
are counted among runs that are valid and ran to their end, other kinds of failure among all runs of their
entry.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from analysis.history.regressions.findings import Flake, Pattern, failure_of, failure_reason
from analysis.history.regressions.series import MEASURED
from analysis.intervals import rate_interval
from experiments.campaigns.campaign import FailureKind

FLAKE_OVER_NIGHTS: Final = 30
"""Nights without a failure after which a failure counts as fixed."""
_OTHERS: Final = (FailureKind.FIDELITY, FailureKind.CRASH, FailureKind.HARNESS)

Key = tuple[str, str, str, FailureKind]


@dataclass(frozen=True, slots=True)
class Trial:
    """A run in which something could fail. said: the text to show for it."""

    night: str
    run: str
    failed: bool
    allowed: bool
    said: str = ""


def flakes_of(
    runs: Sequence[Mapping[str, Any]],
    expectations: Mapping[tuple[str, str], Sequence[tuple[str, bool]]],
    night: str,
) -> list[Flake]:
    """Return everything that failed at least once: most urgent first, allowed failures last.

    runs: rows of the table `runs`, oldest first. expectations: by (night, run) each text and whether it held.
    """
    trials: dict[Key, list[Trial]] = defaultdict(list)
    for run in runs:
        results = expectations.get((run["night"], run["run"]), ())
        missed = [text for text, held in results if not held]
        kind = failure_of(run, missed)
        said = failure_reason(run, missed)
        for other in _OTHERS:
            trial = Trial(run["night"], run["run"], kind is other, run["allow_failure"], said)
            trials[run["suite"], run["entry"], "", other].append(trial)
        if run["valid"] and run["verdict"] in MEASURED:
            for text, held in results:
                trial = Trial(run["night"], run["run"], not held, run["allow_failure"])
                trials[run["suite"], run["entry"], text, FailureKind.EXPECTATION].append(trial)
    found = [
        _flake(key, tried, night) for key, tried in trials.items() if any(trial.failed for trial in tried)
    ]
    order: tuple[Pattern, ...] = ("new", "lasting", "flaky", "over")

    def urgency(flake: Flake) -> tuple[object, ...]:
        return flake.allowed, order.index(flake.pattern), -flake.rate, flake.entry, flake.text

    return sorted(found, key=urgency)


def _flake(key: Key, tried: Sequence[Trial], night: str) -> Flake:
    suite, entry, text, failure = key
    failed = [trial for trial in tried if trial.failed]
    return Flake(
        suite=suite,
        entry=entry,
        text=text or failed[-1].said,
        failure=failure,
        failed=len(failed),
        runs=len(tried),
        rate=len(failed) / len(tried),
        interval=rate_interval(len(failed), len(tried)),
        tonight=sum(trial.night == night for trial in failed),
        pattern=_pattern(tried, night),
        failing_since=_failing_since(tried),
        last_failed_night=failed[-1].night,
        run=failed[-1].run,
        allowed=failed[-1].allowed,
    )


def _pattern(tried: Sequence[Trial], night: str) -> Pattern:
    nights = sorted({trial.night for trial in tried})
    failing = {trial.night for trial in tried if trial.failed}
    since = _failing_since(tried)
    if since is not None and len([each for each in nights if each >= since]) >= 2:
        return "lasting"
    if failing == {night}:
        return "new"
    return "flaky" if failing.intersection(nights[-FLAKE_OVER_NIGHTS:]) else "over"


def _failing_since(tried: Sequence[Trial]) -> str | None:
    """Return the first night of the latest unbroken sequence of nights on which every run failed."""
    since = None
    for night, failed in reversed(_by_night(tried)):
        if not all(failed):
            break
        since = night
    return since


def _by_night(tried: Iterable[Trial]) -> list[tuple[str, list[bool]]]:
    nights: dict[str, list[bool]] = defaultdict(list)
    for trial in tried:
        nights[trial.night].append(trial.failed)
    return sorted(nights.items())
