"""Runs of sweeps and nights in virtual time, side by side: a worker simulates one run at a time.

A worker reads the plan from the run's directory and leaves the results there. The same seed gives the same
results, on any machine and in any order, so such runs do not disturb each other. For runs on real processes
see `testbed.nightly.planning.ALONE`.
"""

import os
import sys
import traceback
from pathlib import Path
from typing import Any, TypeVar

from experiments.campaigns.campaign import CampaignRun
from experiments.records.rundir import RunDirectory
from testbed.campaign.in_use import sole_writer
from testbed.campaign.jobs.pool import Job, JobPool, JobResult
from testbed.campaign.jobs.serving import serve
from testbed.campaign.run_results import PerformedRun, broken, concluded
from topologies.errors import InputError

LOG = "task.log"
"""The standard error of the worker, in the run's logs."""
Run = TypeVar("Run", bound=CampaignRun)


def simulation_pool(size: int | None) -> JobPool:
    """Return the workers. size: None: one for each processor."""
    return JobPool("testbed.campaign.jobs.simulated_run", {}, size)


def simulation_job(
    run: CampaignRun,
    made: RunDirectory,
    *,
    analyze: bool = True,
    page: bool = False,
    within_s: float | None = None,
) -> Job:
    """Return the job to simulate a prepared run, to analyse it and to write its report."""
    return Job(run, {"run": str(made.path.resolve()), "analyze": analyze, "page": page}, within_s)


def simulated(run: Run, made: RunDirectory, result: JobResult) -> Run:
    """Return a run with the result of its job."""
    problem = result.problem or (result.answer or {}).get("problem")
    if problem:
        return broken(run, problem, result.took_s)
    try:
        summary = made.read_summary() if made.summary_json.exists() else None
        return concluded(run, PerformedRun(made.read_run(), summary), result.took_s)
    except InputError as error:
        return broken(run, str(error), result.took_s)


def simulate_run(request: dict[str, Any]) -> dict[str, Any]:
    """Simulate and analyse a run. Never raises: the answer has an error as `problem`."""
    from testbed.backends.simulator import simulate

    run = RunDirectory(Path(request["run"]))
    try:
        with (run.logs / LOG).open("wb") as log:
            os.dup2(log.fileno(), sys.stderr.fileno())
        with sole_writer(run.path):
            simulate(run, lambda message: None)
            if request["analyze"]:
                from analysis.pipeline import analyze_here

                analyze_here(run, progress=lambda text: None)
            if request["page"]:
                from analysis.pages.report import write_report

                write_report(run)
    except Exception as error:  # noqa: BLE001 - one broken run must not take the others with it
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(frame.filename).name}:{frame.lineno}"
        return {"problem": f"{type(error).__name__}: {error} ({where})"}
    return {"problem": None}


if __name__ == "__main__":
    serve(lambda setup: simulate_run)
