"""A running sweep: the result of each run is recorded at once, and shown in one line."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from experiments.campaigns.campaign import RunState
from experiments.campaigns.sweep import VARIANT
from experiments.campaigns.sweepdir import SweepDirectory, SweepRecord, SweepRun
from experiments.records.run_record import Outcome
from systems.images.archives import ImageError
from systems.images.store import describe
from testbed.backends.backend import Backend
from testbed.campaign.campaign import Campaign
from testbed.campaign.one_run import ExperimentRunRequest, RunRequest, prepare
from testbed.campaign.texts.campaign_text import run_line
from testbed.errors import MachineError
from testbed.programs import images_of, lacking_of_experiment
from testbed.sweeps import with_expectations_judged

Request = Callable[[SweepRun], RunRequest]
"""Returns the inputs of a run. Raises InputError."""


class RunningSweep(Campaign[SweepRecord]):
    """A sweep and its directory. request: of its runs; None if it is only analysed."""

    def __init__(
        self, directory: SweepDirectory, record: SweepRecord, request: Request | None = None
    ) -> None:
        super().__init__(record, directory.write)
        self.directory = directory
        self._request = request
        self._began_s = time.monotonic()
        self._noted = 0

    def leave_out_missing(self) -> Iterator[str]:
        """Leave out the variants whose programs are not installed; return a line for each.

        They are recorded as skipped, and checked again on resumption. Raises MachineError if no run remains.
        """
        lacking: dict[str, str] = {}
        for run in self.record.pending:
            variant = run.values.get(VARIANT)
            if variant is None:
                continue
            request = self._request_of(run)
            assert isinstance(request, ExperimentRunRequest)  # no other sweep has variants
            if variant not in lacking and (problem := lacking_of_experiment(request.experiment)):
                lacking[variant] = problem
            if variant in lacking:
                self.note(replace(run, state=RunState.SKIPPED, problem=lacking[variant]))
        if not self.record.made:
            raise MachineError("; ".join(lacking.values()))
        return (f"left out {variant}: {problem}" for variant, problem in lacking.items())

    def changed_images(self) -> Iterator[str]:
        """Yield a line for each image that has changed since a run was made with it."""
        then: dict[str, str] = {}
        for run in self.record.runs:
            made = self.directory.run_of(run)
            if run not in self.record.pending and made.run_json.is_file():  # else its user removed it
                then.update((each.source, each.digest) for each in images_of(made.read_run().plan))
        for source, digest in then.items():
            try:
                now = describe(source).digest
            except ImageError:
                continue  # its runs are left out, or fail with the reason
            if now != digest:
                yield f"note: {source} is another image than in the runs that were made: {now}, not {digest}"

    def make_run(self, run: SweepRun, backend: Backend) -> SweepRun:
        """Prepare a run and return it with its directory. Raises MachineError, InputError."""
        made = prepare(
            self._request_of(run),
            backend,
            self.directory.path,
            directory=lambda: self.directory.make_run(run),
        )
        return replace(run, run=str(made.path.relative_to(self.directory.path)), started_ns=time.time_ns())

    def end_run(self, run: SweepRun) -> str:
        """Record the result of a run; return the line to show."""
        self.note(run)
        self._noted += 1
        ended, count = self.record.ended, len(self.record.runs)
        each_s = (time.monotonic() - self._began_s) / self._noted
        return run_line(run, ended, count, each_s * (count - ended))

    def judge(self) -> None:
        """Record whether the expectations on all runs together hold. Raises InputError."""
        self.update(with_expectations_judged(self.record, self.directory))

    def end(self, outcome: Outcome) -> None:
        """Record how the sweep ended."""
        self.update(replace(self.record, outcome=outcome, ended_ns=time.time_ns()))

    def _request_of(self, run: SweepRun) -> RunRequest:
        assert self._request is not None
        return self._request(run)
