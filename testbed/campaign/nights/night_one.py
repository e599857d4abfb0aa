"""One run of a night: plan, run, analyse, report and add to the history, or settle it after a crash.

An error ends the run, not the night. After a crash, runs are still recorded as running although no process
executes them. A run that has ended is never made again, even if it failed; otherwise failures would be
repeated until they pass.
"""

import secrets
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from analysis.pages.study.results_pages import MeasuredPoint, measured_study, measured_sweep
from analysis.pages.study.study_page import write_study_report
from experiments.campaigns.campaign import CampaignVerdict, FailureKind, RunState
from experiments.campaigns.nights import NightRun
from experiments.campaigns.studydir import StudyDirectory
from experiments.campaigns.sweepdir import SweepRecord
from experiments.files.sanitize import sanitize
from experiments.records.run_record import Outcome
from experiments.records.rundir import RunDirectory
from testbed.backends.studies import execute as execute_study
from testbed.campaign.exit_codes import EXPECTED_ERRORS
from testbed.campaign.in_use import sole_writer
from testbed.campaign.nights.night import Night
from testbed.campaign.nights.night_hunt import hunt_for
from testbed.campaign.one_run import ExperimentRunRequest, conclude, make, prepare, write_page
from testbed.campaign.run_results import NAMED_MAX, PerformedRun, broken, concluded, ended
from testbed.campaign.sweeps.study import new_study
from testbed.campaign.sweeps.sweep_run import execute, new_directory, new_sweep
from testbed.campaign.texts.campaign_text import position
from testbed.campaign.texts.progress import Follower, follower
from testbed.interrupts import Limit
from testbed.nightly.planning import AROUND_A_RUN_S, TRIES_MAX, budget_left_s
from testbed.run_selection import RunSelection
from topologies.errors import InputError
from topologies.first_texts import first_texts

if TYPE_CHECKING:
    from testbed.backends.backend import Backend

WORST_FIRST: dict[CampaignVerdict, FailureKind] = {
    "crashed": FailureKind.CRASH,
    "failed": FailureKind.EXPECTATION,
    "invalid": FailureKind.FIDELITY,
}
"""The verdicts that make a whole sweep fail if one run has them, worst first, and the kind of failure."""
HUNT_END_S = 300.0
"""Time in which a hunt still shrinks its findings after its time is over."""
OTHERS_S = 120.0
"""How long to wait for a run that another command reads or analyses: a failure would be permanent."""
BackendOf = Callable[[str], "Backend"]
"""Returns the backend of this name, opened if necessary. Raises InputError, MachineError."""


def make_one(night: Night, run: NightRun, backend_of: BackendOf) -> bool:
    """Make a run and record its result; return false if the user ended it, and the night."""

    def work(follow: Follower, began_s: float) -> NightRun:
        started = prepared(night, run, backend_of)
        done = make(directory_of(night, started), backend_of(run.backend), follow)
        return concluded(started, done, time.monotonic() - began_s)

    return _limited(night, run, work, budget_left_s(run, night.record, night.file))


def finish_one(night: Night, run: NightRun) -> bool:
    """Analyse a run that has ended and record its result; return the same as `make_one`."""

    def finish(follow: Follower, began_s: float) -> NightRun:
        again = night.note(replace(run, tries=run.tries + 1))
        directory = directory_of(night, run)
        with sole_writer(directory.path, OTHERS_S):
            if directory.summary_json.exists():
                write_page(directory, follow)
                return finished(again, directory, time.monotonic() - began_s)
            done = conclude(directory, directory.read_run(), follow)
            return concluded(again, done, time.monotonic() - began_s)

    return _limited(night, run, finish, max(AROUND_A_RUN_S, budget_left_s(run, night.record, night.file)))


def make_sweep_or_hunt(night: Night, run: NightRun) -> bool:
    """Make a whole sweep with one page and one verdict, a study, or a hunt; return the same as `make_one`.

    The result does not enter the history, which compares single points between nights. A sweep interrupted by
    a crash is made again from the beginning; a hunt continues.
    """
    began_s = time.monotonic()
    limit_s = budget_left_s(run, night.record, night.file)
    hunt_us = night.entry_of(run).hunt_us

    def work() -> NightRun:
        if night.entry_of(run).study is not None:
            return _studied(night, run, began_s)
        if hunt_us is None:
            return _swept(night, run, began_s)
        return hunt_for(night, _begun(night, run), min(hunt_us / 1e6, limit_s), began_s)

    made, goes_on = _bounded(night, run, limit_s + HUNT_END_S * (hunt_us is not None), work)
    if made is None:
        return False
    click.echo(night.leave(made), err=True)
    return goes_on


def _limited(
    night: Night, run: NightRun, work: Callable[[Follower, float], NightRun], limit_s: float
) -> bool:
    """Work on a run for at most `limit_s`. work: called with the start by time.monotonic."""
    began_s = time.monotonic()
    with follower(terse=f"{position(night.record.ended + 1, len(night.record.runs))} {run.name}") as follow:
        made, goes_on = _bounded(night, run, limit_s, lambda: work(follow, began_s))
        if made is None:
            return False
        follow.show(night.end(made))
    return goes_on


def _bounded(
    night: Night, run: NightRun, limit_s: float, work: Callable[[], NightRun]
) -> tuple[NightRun | None, bool]:
    """Work on a run for at most `limit_s`.

    Returns the run (None: the user ended it), and whether the night goes on. Raises MachineError if it broke
    and a disk is full.
    """
    began_s, limit = time.monotonic(), Limit()
    try:
        made = limit.within(limit_s, work)
        if made.failure is FailureKind.HARNESS:
            night.check_room()
    except KeyboardInterrupt:
        if limit.by_user or not limit.passed:
            return None, False
        made = broken(night.record.named(run.name), stopped_after(limit_s), time.monotonic() - began_s)
    except Exception as error:  # noqa: BLE001 - one broken run must not take the others with it
        night.check_room()
        made = failed(night, run, error, time.monotonic() - began_s)
    return made, not limit.by_user


def _swept(night: Night, run: NightRun, began_s: float) -> NightRun:
    """Make a sweep. Raises KeyboardInterrupt if the user interrupts it."""
    file, entry = night.file.experiments[run.entry], night.entry_of(run)
    run = _begun(night, run)
    chosen = RunSelection.from_options(
        file, backend=run.backend, links=entry.links, seed=run.seed, repeat=None
    )
    directory = new_directory(night.directory.runs, chosen.file.experiment.name)
    run = night.note(replace(run, run=directory.name))
    with sole_writer(directory.path):
        sweep = new_sweep(directory, chosen)
        if execute(sweep, analyze=True) is Outcome.INTERRUPTED:
            raise KeyboardInterrupt
    made = sweep_as_run(run, sweep.record, time.monotonic() - began_s)
    return with_figures(night, made, measured_sweep(directory)) if entry.unchanged else made


def _studied(night: Night, run: NightRun, began_s: float) -> NightRun:
    """Make a study. Raises KeyboardInterrupt if the user interrupts it."""
    run = _begun(night, run)
    path = new_study(night.file.studies[run.entry], (run.seed,), night.directory.runs)
    run = night.note(replace(run, run=path.name))
    directory = StudyDirectory(path)
    execute_study(directory, run.seed, lambda *_: None)
    write_study_report(directory)
    made = ended(run, time.monotonic() - began_s, verdict="passed")
    return with_figures(night, made, measured_study(directory))


def with_figures(night: Night, run: NightRun, measured: MeasuredPoint) -> NightRun:
    """Return a run with its figures; it fails if a figure differs from the last night that has it.

    The same seed gives the same figures in virtual time, so a figure changes only with the code.
    """
    figures = {row.what: row.ours for row in measured.rows}
    run = replace(run, figures=figures)
    before, since = figures, ""
    for record in night.directory.earlier(night.record.suite):
        known = next((each.figures for each in record.runs if each.name == run.name and each.figures), None)
        if known is not None:
            before, since = known, f"{record.night} (commit {record.commit or 'unknown'})"
            break
    changes = [
        f"{what}: {before.get(what, 'none')}, now {figures.get(what, 'none')}"
        for what in dict.fromkeys((*before, *figures))
        if before.get(what) != figures.get(what)
    ]
    if not changes:
        return run
    problem = "; ".join([f"figures changed since {since}", *first_texts(changes, NAMED_MAX)])
    reasons = sanitize("; ".join(filter(None, (run.problem, problem))))
    return replace(run, verdict="failed", failure=FailureKind.EXPECTATION, problem=reasons)


def _begun(night: Night, run: NightRun) -> NightRun:
    return night.note(replace(run, state=RunState.RUNNING, tries=run.tries + 1, started_ns=time.time_ns()))


def prepared(night: Night, run: NightRun, backend_of: BackendOf) -> NightRun:
    """Make the run's directory with its plan; night.json names it before it is used.

    Raises InputError, MachineError.
    """
    experiment = night.file.experiments[run.entry].experiment
    run = _begun(night, run)

    def directory() -> RunDirectory:
        made = RunDirectory.create(
            night.directory.runs, experiment.name, datetime.now(UTC), secrets.token_hex(3)
        )
        night.note(replace(run, run=made.name))
        return made

    request = ExperimentRunRequest.for_experiment(experiment, run.seed, night.entry_of(run).links)
    prepare(request, backend_of(run.backend), night.directory.runs, directory=directory)
    return night.record.named(run.name)


def finished(run: NightRun, made: RunDirectory, took_s: float) -> NightRun:
    """Return the run with the summary in its directory. Raises InputError."""
    return concluded(run, PerformedRun(made.read_run(), made.read_summary()), took_s)


def stopped_after(limit_s: float) -> str:
    """Return the problem of a run that exceeded its time."""
    return f"it was stopped after {limit_s:.0f} s, the rest of the budget"


def failed(night: Night, run: NightRun, error: Exception, took_s: float) -> NightRun:
    """Return a run that an error ended. A defect's traceback goes into the night's log."""
    if isinstance(error, EXPECTED_ERRORS):
        text = str(error)
    else:
        text = f"{type(error).__name__}: {error}"
        night.log("".join(traceback.format_exception(error)))
    return broken(night.record.named(run.name), text, took_s)


def directory_of(night: Night, run: NightRun) -> RunDirectory:
    """Return the directory of a run that was begun."""
    made = night.directory.run_of(run)
    assert made is not None
    return made


def sweep_as_run(run: NightRun, record: SweepRecord, took_s: float) -> NightRun:
    """Return a complete sweep as one run."""
    verdicts = [each.verdict or "crashed" for each in record.runs]
    unmet = [f"{each.text} did not hold" for each in record.missed]
    kinds = [*verdicts, *("failed" for _ in unmet)]
    verdict: CampaignVerdict = next((kind for kind in WORST_FIRST if kind in kinds), "passed")
    others = [f"{verdicts.count(kind)} of {len(verdicts)} runs {kind}" for kind in sorted({*verdicts})]
    reasons = [*(text for text in others if not text.endswith("passed")), *unmet]
    return ended(run, took_s, WORST_FIRST.get(verdict), "; ".join(reasons), verdict=verdict)


def settle_torn(night: Night) -> None:
    """Settle every run that is recorded as running, so that the night can continue. Raises KeyboardInterrupt.

    A run that is in the history is only recorded, and a run that has ended is only analysed. Any other run is
    torn: its directory is set aside and it is made again, unless it has ended the night too often.
    """
    for run in _running(night):
        if (kept := _from_history(night, run)) is not None:
            night.say(night.leave(kept))
        elif _has_ended(night, run) and run.tries <= TRIES_MAX:
            if not finish_one(night, run):
                raise KeyboardInterrupt
        elif run.tries < TRIES_MAX:
            _set_aside(night, run)
        else:
            problem = f"it was begun {run.tries} times, and ended the night each time"
            night.say(night.end(broken(_set_aside(night, run), problem, 0.0)))


def set_torn_aside(night: Night) -> None:
    """Set aside the torn runs of a night that ends now; `settle_torn` handles runs that have ended."""
    for run in _running(night):
        if not _has_ended(night, run) and _from_history(night, run) is None:
            _set_aside(night, run)


def _running(night: Night) -> list[NightRun]:
    return [run for run in night.record.runs if run.state is RunState.RUNNING]


def _has_ended(night: Night, run: NightRun) -> bool:
    """Return whether the run ended by itself, successfully or not."""
    made = night.directory.run_of(run)
    try:
        return made is not None and made.read_run().outcome in {Outcome.COMPLETED, Outcome.CRASHED}
    except InputError:
        return False


def _set_aside(night: Night, run: NightRun) -> NightRun:
    aside = night.note(night.directory.set_aside(run))
    if aside.torn != run.torn:
        night.say(f"{run.name} was torn: what it left is {aside.torn[-1]}")
    return aside


def _from_history(night: Night, run: NightRun) -> NightRun | None:
    """Return the run with its result in the history, or None if it is not there.

    The run is found by its directory's name or, if nothing was run, by its start in this night.
    """
    from analysis.history import HistoryFilter
    from analysis.history.regressions.findings import failure_of

    where = HistoryFilter(night.record.suite, run.entry, since=night.record.night, until=night.record.night)
    rows = [row for row in night.history.runs(where).to_pylist() if row["repeat"] == run.repetition]
    for row in rows:
        if row["run"] == run.run or (not row["path"] and row["started_ns"] >= night.record.started_ns):
            expectations = night.history.expectations(replace(where, run=row["run"])).to_pylist()
            missed = [kept["text"] for kept in expectations if not kept["held"]]
            return replace(_as_left(night, run, row), failure=failure_of(row, missed))
    return None


def _as_left(night: Night, run: NightRun, row: dict[str, Any]) -> NightRun:
    """Return the run by its directory, or by its row in the history once that is gone."""
    made = night.directory.run_of(run)
    try:
        if made is not None and made.summary_json.exists():
            return finished(run, made, 0.0)
    except InputError:
        pass  # use the row of the history instead
    return broken(run, "; ".join(row["problems"]) or f"{row['outcome']}, but not analysed", 0.0)
