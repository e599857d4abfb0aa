"""Analysis of existing runs, one or those of a sweep: their summaries, reports and verdicts."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click

from analysis.errors import check_measured
from analysis.jobs.choice import WorkersFor, workers_at
from analysis.pages.report import write_report
from analysis.pipeline import analyze as run_analysis
from experiments.archives.packing import check_captures
from experiments.campaigns.campaign import RunState
from experiments.campaigns.sweepdir import SweepDirectory, SweepRecord
from experiments.records.rundir import RunDirectory
from testbed.campaign import exit_codes
from testbed.campaign.in_use import sole_writer
from testbed.campaign.run_results import PerformedRun, concluded
from testbed.campaign.sweeps.sweep import RunningSweep
from testbed.campaign.sweeps.sweep_outcome import show_sweep
from testbed.campaign.sweeps.sweep_run import write_sweep_page
from testbed.campaign.texts.campaign_text import run_line, title
from testbed.campaign.texts.outcome import show_outcome
from testbed.campaign.texts.progress import Follower, follower
from testbed.interrupts import noted_interrupts


def analyze_all(found: Sequence[RunDirectory | SweepDirectory], master: str | None) -> int:
    """Analyse each run or sweep once and return the worst exit code.

    If there are several, an error is printed and the others are analysed. If there is only one, InputError,
    AnalysisError and MachineError are raised. master: see `analysis.jobs.choice.workers_at`.
    """
    each_once = list({one.path.resolve(): one for one in found}.values())
    with workers_at(master) as workers_for:
        if len(each_once) == 1:
            return analyze(each_once[0], workers_for)
        codes = [_code_of(one, workers_for) for one in each_once]
    passed = codes.count(exit_codes.FINE)
    click.echo(f"\n{passed} of {len(codes)} passed", err=True)
    return max(codes)


def _code_of(found: RunDirectory | SweepDirectory, workers_for: WorkersFor) -> int:
    try:
        return analyze(found, workers_for)
    except exit_codes.EXPECTED_ERRORS as error:
        code = exit_codes.exit_code_of(error)
        if code is None:
            raise
        click.echo(f"cutset: {exit_codes.line_of(error)}", err=True)
        return code


def analyze(found: RunDirectory | SweepDirectory, workers_for: WorkersFor) -> int:
    """Analyse a run, or the completed runs of a sweep, and return the exit code.

    Raises InputError, AnalysisError, MachineError.
    """
    return _sweep(found, workers_for) if isinstance(found, SweepDirectory) else _run(found, workers_for)


def _run(run: RunDirectory, workers_for: WorkersFor) -> int:
    with sole_writer(run.path):
        check_measured(run)
        check_captures(run)
        click.echo(f"run {run.path}", err=True)
        with follower() as follow, _steps(follow) as step:
            summary = summary_of(run, workers_for, step)
            step("writing the report")
            write_report(run)
    show_outcome(run, run.read_run(), summary)
    return exit_codes.FINE if summary["verdict"] == "passed" else exit_codes.FAILED


def summary_of(run: RunDirectory, workers_for: WorkersFor, step: Callable[[str], None]) -> dict[str, Any]:
    """Analyse a run with all of its captures. Raises InputError, AnalysisError."""
    return run_analysis(run, workers_for=workers_for, progress=step)


@contextmanager
def _steps(follow: Follower) -> Iterator[Callable[[str], None]]:
    """Show each step of the work; before each, raise again an interrupt that Python dropped."""
    with noted_interrupts() as interrupts:

        def step(text: str) -> None:
            interrupts.check()
            follow.say(text)

        yield step


def _sweep(directory: SweepDirectory, workers_for: WorkersFor) -> int:
    """Analyse each completed run of a sweep; leave the others as they are."""
    with sole_writer(directory.path):
        record = _analyzed(directory, workers_for)
    show_sweep(directory, record, (str(record.experiment.get("name")), ()))
    return exit_codes.FINE if record.passed else exit_codes.FAILED


def _analyzed(directory: SweepDirectory, workers_for: WorkersFor) -> SweepRecord:
    sweep = RunningSweep(directory, directory.read())
    click.echo(f"sweep {directory.path}", err=True)
    done = [run for run in sweep.record.runs if run.state is RunState.DONE]
    for run in done:
        check_captures(directory.run_of(run))
    for number, run in enumerate(done, 1):
        made = directory.run_of(run)
        with sole_writer(made.path), follower(terse=title(run)) as follow, _steps(follow) as step:
            summary = summary_of(made, workers_for, step)
            result = PerformedRun(made.read_run(), summary)
            found = sweep.note(concluded(run, result, run.duration_s or 0.0))
            follow.show(run_line(found, number, len(done)))
    sweep.judge()
    write_sweep_page(directory)
    return sweep.record
