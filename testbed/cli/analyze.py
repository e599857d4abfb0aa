"""`cutset analyze`: from a run's captures to its tables, its summary and its report; may be run again at
any time.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from testbed.campaign import exit_codes
from testbed.cli.options import run_argument

if TYPE_CHECKING:
    from experiments.rundir import RunDirectory
    from experiments.sweepdir import SweepDirectory, SweepRecord


@click.command(name="analyze")
@run_argument
@click.option("--master", metavar="URL", help="A Spark master; without it, this machine does the work.")
@click.option(
    "--captures",
    type=click.Choice(["shared", "send"]),
    help="Whether the cluster sees the run at its path, or gets its files sent; unless given, it is asked.",
)
def command(run_name: str, master: str | None, captures: str | None) -> int:
    """Analyse a run, or all runs of a sweep, and write the report.

    Running it again gives the same answer. Exit codes: 0 passed, 1 an expectation or the fidelity failed, 2
    no such run, or nothing in it to analyse.
    """
    from experiments.sweepdir import SweepDirectory
    from testbed.cli.named_run import named

    found = named(run_name)
    work = _Work(master, captures)
    return _sweep(found, work) if isinstance(found, SweepDirectory) else _run(found, work)


@dataclass(frozen=True, slots=True)
class _Work:
    """Who does the work."""

    master: str | None
    captures: str | None

    def analyze(self, run: "RunDirectory", progress: Callable[[str], None]) -> dict[str, Any]:
        from analysis.pipeline import analyze
        from experiments.capture_parts import join_all

        join_all(run.captures)  # of a run that was watched, and whose command died
        return analyze(run, master=self.master, captures=self.captures, progress=progress)


def _run(run: "RunDirectory", work: _Work) -> int:
    from analysis.errors import check_measured
    from analysis.pages.report import write_report
    from experiments.packing import check_captures
    from testbed.campaign.outcome import show_outcome
    from testbed.campaign.progress import follower

    check_measured(run)
    check_captures(run)
    click.echo(f"run {run.path}", err=True)
    with follower() as follow:
        summary = work.analyze(run, follow.say)
        follow.say("writing the report")
        write_report(run)
    show_outcome(run, run.read_run(), summary)
    return exit_codes.FINE if summary["verdict"] == "passed" else exit_codes.FAILED


def _sweep(directory: "SweepDirectory", work: _Work) -> int:
    """Each run that came to its end; what does not stand there as ended is left as it is."""
    from testbed.campaign.campaign import sole_writer
    from testbed.campaign.sweep_outcome import show_sweep

    with sole_writer(directory.path):
        record = _analyzed(directory, work)
    show_sweep(directory, record, (str(record.experiment.get("name")), ()))
    return exit_codes.FINE if record.passed else exit_codes.FAILED


def _analyzed(directory: "SweepDirectory", work: _Work) -> "SweepRecord":
    from experiments.campaign import State
    from experiments.packing import check_captures
    from testbed.campaign.campaign_text import run_line, title
    from testbed.campaign.progress import follower
    from testbed.campaign.run_results import concluded
    from testbed.campaign.sweep import Sweep
    from testbed.campaign.sweep_run import write_sweep_page

    sweep = Sweep(directory, directory.read())
    click.echo(f"sweep {directory.path}", err=True)
    done = [run for run in sweep.record.runs if run.state is State.DONE]
    for run in done:
        check_captures(directory.run_of(run))
    for number, run in enumerate(done, 1):
        made = directory.run_of(run)
        with follower(terse=title(run)) as follow:
            summary = work.analyze(made, follow.say)
            found = sweep.note(concluded(run, made.read_run(), summary, run.duration_s or 0.0))
            follow.show(run_line(found, number, len(done)))
    sweep.judge()
    write_sweep_page(directory)
    return sweep.record
