"""Makes one run of a night: plan, run, analyse, report, into the history; or what is left of one that has
ended. Whatever goes wrong ends the run, not the night.

What a crash left of a night are runs that stand as running, and nobody runs them any more. A run that has
ended is never made again, however it ended: a failure would be tried until it passes.
"""

import secrets
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from experiments.nights import Failure, NightRun, State
from experiments.run_record import Outcome
from experiments.rundir import RunDirectory
from testbed.campaign.exit_codes import EXPECTED_ERRORS
from testbed.campaign.night import Night
from testbed.campaign.night_text import place_in
from testbed.campaign.one_run import Made, Request, conclude, make, prepare, write_page
from testbed.campaign.progress import Follower, follower
from testbed.campaign.sweep_run import carry_out, new_sweep
from testbed.interrupts import Limit
from testbed.nightly.planning import AROUND_A_RUN_S, TRIES_MAX, budget_left_s
from testbed.nightly.results import broken, ended, swept, unmeasured
from testbed.runner.run_control import RunResult
from testbed.sweeps import Points, RunSelection
from topologies.errors import InputError
from topologies.loader import load_topology

if TYPE_CHECKING:
    from testbed.backends.backend import Backend

BackendOf = Callable[[str], "Backend"]
"""The place of this name, opened if need be. Raises InputError, MachineError."""


def make_one(night: Night, run: NightRun, backend_of: BackendOf) -> bool:
    """Make a run and write down what became of it; false if the user ended it, and the night."""

    def make(follow: Follower, began_s: float) -> NightRun:
        started = prepared(night, run, backend_of)
        return _carried_out(night, started, backend_of(run.place), follow, began_s)

    return _limited(night, run, make, budget_left_s(run, night.record, night.file))


def finish_one(night: Night, run: NightRun) -> bool:
    """Analyse a run that has ended, and write down what became of it; false as for `make_one`."""

    def finish(follow: Follower, began_s: float) -> NightRun:
        again = night.note(replace(run, tries=run.tries + 1))
        directory = _directory(night, run)
        ended = RunResult(directory.read_run(), by_user=False)
        if directory.summary_json.exists():
            write_page(directory, follow)
            return finished(again, directory, time.monotonic() - began_s)
        return _concluded(again, directory, Made(ended, conclude(directory, ended, follow)), began_s)

    return _limited(night, run, finish, max(AROUND_A_RUN_S, budget_left_s(run, night.record, night.file)))


def make_sweep(night: Night, run: NightRun) -> bool:
    """Make a whole sweep, with one page and one verdict; false as for `make_one`.

    It does not enter the history: what is followed from night to night are single points. One that a crash
    tore is made again from the beginning.
    """
    began_s = time.monotonic()
    limit_s = budget_left_s(run, night.record, night.file)
    made, goes_on = _bounded(night, run, limit_s, lambda: _swept(night, run, began_s))
    if made is None:
        return False
    if made.state is State.FAILED:
        made = replace(made, failure=Failure.HARNESS)
    click.echo(night.leave(made), err=True)
    return goes_on


def _limited(
    night: Night, run: NightRun, work: Callable[[Follower, float], NightRun], limit_s: float
) -> bool:
    """Work on a run for so long. work: is given when it began, by time.monotonic."""
    started_ns, began_s = time.time_ns(), time.monotonic()
    done = sum(other.ended for other in night.record.runs)
    with follower(terse=f"{place_in(night.record, done + 1)} {run.title}") as follow:
        made, goes_on = _bounded(night, run, limit_s, lambda: work(follow, began_s))
        if made is None:
            return False
        follow.show(night.end(made, started_ns))
    return goes_on


def _bounded(
    night: Night, run: NightRun, limit_s: float, work: Callable[[], NightRun]
) -> tuple[NightRun | None, bool]:
    """The run as it came out of so much work at most (None: the user ended it); whether the night goes on."""
    began_s, limit = time.monotonic(), Limit()
    try:
        made = limit.within(limit_s, work)
    except KeyboardInterrupt:
        if limit.by_user or not limit.passed:
            return None, False
        said = f"it was stopped after {limit_s:.0f} s, which was all that was left of the budget"
        made = broken(night.as_noted(run), said, time.monotonic() - began_s)
    except Exception as error:  # noqa: BLE001 - one broken run must not take the others with it
        made = failed(night, run, error, time.monotonic() - began_s)
    return made, not limit.by_user


def _swept(night: Night, run: NightRun, began_s: float) -> NightRun:
    """Raises KeyboardInterrupt if it was ended before its time."""
    file, entry = night.file.experiments[run.entry], night.entry_of(run)
    run = night.note(replace(run, state=State.RUNNING, tries=run.tries + 1))
    chosen = RunSelection.of(file, backend=run.place, links=entry.links, seed=run.seed, repeat=None)
    sweep = new_sweep(night.directory.runs, chosen, Points(chosen))
    run = night.note(replace(run, run=sweep.directory.name))
    if carry_out(sweep, analyze=True) == "interrupted":
        raise KeyboardInterrupt
    return swept(run, sweep.record, time.monotonic() - began_s)


def prepared(night: Night, run: NightRun, backend_of: BackendOf) -> NightRun:
    """The run with a directory of its own that says what is planned; night.json names it before it is used.

    Raises InputError, MachineError.
    """
    experiment = night.file.experiments[run.entry].experiment
    run = night.note(replace(run, state=State.RUNNING, tries=run.tries + 1))

    def directory() -> RunDirectory:
        made = RunDirectory.create(
            night.directory.runs, experiment.name, datetime.now(UTC), secrets.token_hex(3)
        )
        night.note(replace(run, run=made.name))
        return made

    request = Request(experiment, load_topology(experiment.topology), run.seed, night.entry_of(run).links)
    prepare(request, backend_of(run.place), night.directory.runs, directory=directory)
    return night.as_noted(run)


def finished(run: NightRun, made: RunDirectory, took_s: float) -> NightRun:
    """The run whose summary stands in its directory. Raises InputError."""
    return ended(run, made.read_run(), made.read_summary(), took_s)


def failed(night: Night, run: NightRun, error: Exception, took_s: float) -> NightRun:
    """A run that an error ended. One that is a defect of ours has its traceback in the night's log."""
    if isinstance(error, EXPECTED_ERRORS):
        text = str(error)
    else:
        text = f"{type(error).__name__}: {error}"
        night.log("".join(traceback.format_exception(error)))
    return broken(night.as_noted(run), text, took_s)


def _carried_out(
    night: Night, run: NightRun, backend: "Backend", follow: Follower, began_s: float
) -> NightRun:
    directory = _directory(night, run)
    made = make(directory, backend, follow)
    return _concluded(run, directory, made, began_s)


def _concluded(run: NightRun, directory: RunDirectory, made: Made, began_s: float) -> NightRun:
    took_s = time.monotonic() - began_s
    if made.summary is None:
        return unmeasured(run, made.ended.record, took_s)
    return finished(run, directory, took_s)


def _directory(night: Night, run: NightRun) -> RunDirectory:
    made = night.directory.run_of(run)
    assert made is not None
    return made


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
        return made is not None and made.read_run().outcome in {Outcome.COMPLETED, Outcome.CRASHED}
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
    from analysis.history import HistoryFilter
    from analysis.history.regressions.findings import failure_of

    where = HistoryFilter(night.record.suite, run.entry, since=night.record.night, until=night.record.night)
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
