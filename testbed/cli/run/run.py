"""`cutset run`: plans, runs, analyses and reports one run, or all runs of a sweep."""

import signal
from pathlib import Path

import click

from testbed.cli.named_run import named_sweep
from testbed.cli.options import (
    FOLDER,
    ExperimentArguments,
    experiment_options,
    no_analyze_option,
    on_option,
    out_option,
    repeat_option,
)
from testbed.interrupts import handling, interrupt


@click.command(name="run")
@experiment_options
@on_option
@repeat_option
@out_option
@click.option("--resume", type=FOLDER, metavar="DIR", help="Resume an interrupted sweep.")
@click.option("--dry", is_flag=True, help="Only show what would run, like `cutset plan`.")
@click.option("--live", is_flag=True, help="Show timelines during the run, on a page and here.")
@no_analyze_option
def command(  # noqa: PLR0917 (click passes them by name)
    given: ExperimentArguments,
    backend: str | None,
    repeat: int | None,
    out: Path,
    resume: Path | None,
    dry: bool,
    live: bool,
    no_analyze: bool,
) -> int:
    """Run an experiment, analyse it and write its report.

    EXPERIMENT is a name (see `cutset list`) or a YAML file. One with a `sweep` or a `repeat` makes many runs,
    in one directory with one report. Ctrl-C ends the run in order and analyses the results so far; a second
    Ctrl-C ends at once; `--resume` continues a sweep. `--live` shows throughput and latency from the packets
    during the run, on a local page that turns into the report. Exit codes: 0 passed, 1 an expectation or the
    fidelity check failed, 2 bad input, 3 this machine cannot do it, 130 interrupted.
    """
    chosen = given.select(backend, repeat)
    if live:
        from testbed.campaign.live_view import check_watchable

        check_watchable(chosen, resumed=resume is not None)
    if dry:
        from testbed.campaign.texts.plan_text import show_plan

        show_plan(chosen, full=False)
        return 0
    with handling({signal.SIGTERM: interrupt}):
        if resume is not None:
            resume = named_sweep(str(resume)).path
        with chosen.file.placing_errors():
            if chosen.is_sweep or resume:
                from testbed.campaign.sweeps.sweep_run import run_sweep

                named = (given.experiment, given.settings)
                return run_sweep(chosen, out, resume=resume, analyze=not no_analyze, given=named)
            from testbed.campaign.one_run import run_once

            return run_once(chosen, out, analyze=not no_analyze, live=live)
