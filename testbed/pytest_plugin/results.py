"""The return value of `cutset.run`: the runs, and the values of their figures."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.expectations import value_at
from experiments.records.summary import path_problem
from testbed.campaign.sweeps.made_runs import MadeRun

__tracebackhide__ = True  # pytest shows a failure at the line of the test, not here


class NotMeasuredError(AssertionError):
    """A run lacks a figure that a test reads."""


@dataclass(frozen=True, slots=True)
class RunResults:
    """The runs of one call: `max(run["latency.p99_ms"]) < 200`, `run["events.lost"] == (0, 0, 0)`.

    runs: each with its directory, report, seed, run.json (`record`) and summary.json (`summary`). on_read:
    called when a test reads a figure.
    """

    runs: tuple[MadeRun, ...]
    on_read: Callable[["RunResults"], None]

    def __getitem__(self, path: str) -> tuple[Any, ...]:
        """Return the value at a path of summary.json in each run, as in an experiment's `expect`.

        Raises KeyError if there is no such figure, NotMeasuredError if a run lacks it.
        """
        self.on_read(self)
        values = [value_at(run.summary or {}, path) for run in self.runs]
        lacking = [run.directory.name for run, value in zip(self.runs, values, strict=True) if value is None]
        if not lacking:
            return tuple(values)
        if problem := path_problem(path, _faults(self.runs)):
            raise KeyError(problem)
        raise NotMeasuredError(f"{path} was not measured in {', '.join(lacking)}")


def _faults(runs: Sequence[MadeRun]) -> list[str]:
    return [fault.name for fault in runs[0].run_record.plan.faults]
