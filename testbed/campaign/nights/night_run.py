"""`cutset nightly SUITE`: makes the runs of a night one after another, and ends it.

The record is written after each run, so that a crash, a reboot or Ctrl-C loses only the current run:
`--resume` continues there.

One night is made at a time: locks are held on the history that nights are added to and on the folder of
their records.
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path

import click

from experiments.campaigns.nights import NIGHTS, NightDirectory, NightRecord, night_of
from experiments.files.locks import LockHeldError, enter_when_free, file_lock
from experiments.records.run_record import Outcome
from experiments.suite import SuiteFile, read_suite
from testbed.backends.backend import Backend
from testbed.campaign import exit_codes
from testbed.campaign.backend_selection import check_backend, open_backend
from testbed.campaign.nights.night import Night, earlier_durations_s, make_room
from testbed.campaign.nights.night_end import NightEnd, conclude, end_night, report_missing_night
from testbed.campaign.nights.night_jobs import make_side_by_side
from testbed.campaign.nights.night_one import (
    BackendOf,
    make_one,
    make_sweep_or_hunt,
    set_torn_aside,
    settle_torn,
)
from testbed.campaign.nights.night_options import NightOptions
from testbed.campaign.nights.night_text import show_planned
from testbed.errors import MachineError
from testbed.interrupts import sigterm_like_ctrl_c
from testbed.nightly.planning import DurationEstimate, check_jobs, digest, new_record
from testbed.runner.versions import commit
from topologies.errors import InputError

RESUMABLE_NS = 24 * 3600 * 10**9
"""The maximum age of a night that `--resume` continues without `--date`."""
NAME = "nightly.lock"


@dataclass(frozen=True, slots=True)
class NightRequest:
    """The user's request for a night."""

    suite: str
    night: date | None  # None: today, or with resume the last one
    resume: bool
    wait_s: float  # for another night to be over
    options: NightOptions


def run_night(request: NightRequest) -> int:
    """Make a night and return the exit code. Raises InputError, MachineError, TestbedError, AnalysisError."""
    if not request.resume:  # the wait for another night may pass midnight
        request = replace(request, night=request.night or today())
    with contextlib.ExitStack() as stack:
        sigterm_came = stack.enter_context(sigterm_like_ctrl_c())
        try:
            night = _begin(request, stack)
        except exit_codes.EXPECTED_ERRORS as error:
            report_missing_night(request.suite, request.night or today(), request.options, error)
            raise
        return night if isinstance(night, int) else _make_and_end(night, request, sigterm_came)


def _begin(request: NightRequest, stack: contextlib.ExitStack) -> Night | int:
    """Return the night, locked until the stack is closed; or the exit code, if there is none to resume."""
    file = _read(request)
    options, say = request.options, partial(click.echo, err=True)
    stack.enter_context(
        night_locks(options.history, options.out, who=file.suite.suite, wait_s=request.wait_s, say=say)
    )
    return _resumed(request, file) if request.resume else _new(request, file)


def _make_and_end(night: Night, request: NightRequest, sigterm_came: Callable[[], bool]) -> int:
    night.say(f"night {night.record.night} of {night.record.suite}: {len(night.record.pending)} runs to go")
    ending = NightEnd(Outcome.CRASHED, unchecked="the night crashed")
    interrupted = NightEnd(Outcome.INTERRUPTED, unchecked="the night was interrupted")
    try:
        settle_torn(night)
        ending = conclude(night, request.options) if _make_all(night, request) else interrupted
    except KeyboardInterrupt:
        ending = interrupted
    except Exception as error:
        full = night.full_disk
        if full is None:
            ending = replace(ending, unchecked=f"the night crashed: {error}")
            raise
        ending = replace(ending, unchecked=full, code=exit_codes.MACHINE)
        raise MachineError(full) from error
    finally:
        if ending.outcome is not Outcome.COMPLETED:
            with night.going_on("torn runs were not set aside"):
                set_torn_aside(night)
        by_user = ending.outcome is Outcome.INTERRUPTED and not sigterm_came()
        code = end_night(night, ending, request.options, user_knows=by_user)
    return code


def show_dry(request: NightRequest) -> int:
    """Print the runs that the night would make, and return the exit code."""
    file = _read(request)
    night = request.night or today()
    record = new_record(file, night, commit=None, started_ns=0)
    show_planned(
        file, record, DurationEstimate(file, earlier_durations_s(request.options.out, file, record.night))
    )
    return exit_codes.FINE


def today() -> date:
    """Return the date of a night that begins now."""
    return night_of(datetime.now(UTC))


def _read(request: NightRequest) -> SuiteFile:
    file = read_suite(request.suite)
    check_jobs(request.options.jobs, file)
    for entry in file.suite.entries:
        check_backend(file.place(entry))
    return file


def _new(request: NightRequest, file: SuiteFile) -> Night:
    night = request.night or today()
    directory = NightDirectory.for_night(request.options.out, night, file.suite.suite)
    if directory.night_json.is_file():
        advice = "set another date with --date" if directory.read().over else "continue it with --resume"
        raise InputError(str(directory.path), None, "", f"this night has begun already: {advice}")
    record = new_record(file, night, commit=commit(), started_ns=time.time_ns())
    try:
        directory.write(record)
    except OSError as error:
        raise MachineError(f"cannot write the night below {directory.path}: {error.strerror}") from error
    return _night(directory, record, file, request.options)


def _resumed(request: NightRequest, file: SuiteFile) -> Night | int:
    """Return the night to resume; or an exit code, after a line that explains why there is none."""
    name = file.suite.suite
    if request.night is not None:
        directory = NightDirectory.for_night(request.options.out, request.night, name)
        if not directory.night_json.is_file():
            raise InputError(str(directory.path), None, "", "there is no such night")
    elif (found := NightDirectory.latest(request.options.out, name)) is not None:
        directory = found
    else:
        click.echo(f"nothing to resume: {name} has no night yet", err=True)
        return exit_codes.FINE
    record = directory.read()
    if record.over:
        click.echo(f"nothing to resume: the night {record.night} of {name} is over", err=True)
        return record.exit_code or exit_codes.FINE
    if request.night is None and time.time_ns() - record.started_ns > RESUMABLE_NS:
        problem = f"the night {record.night} of {name} is too old; resume it with --date {record.night}"
        click.echo(f"nothing to resume: {problem}", err=True)
        return exit_codes.FINE
    if record.digest != digest(file):
        raise InputError(
            str(directory.path), None, "", "cannot continue: the suite was changed since it began"
        )
    planned = new_record(file, date.fromisoformat(record.night), commit=None, started_ns=0)
    record = record.resumed_from(planned.runs, str(directory.path))
    night = _night(directory, record, file, request.options)
    if night.code_changed:
        night.say("note: the code has changed since the night began")
    return night


def _night(directory: NightDirectory, record: NightRecord, file: SuiteFile, options: NightOptions) -> Night:
    earlier_s = earlier_durations_s(options.out, file, record.night)
    return Night(directory, record, file, options.history, earlier_s)


def _make_all(night: Night, request: NightRequest) -> bool:
    """Make the pending runs; return false if the user ended the night."""
    with _open_backends() as backend_of:
        if request.options.jobs > 1:
            make_side_by_side(night, request.options.jobs, backend_of)
        make_room(night, request.options.keep_bytes)
        for run in night.record.pending:
            night.check_room()
            if not night.fits(run):
                continue
            single = night.entry_of(run).is_single
            if not (make_one(night, run, backend_of) if single else make_sweep_or_hunt(night, run)):
                return False
            make_room(night, request.options.keep_bytes)
    return True


@contextlib.contextmanager
def _open_backends() -> Iterator[BackendOf]:
    """Open each backend once, when it is first needed."""
    with contextlib.ExitStack() as stack:
        known: dict[str, Backend] = {}

        def backend_of(name: str) -> Backend:
            if name not in known:
                known[name] = stack.enter_context(open_backend(name, lambda text: click.echo(text, err=True)))
            return known[name]

        yield backend_of


@contextlib.contextmanager
def night_locks(
    history: Path, runs: Path, *, who: str, wait_s: float = 0.0, say: Callable[[str], None] = lambda _: None
) -> Iterator[None]:
    """Lock a history and a folder of runs.

    who: the text that other commands show about this lock. wait_s: how long to wait for other nights in all;
    say: shows that it waits. Raises MachineError if another night still holds a lock, or it cannot be
    written.
    """
    until_s, told = time.monotonic() + wait_s, set[Path]()
    with contextlib.ExitStack() as stack:  # all take them in this order, to avoid deadlock
        for folder, option in ((history, "--history"), (runs / NIGHTS, "--out")):

            def tell(error: LockHeldError, folder: Path = folder) -> None:
                if folder not in told:
                    say(f"waiting until another night in {folder} is over: {error}")
                told.add(folder)

            try:
                folder.mkdir(parents=True, exist_ok=True)
                enter_when_free(stack, partial(file_lock, folder / NAME, who=who), until_s, tell)
            except LockHeldError as error:
                raise MachineError(
                    f"another night is running in {folder}: {error}; "
                    f"wait for its end with --wait, or set another folder with {option}"
                ) from None
            except OSError as error:
                raise MachineError(f"cannot write {folder} ({option}): {error.strerror}") from error
        yield
