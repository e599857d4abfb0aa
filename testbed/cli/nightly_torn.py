"""What a crash left of a night: a run that stands as running, and nobody runs it any more."""

import time
from typing import TYPE_CHECKING

from experiments.nights import NightRun, State
from experiments.rundir import RunDirectory
from testbed.nightly.planning import TRIES_MAX
from testbed.nightly.results import broken
from topologies.errors import InputError

if TYPE_CHECKING:
    from testbed.cli.nightly_night import Night


def settle_torn(night: "Night") -> None:
    """Bring every run that stands as running to where the night can go on.

    One that has its summary only has to be noted. Any other is torn: its directory is set aside, and it is
    made again, unless it has taken the night down with it too often.
    """
    for run in night.record.runs:
        if run.state is State.RUNNING:
            _settle(night, run)


def _settle(night: "Night", run: NightRun) -> None:
    made = night.directory.run_of(run)
    if made is not None and (noted := _whole(night, run, made)) is not None:
        night.say(night.end(noted, 0))
        return
    aside = night.note(night.directory.set_aside(run))
    if aside.torn != run.torn:
        night.say(f"{run.title} was torn: what it left is {aside.torn[-1]}")
    if run.tries >= TRIES_MAX:
        said = f"it was begun {run.tries} times, and ended the night each time"
        night.say(night.end(broken(aside, said, 0.0), time.time_ns()))


def _whole(night: "Night", run: NightRun, made: RunDirectory) -> NightRun | None:
    """The run as ended, if nothing of it is missing but the note of it."""
    from testbed.cli.nightly_one import finished

    try:
        content = made.read_run()
        if content.get("outcome") != "completed":
            return None
        noted = finished(run, made, 0.0)
        if not made.report_html.is_file():
            from analysis.report import write_report

            write_report(made)
    except InputError:
        return None
    return noted
