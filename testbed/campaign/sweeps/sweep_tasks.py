"""The runs of a sweep in virtual time, spread over Spark tasks: a task simulates one run and analyses it.

A task reads the plan from the run's directory and writes the results there. The same seed gives the same
results, on any machine and in any order. The driver reads the directories to show the progress, so they must
be on a file system that all tasks share: this machine's, unless there is a cluster.
"""

import threading
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.errors import AnalysisError
from experiments.backend_names import SIMULATOR
from experiments.campaigns.sweepdir import SweepRun
from experiments.records.json_files import read_json, write_json
from experiments.records.rundir import RunDirectory
from testbed.campaign.backend_selection import open_backend
from testbed.campaign.in_use import sole_writer
from testbed.campaign.run_results import PerformedRun, broken, concluded
from testbed.campaign.sweeps.sweep import RunningSweep
from testbed.campaign.texts.progress import Follower, follower
from topologies.errors import InputError

LOOK_S = 0.25
STOP_TIMEOUT_S = 20.0


@dataclass(frozen=True, slots=True)
class SimulatePoint:
    """One run for a task. Its result is written into the run's directory."""

    run: Path
    analyze: bool

    def execute(self) -> None:
        """Simulate and analyse the run. Never raises: an error becomes part of the result."""
        from testbed.backends.simulator import simulate

        run = RunDirectory(self.run)
        began_s = time.monotonic()
        problem = None
        try:
            with sole_writer(run.path):
                simulate(run, lambda message: None)
                if self.analyze:
                    from analysis.pipeline import analyze_here

                    analyze_here(run, progress=lambda text: None)
        except Exception as error:  # noqa: BLE001 - one broken run must not take the others with it
            frame = traceback.extract_tb(error.__traceback__)[-1]
            problem = f"{type(error).__name__}: {error} ({Path(frame.filename).name}:{frame.lineno})"
        write_json(result_file(run), {"problem": problem, "duration_s": time.monotonic() - began_s})


def result_file(run: RunDirectory) -> Path:
    """Return the file into which a task writes the result of its run."""
    return run.logs / "task.json"


def run_in_tasks(sweep: RunningSweep, *, analyze: bool) -> None:
    """Make the pending runs. Raises AnalysisError if Spark breaks, KeyboardInterrupt."""
    from analysis.session import spark_session

    runs = sweep.record.pending
    with (
        follower(terse=f"{len(runs)} runs in virtual time") as follow,
        open_backend(SIMULATOR, follow.say) as backend,
    ):
        runs = [sweep.make_run(run, backend) for run in runs]
        tasks = [SimulatePoint(sweep.directory.run_of(run).path.resolve(), analyze) for run in runs]
        follow.say("starting Spark")
        context = spark_session().sparkContext
        job = _SparkSweepJob(context, tasks)
        try:
            _follow(sweep, runs, job, follow)
        finally:
            job.stop()


class _SparkSweepJob:
    """The tasks as one Spark job, in a thread."""

    def __init__(self, context: Any, tasks: list[SimulatePoint]) -> None:
        self._context = context
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, args=(tasks,), name="sweep", daemon=True)
        self._thread.start()

    @property
    def ended(self) -> bool:
        """Whether all tasks have ended. Raises AnalysisError if Spark broke."""
        if self._thread.is_alive():
            return False
        if self._error is not None:
            raise AnalysisError(
                f"the sweep's tasks broke: {str(self._error).strip().partition(chr(10))[0]}"
            ) from self._error
        return True

    def stop(self) -> None:
        """Cancel the tasks that are not done yet. Idempotent."""
        if self._thread.is_alive():
            self._context.cancelAllJobs()
            self._thread.join(STOP_TIMEOUT_S)

    def _run(self, tasks: list[SimulatePoint]) -> None:
        try:
            self._context.parallelize(tasks, len(tasks)).foreach(lambda task: task.execute())
        except Exception as error:  # noqa: BLE001 - for the thread that waits
            self._error = error


def _follow(sweep: RunningSweep, runs: list[SweepRun], job: _SparkSweepJob, follow: Follower) -> None:
    """Record each run as it is done, until all are."""
    waiting = list(runs)
    while waiting:
        ended = job.ended
        done = [run for run in waiting if result_file(sweep.directory.run_of(run)).exists()]
        for run in done:
            waiting.remove(run)
            follow.show(sweep.end_run(_result(sweep, run)))
        if ended and not done and waiting:
            raise AnalysisError(f"{len(waiting)} runs were never made, {waiting[0].name} among them")
        if not done:
            follow({})
            time.sleep(LOOK_S)


def _result(sweep: RunningSweep, run: SweepRun) -> SweepRun:
    """Return the result of a run whose task is done."""
    directory = sweep.directory.run_of(run)
    result = read_json(result_file(directory))
    if result["problem"] is not None:
        return broken(run, result["problem"], result["duration_s"])
    try:
        summary = directory.read_summary() if directory.summary_json.exists() else None
        return concluded(run, PerformedRun(directory.read_run(), summary), result["duration_s"])
    except InputError as error:
        return broken(run, str(error), result["duration_s"])
