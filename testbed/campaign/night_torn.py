"""What a crash left of a night: runs that stand as running, and nobody runs them any more.

A run that has ended is never made again, however it ended: a failure would be tried until it passes.
"""

import time
from dataclasses import replace
from typing import Any

from experiments.nights import NightRun, State
from testbed.campaign.night import Night
from testbed.campaign.night_one import finish_one, finished
from testbed.nightly.planning import TRIES_MAX
from testbed.nightly.results import broken
from testbed.runner.phases import Outcome
from topologies.errors import InputError


def settle_torn(night: Night) -> None:
    """Bring every run that stands as running to where the night can go on. Raises KeyboardInterrupt.

    One that the history has only has to be noted; one that has ended only has to be analysed. Any other is
    torn: its directory is set aside, and it is made again, unless it has ended the night too often.
    """
    for run in _running(night):
        if (kept := _from_history(night, run)) is not None:
            night.say(night.leave(kept))
        elif _has_ended(night, run) and run.tries <= TRIES_MAX:
            if not finish_one(night, run):
                raise KeyboardInterrupt
        elif run.tries < TRIES_MAX:
            _begun_anew(night, run)
        else:
            said = f"it was begun {run.tries} times, and ended the night each time"
            night.say(night.end(broken(_begun_anew(night, run), said, 0.0), time.time_ns()))


def set_torn_aside(night: Night) -> None:
    """Set aside what a night leaves torn that ends now; what has ended is for `settle_torn`."""
    for run in _running(night):
        if not _has_ended(night, run) and _from_history(night, run) is None:
            _begun_anew(night, run)


def _running(night: Night) -> list[NightRun]:
    return [run for run in night.record.runs if run.state is State.RUNNING]


def _has_ended(night: Night, run: NightRun) -> bool:
    """Whether it came to its own end, good or bad."""
    made = night.directory.run_of(run)
    try:
        return made is not None and made.read_run().get("outcome") in {Outcome.COMPLETED, Outcome.CRASHED}
    except InputError:
        return False


def _begun_anew(night: Night, run: NightRun) -> NightRun:
    aside = night.note(night.directory.set_aside(run))
    if aside.torn != run.torn:
        night.say(f"{run.title} was torn: what it left is {aside.torn[-1]}")
    return aside


def _from_history(night: Night, run: NightRun) -> NightRun | None:
    """The run as it came out, if the history has it: by its directory's name or, if there was nothing to run,
    since this night began.
    """
    from analysis.history import Where
    from analysis.history.regressions.failures import failure_of

    where = Where(night.record.suite, run.entry, since=night.record.night, until=night.record.night)
    rows = [row for row in night.history.runs(where).to_pylist() if row["repeat"] == run.repeat]
    for row in rows:
        if row["run"] == run.run or (not row["path"] and row["started_ns"] >= night.record.started_ns):
            expectations = night.history.expectations(replace(where, run=row["run"])).to_pylist()
            missed = [kept["text"] for kept in expectations if not kept["held"]]
            return replace(_as_left(night, run, row), failure=failure_of(row, missed))
    return None


def _as_left(night: Night, run: NightRun, row: dict[str, Any]) -> NightRun:
    """With what its directory says, as long as that is there; row: the history's."""
    made = night.directory.run_of(run)
    try:
        if made is not None and made.summary_json.exists():
            return finished(run, made, 0.0)
    except InputError:
        pass  # what the history says has to do
    return broken(run, "; ".join(row["problems"]) or f"{row['outcome']}, but not analysed", 0.0)
