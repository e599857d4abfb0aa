"""`cutset run` of a sweep: every combination and repetition is a run like any other, below one directory.

What is done is written down after each run, so that Ctrl-C, or a machine that goes down, loses only the run
that was on: `--resume` goes on there. Real runs go one after the other and share one Spark session; those in
virtual time are spread over Spark's tasks (`testbed.campaign.sweep_tasks`).
"""

import secrets
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from experiments.sweepdir import PointRecord, SweepDirectory
from testbed.campaign import exit_codes
from testbed.campaign.backend_selection import SIMULATOR, open_backend
from testbed.campaign.one_run import make
from testbed.campaign.progress import Follower, follower
from testbed.campaign.sweep_outcome import point_title, show_sweep
from testbed.campaign.sweep_progress import Sweep, broken, outcome_of
from testbed.campaign.sweep_tasks import run_in_tasks
from testbed.errors import MachineError, TestbedError
from testbed.runner.versions import commit
from testbed.sweeps import Points, RunSelection, all_passed, continued, new_record, refuse_changed

if TYPE_CHECKING:
    from testbed.backends.backend import Backend


def run_sweep(
    chosen: RunSelection, out: Path, *, resume: Path | None, analyze: bool, given: tuple[str, Sequence[str]]
) -> int:
    """Returns the exit code.

    given: the experiment as the user named it, and the overrides, for the commands that replay a run.
    """
    points = Points(chosen)
    sweep = _resumed(resume, chosen, points) if resume else new_sweep(out, chosen, points)
    outcome = carry_out(sweep, analyze=analyze)
    show_sweep(sweep.directory, sweep.record, given)
    if outcome == "interrupted":
        return exit_codes.INTERRUPTED
    fine = all_passed(sweep.record) if analyze else not sweep.pending
    return exit_codes.FINE if fine else exit_codes.FAILED


def carry_out(sweep: Sweep, *, analyze: bool) -> str:
    """Make the runs that are to go, and judge them together: completed or interrupted, by the user.

    Raises MachineError, AnalysisError.
    """
    click.echo(f"sweep {sweep.directory.path}", err=True)
    click.echo(f"{len(sweep.pending)} of {len(sweep.record.points)} runs to go", err=True)
    outcome = "crashed"
    try:
        make_runs = run_in_tasks if sweep.record.place == SIMULATOR else _one_by_one
        make_runs(sweep, analyze=analyze)
        outcome = "completed"
    except KeyboardInterrupt:
        outcome = "interrupted"
    finally:
        sweep.end(outcome)
    if analyze:
        sweep.judge()
        write_sweep_page(sweep.directory)
    return outcome


def write_sweep_page(directory: SweepDirectory) -> None:
    """Write the page for the whole sweep, if there is anything to show."""
    from analysis.pages.report.sweep_page import write_sweep_report

    if any(point.verdict for point in directory.read().points):
        write_sweep_report(directory)


def new_sweep(out: Path, chosen: RunSelection, points: Points) -> Sweep:
    """A sweep below `out` of which nothing has run. Raises MachineError, InputError."""
    name = chosen.file.experiment.name
    try:
        directory = SweepDirectory.create(out, name, datetime.now(UTC), secrets.token_hex(3))
    except OSError as error:
        raise MachineError(f"cannot write the sweep below {out}: {error.strerror}") from error
    record = new_record(directory, chosen, points, commit())
    directory.write(record)
    return Sweep(directory, record, points)


def _resumed(path: Path, chosen: RunSelection, points: Points) -> Sweep:
    directory = SweepDirectory.open(path)
    record = directory.read()
    refuse_changed(record, chosen, points, directory)
    if record.commit != commit():
        click.echo("note: the code has changed since the sweep began", err=True)
    return Sweep(directory, continued(record, chosen, directory), points)


def _one_by_one(sweep: Sweep, *, analyze: bool) -> None:
    """Make the runs that are to go. Raises MachineError, AnalysisError, KeyboardInterrupt."""
    with open_backend(sweep.record.place, lambda text: click.echo(text, err=True)) as backend:
        for point in sweep.pending:
            done = len(sweep.record.points) - len(sweep.pending)
            began_s = time.monotonic()
            sweep.make_run(point, backend)
            with follower(terse=f"[{done + 1}/{len(sweep.record.points)}] {point_title(point)}") as follow:
                follow.show(sweep.note(_made(sweep, point, backend, follow, began_s, analyze=analyze)))


def _made(
    sweep: Sweep, point: PointRecord, backend: "Backend", follow: Follower, began_s: float, *, analyze: bool
) -> PointRecord:
    """What became of a run. One that went wrong gets a report."""
    run = sweep.directory.run_of(point)
    try:
        made = make(run, backend, follow, analyze=analyze, page=lambda verdict: verdict != "passed")
    except MachineError:
        raise
    except TestbedError as error:
        return broken(point, str(error), time.monotonic() - began_s)
    return outcome_of(point, made.ended.record, made.summary, time.monotonic() - began_s)
