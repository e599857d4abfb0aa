"""How far a sweep is: what became of each run is written down at once, and said in a line."""

import time
from dataclasses import replace
from typing import Any

from experiments.run_record import Outcome, RunRecord
from experiments.sweepdir import PointRecord, SweepDirectory, SweepRecord
from testbed.backends.backend import Backend
from testbed.campaign.one_run import Request, prepare
from testbed.campaign.sweep_outcome import point_line, seconds_left
from testbed.sweeps import Points, headline, judged, pending


class SweepProgress:
    """A sweep's directory and its record, which stays the same as sweep.json."""

    def __init__(self, directory: SweepDirectory, record: SweepRecord) -> None:
        self.directory = directory
        self.record = record
        self._began_s = time.monotonic()
        self._ended_at_first = len(record.points) - len(pending(record))
        self._noted = 0

    @property
    def pending(self) -> list[PointRecord]:
        """The runs that are still to be made."""
        return pending(self.record)

    def note(self, point: PointRecord) -> str:
        """Write down what became of a run; the line to show."""
        self.record = self.record.with_point(point)
        self.directory.write(self.record)
        self._noted += 1
        count, done = len(self.record.points), self._ended_at_first + self._noted
        elapsed_s = time.monotonic() - self._began_s
        return point_line(point, count, done, seconds_left(elapsed_s, self._noted, count - done))

    def judge(self) -> None:
        """Write down whether what is expected of all runs together holds. Raises InputError."""
        self.record = judged(self.record, self.directory)
        self.directory.write(self.record)

    def end(self, outcome: str) -> None:
        """Write down how it ended."""
        self.record = replace(self.record, outcome=outcome, ended_ns=time.time_ns())
        self.directory.write(self.record)


class Sweep(SweepProgress):
    """A sweep that is on, and what its runs are made from."""

    def __init__(self, directory: SweepDirectory, record: SweepRecord, points: Points) -> None:
        super().__init__(directory, record)
        self._points = points

    def make_run(self, point: PointRecord, backend: Backend) -> None:
        """Its run directory, with what is planned. Raises MachineError, InputError."""
        request = Request(*self._points.of(point), point.seed, self.record.links)
        prepare(request, backend, self.directory.path, directory=lambda: self.directory.make_run(point))


def outcome_of(
    point: PointRecord, record: RunRecord, summary: dict[str, Any] | None, duration_s: float
) -> PointRecord:
    """The record of a run that ended."""
    problems = record.problems or (f"{record.outcome} while {record.phase}",)
    completed = record.outcome is Outcome.COMPLETED
    return replace(
        point,
        outcome="completed" if completed else "crashed",
        verdict=summary["verdict"] if summary else None,
        problem=None if completed else problems[-1],
        duration_s=round(duration_s, 3),
        headline=headline(summary) if summary else {},
    )


def broken(point: PointRecord, problem: str, duration_s: float) -> PointRecord:
    """The record of a run that could not be made."""
    return replace(
        point, outcome="crashed", verdict=None, problem=problem, duration_s=round(duration_s, 3), headline={}
    )
