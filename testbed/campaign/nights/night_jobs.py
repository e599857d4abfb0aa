"""The runs of a night in virtual time, several at once, in processes that die with this command."""

import time
from collections.abc import Iterator
from dataclasses import replace

from experiments.backend_names import SIMULATOR
from experiments.campaigns.campaign import FailureKind
from experiments.campaigns.nights import NightRun
from testbed.campaign.jobs.pool import Job, JobResult
from testbed.campaign.jobs.simulated_run import simulated, simulation_job, simulation_pool
from testbed.campaign.nights.night import Night
from testbed.campaign.nights.night_one import BackendOf, directory_of, failed, prepared, stopped_after
from testbed.campaign.texts.progress import Follower, follower
from testbed.nightly.planning import budget_left_s


def make_side_by_side(night: Night, jobs: int, backend_of: BackendOf) -> None:
    """Make all runs in virtual time that fit the budget.

    Raises KeyboardInterrupt, and MachineError if a disk is full.
    """
    waiting = [
        run for run in night.record.pending if run.backend == SIMULATOR and night.entry_of(run).is_single
    ]
    with follower(terse=f"{len(waiting)} runs in virtual time") as follow, simulation_pool(jobs) as pool:
        begun = _jobs(night, waiting, backend_of, follow)
        for result in pool.results(begun, lambda: follow({})):
            follow.show(night.end(_result(night, result)))


def _jobs(night: Night, waiting: list[NightRun], backend_of: BackendOf, follow: Follower) -> Iterator[Job]:
    """Yield the job of each run that fits the budget, prepared when it is asked for."""
    for run in waiting:
        night.check_room()
        if not night.fits(run):
            continue
        began_s = time.monotonic()
        limit_s = budget_left_s(run, night.record, night.file)
        try:
            begun = prepared(night, run, backend_of)
        except Exception as error:  # noqa: BLE001 - one broken run must not take the others with it
            follow.show(night.end(failed(night, run, error, time.monotonic() - began_s)))
        else:
            yield simulation_job(begun, directory_of(night, begun), page=True, within_s=limit_s)


def _result(night: Night, result: JobResult) -> NightRun:
    run: NightRun = result.subject
    if result.is_late:
        result = replace(result, problem=stopped_after(result.took_s))
    made = simulated(run, directory_of(night, run), result)
    if made.failure is FailureKind.HARNESS:
        night.check_room()
    return made
