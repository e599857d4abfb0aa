"""Which runs make a test fail before it has looked at a number."""

from collections.abc import Collection

from experiments.nights import Failure
from testbed.campaign.made_runs import MadeRun

ALLOWABLE = ("failed", "invalid", "crashed")
"""The verdicts that a test can allow. A run that gave nothing to look at is never allowed."""


class RunFailedError(AssertionError):
    """A run is not sound, or did not hold its experiment's expectations. failure: of which kind."""

    def __init__(self, failure: Failure, text: str) -> None:
        self.failure = failure
        super().__init__(f"{failure}: {text}")


def refuse_unsound(runs: Collection[MadeRun], allow: Collection[str]) -> None:
    """Raises RunFailedError for the first run whose verdict is neither passed nor allowed."""
    for run in runs:
        allowed = run.verdict in allow and run.problem is None
        failure = None if allowed else run.failure
        if failure is not None:
            raise RunFailedError(failure, f"{run.why} ({run.directory.path})")
