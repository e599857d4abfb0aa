"""One run: plan, check, prepare, execute, analyse, report. Used by `cutset run`, sweeps, nights and tests.

`run_once` is `cutset run` of an experiment with a single run; it also prints the result.
"""

import contextlib
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self

import click

from experiments.backend_names import LOCAL
from experiments.model import Experiment
from experiments.planned.plan import Plan
from experiments.records.run_record import RunRecord
from experiments.records.rundir import RunDirectory
from testbed.backends.backend import Backend
from testbed.campaign.backend_selection import open_backend
from testbed.campaign.in_use import sole_writer
from testbed.campaign.live_view import LiveWatcher
from testbed.campaign.run_results import PerformedRun
from testbed.campaign.texts.outcome import exit_code, show_outcome
from testbed.campaign.texts.progress import Follower, follower
from testbed.planning import make_plan
from testbed.resources import smaller_buffers
from testbed.run_selection import RunSelection
from testbed.runner import run_control
from testbed.runner.run_control import RunResult
from testbed.sweeps import plain
from topologies.loader import load_topology
from topologies.model import Topology

ANALYSIS_DISK_BYTES = 64 << 20


class RunRequest(Protocol):
    """The inputs of a run."""

    def plan(self) -> Plan:
        """Return its plan. Raises InputError."""

    def described(self) -> dict[str, Any]:
        """Return its inputs as plain JSON, for run.json."""


@dataclass(frozen=True, slots=True)
class ExperimentRunRequest:
    """The inputs of a run: an experiment, and its topology. also: further fields of its run.json."""

    experiment: Experiment
    topology: Topology
    seed: int
    links: str
    also: dict[str, Any] | None = None

    @classmethod
    def for_experiment(cls, experiment: Experiment, seed: int, links: str = "auto") -> Self:
        """Return the request for an experiment with its topology. Raises InputError."""
        return cls(experiment, load_topology(experiment.topology), seed, links)

    def plan(self) -> Plan:
        """Return its plan. Raises InputError."""

        return make_plan(self.experiment, self.topology, seed=self.seed, links_kind=self.links)

    def described(self) -> dict[str, Any]:
        """Return its inputs as plain JSON."""

        return {
            "experiment": plain(self.experiment),
            "topology": plain(self.topology),
            **(self.also or {}),
        }


def prepare(
    request: RunRequest, backend: Backend, out: Path, *, directory: Callable[[], RunDirectory] | None = None
) -> RunDirectory:
    """Make the directory of a run below `out`, with a run.json that holds its plan.

    directory: makes the directory, if the caller determines its name. Raises InputError, and MachineError if
    the backend cannot run the plan or the directory cannot be written.
    """

    return run_control.prepare(out, planned(request, backend, out), request.described(), directory)


def planned(request: RunRequest, backend: Backend, out: Path) -> Plan:
    """Return the plan for this backend after checking that it can run it. Raises InputError, MachineError."""
    plan = backend.adapted(request.plan())
    backend.check(out, plan)
    return plan


def make(
    run: RunDirectory,
    backend: Backend,
    follow: Follower,
    *,
    analyze: bool = True,
    page: Callable[[str], bool] = lambda verdict: True,
) -> PerformedRun:
    """Execute a prepared run, analyse it and write its report.

    page: decides by the verdict whether a report is written. Raises KeyboardInterrupt if the user ended the
    run, MachineError and TestbedError if it broke, AnalysisError.
    """
    with sole_writer(run.path):
        ended = perform(run, backend, follow, analyze=analyze)
        if ended.by_user:
            raise KeyboardInterrupt
        return conclude(run, ended.record, follow, page=page) if analyze else PerformedRun(ended.record)


def perform(
    run: RunDirectory,
    backend: Backend,
    follow: Follower,
    *,
    analyze: bool,
    watching: LiveWatcher | None = None,
) -> RunResult:
    """Execute a run on its backend.

    analyze: whether an analysis follows, so that Spark may start early. watching: gets the run's messages,
    and the parts of its captures are joined at the end. Raises the errors of the backend: MachineError,
    TestbedError, KeyboardInterrupt.
    """

    def hear(message: dict[str, Any]) -> None:
        follow(message)
        if watching is not None:
            watching.exchange(message, follow)
        if analyze and message.get("did") == "drained":
            from analysis.jobs.choice import start_spark_early

            start_spark_early([run])  # nothing is measured any more while the run's files are closed

    ended = backend.execute(run, hear)
    if watching is not None:
        watching.read_rest(follow)
    return ended


def conclude(
    run: RunDirectory,
    record: RunRecord,
    follow: Follower,
    *,
    page: Callable[[str], bool] = lambda verdict: True,
) -> PerformedRun:
    """Analyse an ended run and write its report. A line says why if it cannot be analysed."""
    if record.times.zero_ns is None:
        follow.say("not analysed: the run ended before its nodes published anything")
        return PerformedRun(record, problem="it ended before time 0")
    if shutil.disk_usage(run.path).free < ANALYSIS_DISK_BYTES:
        follow.say(f"not analysed: too little disk space; free some, then run `cutset analyze {run.path}`")
        return PerformedRun(record, problem="there is too little disk to analyse it")
    from analysis.pipeline import analyze

    summary = analyze(run, progress=follow.say)
    if page(summary["verdict"]):
        write_page(run, follow)
    return PerformedRun(record, summary)


def write_page(run: RunDirectory, follow: Follower) -> None:
    """Write the report of an analysed run."""
    from analysis.pages.report import write_report

    follow.say("writing the report")
    write_report(run)


def run_once(chosen: RunSelection, out: Path, *, analyze: bool, live: bool = False) -> int:
    """Make one run, print its result, and return the exit code. live: show the run while it goes on."""

    experiment = chosen.file.experiment
    request = ExperimentRunRequest.for_experiment(experiment, chosen.seed, chosen.links)
    with contextlib.ExitStack() as stack:
        backend = stack.enter_context(open_backend(chosen.backend, lambda text: click.echo(text, err=True)))
        plan = planned(request, backend, out)
        if chosen.backend == LOCAL and (warning := smaller_buffers(plan)) is not None:
            click.echo(click.style(f"warning: {warning}", fg="yellow"), err=True)
        run = run_control.prepare(out, plan, request.described())
        stack.enter_context(sole_writer(run.path))
        click.echo(f"run {run.path}", err=True)
        follow = stack.enter_context(follower())
        watching = stack.enter_context(LiveWatcher(run)) if live else None
        if watching is not None:
            follow.say("starting the live view")
            watching.await_ready(follow)
        ended = perform(run, backend, follow, analyze=analyze, watching=watching)
        summary = conclude(run, ended.record, follow).summary if analyze else None
        if summary is not None and watching is not None:
            watching.show_report(summary["verdict"], follow)
    show_outcome(run, ended.record, summary)
    return exit_code(ended, summary, analyze=analyze)
