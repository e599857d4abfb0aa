"""A whole sweep as one run of a night: its runs below one directory, with one page and one verdict.

The sweep stands in the night's record and its JUnit file, and does not enter the history: what is followed
from night to night are single points. One that a crash tore is made again from the beginning.
"""

import time
from dataclasses import replace

import click

from experiments.nights import Failure, NightRun, State
from testbed.cli.exit_codes import EXPECTED_ERRORS
from testbed.cli.nightly_night import Night
from testbed.cli.sweep_run import carry_out, new_sweep
from testbed.interrupts import Limit
from testbed.nightly.planning import budget_left_s
from testbed.nightly.results import broken, swept
from testbed.sweeps import Chosen, Points


def make_sweep(night: Night, run: NightRun) -> bool:
    """Make all of it and write down what became of it; false if the user ended it, and the night."""
    began_s, limit = time.monotonic(), Limit()
    limit_s = budget_left_s(run, night.record, night.file)
    try:
        run = limit.within(limit_s, lambda: _made(night, run, began_s))
    except KeyboardInterrupt:
        if limit.by_user or not limit.passed:
            return False
        said = f"it was stopped after {limit_s:.0f} s, which was all that was left of the budget"
        run = _broken(night, run, said, began_s)
    except EXPECTED_ERRORS as error:
        run = _broken(night, run, str(error), began_s)
    click.echo(night.leave(run), err=True)
    return not limit.by_user


def _made(night: Night, run: NightRun, began_s: float) -> NightRun:
    """Raises KeyboardInterrupt if it was ended before its time."""
    file, entry = night.file.experiments[run.entry], night.entry_of(run)
    run = night.note(replace(run, state=State.RUNNING, tries=run.tries + 1))
    chosen = Chosen.of(file, place=run.place, links=entry.links, seed=run.seed, repeat=None)
    sweep = new_sweep(night.directory.runs, chosen, Points(chosen))
    run = night.note(replace(run, run=sweep.directory.name))
    if carry_out(sweep, analyze=True) == "interrupted":
        raise KeyboardInterrupt
    return swept(run, sweep.record, time.monotonic() - began_s)


def _broken(night: Night, run: NightRun, problem: str, began_s: float) -> NightRun:
    took_s = time.monotonic() - began_s
    return replace(broken(night.as_noted(run), problem, took_s), failure=Failure.HARNESS)
