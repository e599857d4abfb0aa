"""Makes one run of a night: plan, run, analyse, report, into the history; or what is left of one that has
ended. Whatever goes wrong ends the run, not the night.
"""

import secrets
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from experiments.nights import NightRun, State
from experiments.rundir import RunDirectory
from testbed.cli.exit_codes import EXPECTED_ERRORS
from testbed.cli.following import Follower, follower
from testbed.cli.nightly_night import Night
from testbed.cli.nightly_text import place_in
from testbed.cli.performing import analyse, perform, write_page
from testbed.errors import MachineError
from testbed.interrupts import Limit
from testbed.nightly.planning import AROUND_A_RUN_S, budget_left_s
from testbed.nightly.results import broken, ended, unmeasured
from testbed.planning import make_plan
from testbed.runner.start import Ended, write_plan
from testbed.sweeps import plain
from topologies.loader import load_topology

if TYPE_CHECKING:
    from testbed.backends.place import Place

PlaceOf = Callable[[str], "Place"]
"""The place of this name, opened if need be. Raises InputError, MachineError."""


def make_one(night: Night, run: NightRun, place_of: PlaceOf) -> bool:
    """Make a run and write down what became of it; false if the user ended it, and the night."""

    def make(follow: Follower, began_s: float) -> NightRun:
        started = prepared(night, run, place_of)
        return _carried_out(night, started, place_of(run.place), follow, began_s)

    return _limited(night, run, make, budget_left_s(run, night.record, night.file))


def finish_one(night: Night, run: NightRun) -> bool:
    """Analyse a run that has ended, and write down what became of it; false as for `make_one`."""

    def finish(follow: Follower, began_s: float) -> NightRun:
        again = night.note(replace(run, tries=run.tries + 1))
        made = _directory(night, run)
        return _analysed(again, made, Ended(made.read_run(), by_user=False), follow, began_s)

    return _limited(night, run, finish, max(AROUND_A_RUN_S, budget_left_s(run, night.record, night.file)))


def _limited(
    night: Night, run: NightRun, work: Callable[[Follower, float], NightRun], limit_s: float
) -> bool:
    """Work on a run for so long. work: is given when it began, by time.monotonic."""
    started_ns, began_s, limit = time.time_ns(), time.monotonic(), Limit()
    done = sum(other.ended for other in night.record.runs)
    with follower(terse=f"{place_in(night.record, done + 1)} {run.title}") as follow:
        try:
            run = limit.within(limit_s, lambda: work(follow, began_s))
        except KeyboardInterrupt:
            if limit.by_user or not limit.passed:
                return False
            said = f"it was stopped after {limit_s:.0f} s, which was all that was left of the budget"
            run = broken(night.as_noted(run), said, time.monotonic() - began_s)
        except Exception as error:  # noqa: BLE001 - one broken run must not take the others with it
            run = failed(night, run, error, time.monotonic() - began_s)
        follow.show(night.end(run, started_ns))
    return not limit.by_user


def prepared(night: Night, run: NightRun, place_of: PlaceOf) -> NightRun:
    """The run with a directory of its own that says what is planned; night.json names it before it is used.

    Raises InputError, MachineError.
    """
    file, entry = night.file.experiments[run.entry], night.entry_of(run)
    run = night.note(replace(run, state=State.RUNNING, tries=run.tries + 1))
    topology = load_topology(file.experiment.topology)
    place = place_of(run.place)
    plan = place.fitted(make_plan(file.experiment, topology, seed=run.seed, links_kind=entry.links))
    place.check(night.directory.runs, plan)
    described = {"experiment": plain(file.experiment), "topology": plain(topology)}
    try:
        made = RunDirectory.create(
            night.directory.runs, plan.experiment, datetime.now(UTC), secrets.token_hex(3)
        )
        run = night.note(replace(run, run=made.name))
        write_plan(made, plan, described)
    except OSError as error:
        raise MachineError(f"cannot write the run below {night.directory.runs}: {error.strerror}") from error
    return run


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


def _carried_out(night: Night, run: NightRun, place: "Place", follow: Follower, began_s: float) -> NightRun:
    made = _directory(night, run)
    done = perform(made, place, follow, analyze=True)
    if done.by_user:
        raise KeyboardInterrupt
    return _analysed(run, made, done, follow, began_s)


def _analysed(run: NightRun, made: RunDirectory, done: Ended, follow: Follower, began_s: float) -> NightRun:
    if not made.summary_json.exists() and analyse(made, done, follow) is None:
        return unmeasured(run, done.content, time.monotonic() - began_s)
    write_page(made, follow)
    return finished(run, made, time.monotonic() - began_s)


def _directory(night: Night, run: NightRun) -> RunDirectory:
    made = night.directory.run_of(run)
    assert made is not None  # noqa: S101
    return made
