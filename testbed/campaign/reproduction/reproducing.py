"""`cutset reproduce`: repeats an archived run several times and compares the results with its claims.

The repeats are a sweep of one combination (`testbed.campaign.sweeps.sweep_run`), each with the archive's
plan and seed. The sweep is below `--out` like any other, and an interrupted one can be resumed.
`testbed.campaign.reproduction.reproduction_text` prints the result, `analysis.reproduction` judges the
claims.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click

from analysis.history.regressions.series import MEASURED
from analysis.reproduction import judge
from experiments.backend_names import LOCAL, SIMULATOR
from experiments.campaigns.campaign import RunState
from experiments.campaigns.sweepdir import SweepDirectory, SweepRecord, SweepRun, runs
from experiments.files.plain_name import plain_name
from experiments.records.run_record import Outcome, RunRecord
from testbed.campaign import exit_codes
from testbed.campaign.backend_selection import open_backend
from testbed.campaign.in_use import sole_writer
from testbed.campaign.one_run import planned
from testbed.campaign.reproduction.archived_run import ArchivedRun, digest_of_file
from testbed.campaign.reproduction.reproduction_text import (
    ReproductionResult,
    show_interrupted,
    show_reproduced,
)
from testbed.campaign.sweeps.sweep import RunningSweep
from testbed.campaign.sweeps.sweep_run import execute, new_directory
from testbed.runner.versions import commit
from topologies.errors import InputError

REPEATS: int = 5
"""The default for real processes. In virtual time the seed determines everything, and one repeat suffices."""


@dataclass(frozen=True, slots=True)
class ReproductionRequest:
    """How an archived run is repeated.

    within: see `analysis.reproduction.WITHIN`. given: the run and the options, as the user gave them.
    """

    archived: ArchivedRun
    backend: str
    repeat: int
    within: float
    resume: Path | None
    given: tuple[str, ...]

    @classmethod
    def with_defaults(
        cls,
        archived: ArchivedRun,
        *,
        backend: str | None,
        repeat: int | None,
        within: float,
        resume: Path | None = None,
        given: Sequence[str] = (),
    ) -> "ReproductionRequest":
        """Choose missing options by how the run was made. Raises InputError."""
        there = archived.record
        if backend is None and there.machines:
            names = ", ".join(machine.name for machine in there.machines)
            problem = (
                f"was made on the machines of an inventory ({names}): choose where to repeat it with --on"
            )
            raise InputError(archived.name, None, "", problem)
        where = backend or (SIMULATOR if there.simulated else LOCAL)
        usual = 1 if there.simulated and where == SIMULATOR else REPEATS
        return cls(archived, where, repeat or usual, within, resume, tuple(given))

    @property
    def exact(self) -> bool:
        """Whether the results must be exactly equal."""
        return self.archived.record.simulated and self.backend == SIMULATOR

    @property
    def runs(self) -> tuple[SweepRun, ...]:
        """Every repeat, with the archive's seed."""
        seed = self.archived.record.plan.seed
        return tuple(replace(run, seed=seed) for run in runs({}, self.repeat, seed))

    @property
    def digest(self) -> str:
        """A digest of all that determines the runs."""
        return self.archived.digest(self.backend, self.repeat)


def reproduce(wanted: ReproductionRequest, out: Path) -> int:
    """Repeat a run and judge its claims; return the exit code.

    Raises InputError, MachineError, AnalysisError.
    """
    resume = wanted.resume
    if wanted.backend in {LOCAL, SIMULATOR}:  # machines are checked before each run
        with open_backend(wanted.backend, lambda text: click.echo(text, err=True)) as backend:
            planned(wanted.archived, backend, out)
    name = plain_name(wanted.archived.record.plan.experiment, wanted.archived.name)
    directory = new_directory(out, name) if resume is None else SweepDirectory.open(resume)
    with sole_writer(directory.path):
        record = _begun(directory, wanted) if resume is None else _resumed(directory, wanted)
        sweep = RunningSweep(directory, record, lambda _: wanted.archived)
        if record.pending:
            outcome = execute(sweep, analyze=True)
            if outcome is Outcome.INTERRUPTED:
                show_interrupted(wanted.given, directory)
                return exit_codes.INTERRUPTED
    found = _found(directory, sweep.record, wanted)
    show_reproduced(found)
    return exit_codes.FINE if found.reproduced else exit_codes.FAILED


def _begun(directory: SweepDirectory, wanted: ReproductionRequest) -> SweepRecord:
    """Write the first record of the repeats and return it."""
    plan = wanted.archived.record.plan
    record = SweepRecord(
        sweep=directory.name,
        experiment=wanted.archived.experiment,
        backend=wanted.backend,
        links=plan.links_kind,
        seed=wanted.runs[0].seed,
        repeat=wanted.repeat,
        digest=wanted.digest,
        commit=commit(),
        started_ns=time.time_ns(),
        runs=wanted.runs,
    )
    directory.write(record)
    return record


def _resumed(directory: SweepDirectory, wanted: ReproductionRequest) -> SweepRecord:
    """Return the record, in which repeats that were not completed are pending again.

    Raises InputError if the repeats are not of this archive.
    """
    record = directory.read()
    if record.digest != wanted.digest:
        began = f"it began with --on {record.backend} --repeat {record.repeat} and seed {record.seed}"
        now = (wanted.backend, wanted.repeat, wanted.runs[0].seed)
        is_other = (record.backend, record.repeat, record.seed) == now
        problem = f"it is not a reproduction of {wanted.archived.name}" if is_other else began
        raise InputError(f"--resume {directory.path}", None, "", f"cannot continue: {problem}")
    return replace(record, runs=record.runs_to_resume(wanted.runs, f"--resume {directory.path}"))


def _found(directory: SweepDirectory, record: SweepRecord, wanted: ReproductionRequest) -> ReproductionResult:
    """Judge the results of the repeats. Raises InputError if a summary cannot be read."""
    measured = [run for run in record.runs if run.verdict in MEASURED]
    summaries = [directory.run_of(run).read_summary() for run in measured]
    archived = wanted.archived
    judged = judge(archived.claims, summaries, within=wanted.within, exact=wanted.exact)
    return ReproductionResult(
        archived=archived,
        directory=directory,
        record=record,
        judged=tuple(judged),
        measured=len(measured),
        exact=wanted.exact,
        changed=tuple(_changed_deliveries(directory, measured, archived)) if wanted.exact else (),
        here=_first_completed(directory, record),
    )


def _changed_deliveries(
    directory: SweepDirectory, measured: list[SweepRun], archived: ArchivedRun
) -> Iterator[str]:
    """Yield the names of delivery records that differ from the archive's."""
    for name, digest in archived.deliveries.items():
        for run in measured:
            path = directory.run_of(run).deliveries / name
            if not path.is_file() or digest_of_file(path) != digest:
                yield name
                break


def _first_completed(directory: SweepDirectory, record: SweepRecord) -> RunRecord | None:
    """Return the run record of the first completed repeat, or None."""
    ended = (run for run in record.runs if run.state is RunState.DONE)
    return next((directory.run_of(run).read_run() for run in ended), None)
