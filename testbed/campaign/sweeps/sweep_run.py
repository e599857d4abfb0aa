"""`cutset run` of a sweep: every combination and repetition is a run like any other, below one directory.

The record is written after each run, so that Ctrl-C or a crash of the machine loses only the current run:
`--resume` continues there. Real runs go one after another and share one Spark session; those in virtual time
are side by side (`testbed.campaign.jobs.simulated_run`).
"""

import secrets
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from experiments.backend_names import LOCAL, SIMULATOR
from experiments.campaigns.sweep import VARIANT
from experiments.campaigns.sweepdir import SweepDirectory, SweepRecord, SweepRun
from experiments.loader import FOLDER, ExperimentFile, experiment_from
from experiments.records.run_record import Outcome
from experiments.roles import as_in_file
from testbed.campaign import exit_codes
from testbed.campaign.backend_selection import open_backend
from testbed.campaign.in_use import sole_writer
from testbed.campaign.jobs.simulated_run import simulated, simulation_job, simulation_pool
from testbed.campaign.one_run import ExperimentRunRequest, make
from testbed.campaign.run_results import broken, concluded
from testbed.campaign.sweeps.sweep import Request, RunningSweep
from testbed.campaign.sweeps.sweep_outcome import show_sweep
from testbed.campaign.texts.campaign_text import position, title
from testbed.campaign.texts.progress import Follower, follower
from testbed.errors import MachineError, TestbedError
from testbed.run_selection import RunSelection
from testbed.runner.versions import commit
from testbed.sweeps import Points, new_record, record_to_resume
from topologies.document import Document

if TYPE_CHECKING:
    from testbed.backends.backend import Backend


def run_sweep(
    chosen: RunSelection, out: Path, *, resume: Path | None, analyze: bool, given: tuple[str, Sequence[str]]
) -> int:
    """Make or resume a sweep, print its result, and return the exit code.

    given: the experiment as the user named it, and the overrides, for the commands that replay a run.
    """
    directory = SweepDirectory.open(resume) if resume else new_directory(out, chosen.file.experiment.name)
    with sole_writer(directory.path):
        sweep = (_resumed if resume else new_sweep)(directory, chosen)
        outcome = execute(sweep, analyze=analyze)
    show_sweep(sweep.directory, sweep.record, given)
    if outcome is Outcome.INTERRUPTED:
        return exit_codes.INTERRUPTED
    fine = sweep.record.passed if analyze else sweep.record.complete
    return exit_codes.FINE if fine else exit_codes.FAILED


def execute(sweep: RunningSweep, *, analyze: bool) -> Outcome:
    """Make the pending runs and judge them together; return whether the sweep was completed or interrupted.

    Raises MachineError, AnalysisError.
    """
    click.echo(f"sweep {sweep.directory.path}", err=True)
    if sweep.record.backend in {LOCAL, SIMULATOR}:  # machines are checked before each run
        for line in sweep.leave_out_missing():
            click.echo(line, err=True)
    click.echo(f"{len(sweep.record.pending)} of {len(sweep.record.runs)} runs to go", err=True)
    outcome = Outcome.CRASHED
    try:
        make_runs = _side_by_side if sweep.record.backend == SIMULATOR else _one_by_one
        make_runs(sweep, analyze=analyze)
        outcome = Outcome.COMPLETED
    except KeyboardInterrupt:
        outcome = Outcome.INTERRUPTED
    finally:
        sweep.end(outcome)
    if analyze:
        sweep.judge()
        write_sweep_page(sweep.directory)
    return outcome


def write_sweep_page(directory: SweepDirectory) -> None:
    """Write the page of the whole sweep, and that of its variants, if there is anything to show."""
    from analysis.pages.report.sweep_page import write_sweep_report
    from analysis.pages.systems.page import write_systems

    record = directory.read()
    if not any(run.verdict for run in record.runs):
        return
    write_sweep_report(directory)
    if any(VARIANT in run.values and run.verdict not in {None, "crashed"} for run in record.runs):
        write_systems([directory], directory.systems_html)


def continue_sweep(directory: SweepDirectory) -> tuple[SweepRecord, Outcome]:
    """Make the runs of a sweep that are not done, from its record alone. Raises as `execute` does."""
    record = directory.read()
    experiment = {**record.experiment, "roles": as_in_file(record.experiment["roles"])}
    document = Document(str(directory.sweep_json), experiment, {})
    file = ExperimentFile(document, FOLDER, experiment_from(document))
    chosen = RunSelection(file, record.backend, record.links, record.seed, record.repeat)
    with sole_writer(directory.path):
        sweep = _resumed(directory, chosen)
        outcome = execute(sweep, analyze=True)
    return sweep.record, outcome


def new_directory(out: Path, name: str) -> SweepDirectory:
    """Create the directory of a new sweep below `out`. name: the experiment's. Raises MachineError,
    InputError.
    """
    try:
        return SweepDirectory.create(out, name, datetime.now(UTC), secrets.token_hex(3))
    except OSError as error:
        raise MachineError(f"cannot write the sweep below {out}: {error.strerror}") from error


def new_sweep(directory: SweepDirectory, chosen: RunSelection) -> RunningSweep:
    """Begin a sweep and write its first record. Raises InputError."""
    points = Points(chosen)
    record = new_record(directory, points, commit())
    directory.write(record)
    return RunningSweep(directory, record, _requests(points))


def _resumed(directory: SweepDirectory, chosen: RunSelection) -> RunningSweep:
    points = Points(chosen)
    record = record_to_resume(directory.read(), points, directory)
    sweep = RunningSweep(directory, record, _requests(points))
    if sweep.code_changed:
        click.echo("note: the code has changed since the sweep began", err=True)
    for line in sweep.changed_images():
        click.echo(line, err=True)
    return sweep


def _requests(points: Points) -> Request:
    links = points.chosen.links
    return lambda run: ExperimentRunRequest(*points.inputs_of(run), run.seed, links)


def _side_by_side(sweep: RunningSweep, *, analyze: bool) -> None:
    """Make the pending runs in virtual time. Raises MachineError, InputError, KeyboardInterrupt."""
    pending = sweep.record.pending
    with (
        follower(terse=f"{len(pending)} runs in virtual time") as follow,
        open_backend(SIMULATOR, follow.say) as backend,
        simulation_pool(None) as pool,
    ):
        runs = [sweep.make_run(run, backend) for run in pending]
        jobs = [simulation_job(run, sweep.directory.run_of(run), analyze=analyze) for run in runs]
        for result in pool.results(jobs, lambda: follow({})):
            made = sweep.directory.run_of(result.subject)
            follow.show(sweep.end_run(simulated(result.subject, made, result)))


def _one_by_one(sweep: RunningSweep, *, analyze: bool) -> None:
    """Make the pending runs in sequence. Raises MachineError, AnalysisError, KeyboardInterrupt."""
    with open_backend(sweep.record.backend, lambda text: click.echo(text, err=True)) as backend:
        for run in sweep.record.pending:
            began_s = time.monotonic()
            with follower(
                terse=f"{position(sweep.record.ended + 1, len(sweep.record.runs))} {title(run)}"
            ) as follow:
                made = sweep.make_run(run, backend)
                follow.show(sweep.end_run(_made(sweep, made, backend, follow, began_s, analyze=analyze)))


def _made(
    sweep: RunningSweep, run: SweepRun, backend: "Backend", follow: Follower, began_s: float, *, analyze: bool
) -> SweepRun:
    """Make one run and return its result. A report is written unless the run passed."""
    directory = sweep.directory.run_of(run)
    try:
        made = make(directory, backend, follow, analyze=analyze, page=lambda verdict: verdict != "passed")
    except MachineError:
        raise
    except TestbedError as error:
        return broken(run, str(error), time.monotonic() - began_s)
    return concluded(run, made, time.monotonic() - began_s)
