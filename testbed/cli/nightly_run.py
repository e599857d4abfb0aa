"""`cutset nightly SUITE`: makes the runs of a night one after another, and ends it.

What is done is written down after each run, so that a crash, a reboot or Ctrl-C loses only the run that was
on: `--resume` goes on there.
"""

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime

import click

from experiments.nights import NightDirectory, NightRecord, NightRun
from experiments.suite import SuiteFile, read_suite
from testbed.backends.place import Place
from testbed.cli import exit_codes
from testbed.cli.nightly_end import end_night
from testbed.cli.nightly_night import Night, earlier_durations_s
from testbed.cli.nightly_one import PlaceOf, make_one
from testbed.cli.nightly_options import NightOptions
from testbed.cli.nightly_room import make_room
from testbed.cli.nightly_text import show_planned
from testbed.cli.nightly_torn import settle_torn
from testbed.cli.places import check_place, opened
from testbed.nightly.hooks import check_hooks
from testbed.nightly.lock import night_lock
from testbed.nightly.planning import Expected, budget_left_s, check_jobs, digest, new_record, skipped
from testbed.runner.versions import commit
from topologies.errors import InputError

RESUMABLE_NS = 24 * 3600 * 10**9
"""How old a night may be that `--resume` finds by itself."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the user asked for."""

    suite: str
    night: date | None  # None: today, or with resume the last one
    resume: bool
    options: NightOptions


def run_night(asked: Asked) -> int:
    """Returns the exit code. Raises InputError, MachineError, TestbedError, AnalysisError."""
    file = _read(asked)
    with night_lock(asked.options.history, who=f"{file.suite.suite}"):
        night = _resumed(asked, file) if asked.resume else _new(asked, file)
        if night is None:
            return exit_codes.FINE
        night.say(f"night {night.record.night} of {file.suite.suite}: {len(night.pending)} runs to go")
        outcome = "crashed"
        try:
            settle_torn(night)
            outcome = "completed" if _make_all(night, asked) else "interrupted"
        except KeyboardInterrupt:
            outcome = "interrupted"
        finally:
            if outcome != "completed":
                with contextlib.suppress(OSError):  # whatever broke is on its way out already
                    settle_torn(night)
            code = end_night(night, outcome, asked)
    return code


def show_dry(asked: Asked) -> int:
    """Show what would run."""
    file = _read(asked)
    night = asked.night or today()
    record = new_record(file, night, commit=None, started_ns=0)
    show_planned(file, record, Expected(file, earlier_durations_s(asked.options.out, file, record.night)))
    return exit_codes.FINE


def today() -> date:
    """By this machine's clock and time zone."""
    return datetime.now().astimezone().date()


def _read(asked: Asked) -> SuiteFile:
    file = read_suite(asked.suite)
    check_jobs(asked.options.jobs, file)
    _ = asked.options.keep_bytes  # or it raises
    check_hooks((*asked.options.hooks, *asked.options.hooks_always))
    for entry in file.suite.entries:
        check_place(file.place(entry))
    return file


def _new(asked: Asked, file: SuiteFile) -> Night:
    night = asked.night or today()
    directory = NightDirectory.of(asked.options.out, night, file.suite.suite)
    if directory.night_json.is_file():
        advice = "--date gives another one a date" if directory.read().over else "--resume goes on with it"
        raise InputError(str(directory.path), None, "", f"this night has begun already: {advice}")
    record = new_record(file, night, commit=commit(), started_ns=time.time_ns())
    directory.write(record)
    return Night(
        directory,
        record,
        file,
        asked.options.history,
        earlier_durations_s(asked.options.out, file, record.night),
    )


def _resumed(asked: Asked, file: SuiteFile) -> Night | None:
    """The night to go on with, or None with a line that says why there is none."""
    name = file.suite.suite
    if asked.night is not None:
        directory = NightDirectory.of(asked.options.out, asked.night, name)
        if not directory.night_json.is_file():
            raise InputError(str(directory.path), None, "", "there is no such night")
    elif (found := NightDirectory.latest(asked.options.out, name)) is not None:
        directory = found
    else:
        click.echo(f"nothing to go on with: {name} has no night yet", err=True)
        return None
    record = directory.read()
    if record.over:
        click.echo(f"nothing to go on with: the night {record.night} of {name} is over", err=True)
        return None
    if asked.night is None and time.time_ns() - record.started_ns > RESUMABLE_NS:
        said = f"the night {record.night} of {name} is too old; --date {record.night} goes on with it"
        click.echo(f"nothing to go on with: {said}", err=True)
        return None
    if record.digest != digest(file):
        raise InputError(str(directory.path), None, "", "cannot go on: the suite was changed since it began")
    night = Night(
        directory,
        record,
        file,
        asked.options.history,
        earlier_durations_s(asked.options.out, file, record.night),
    )
    if record.commit != commit():
        night.say("note: the code has changed since the night began")
    return night


def _night(directory: NightDirectory, record: NightRecord, file: SuiteFile, options: NightOptions) -> Night:
    earlier_s = earlier_durations_s(options.out, file, record.night)
    return Night(directory, record, file, options.history, earlier_s)


def _make_all(night: Night, asked: Asked) -> bool:
    """Make the runs that are to go; false if the user ended it."""
    with _places() as place_of:
        if asked.options.jobs > 1:
            from testbed.cli.nightly_jobs import make_side_by_side

            make_side_by_side(night, asked.options.jobs, place_of)
        make_room(night, asked.options.keep_bytes)
        for run in night.pending:
            if not fits(night, run):
                continue
            if not make_one(night, run, place_of):
                return False
            make_room(night, asked.options.keep_bytes)
    return True


def fits(night: Night, run: NightRun) -> bool:
    """Whether there is time for a run; if not, that is noted."""
    needed_s = night.expected.of(run, night.record)
    left_s = budget_left_s(run, night.record, night.file)
    if needed_s <= left_s:
        return True
    night.say(night.leave(skipped(run, needed_s, left_s)))
    return False


@contextlib.contextmanager
def _places() -> Iterator[PlaceOf]:
    """Opens each place once, when it is first needed."""
    with contextlib.ExitStack() as stack:
        known: dict[str, Place] = {}

        def place_of(name: str) -> Place:
            if name not in known:
                known[name] = stack.enter_context(opened(name, lambda text: click.echo(text, err=True)))
            return known[name]

        yield place_of
