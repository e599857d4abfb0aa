"""The runs of a night in virtual time, several at once: a process for each, which dies with this command.

The results of such runs do not depend on this machine, so they do not disturb each other; for the others see
`testbed.nightly.planning.ALONE`. A process does the same as a task of a sweep
(`testbed.campaign.sweeps.sweep_tasks`).
"""

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from analysis.pages.report import write_report
from experiments import child_processes
from experiments.backend_names import SIMULATOR
from experiments.campaigns.nights import NightRun
from experiments.child_python import python_command
from experiments.records.json_files import read_json
from experiments.records.rundir import RunDirectory
from testbed.campaign.in_use import sole_writer
from testbed.campaign.nights.night import Night
from testbed.campaign.nights.night_one import BackendOf, failed, finished, prepared, stopped_after
from testbed.campaign.run_results import broken
from testbed.campaign.sweeps.sweep_tasks import SimulatePoint, result_file
from testbed.campaign.texts.progress import Follower, follower
from testbed.errors import TestbedError
from testbed.nightly.planning import budget_left_s

LOOK_S = 0.1
LOG = "task.log"


@dataclass(frozen=True, slots=True)
class _NightJob:
    """A run and the process that makes it."""

    run: NightRun
    made: RunDirectory
    process: subprocess.Popen[bytes]
    ends_s: float  # by time.monotonic
    began_s: float


def make_side_by_side(night: Night, jobs: int, backend_of: BackendOf) -> None:
    """Make all runs in virtual time that fit the budget.

    Raises KeyboardInterrupt, and MachineError if a disk is full.
    """
    waiting = [
        run for run in night.record.pending if run.backend == SIMULATOR and night.entry_of(run).is_single
    ]
    on: list[_NightJob] = []
    with _ended(on), follower(terse=f"{len(waiting)} runs in virtual time") as follow:
        while waiting or on:
            if waiting and len(on) < jobs:
                night.check_room()
                run = waiting.pop(0)
                if night.fits(run) and (job := _begun(night, run, backend_of, follow)) is not None:
                    on.append(job)
                continue
            over = [job for job in on if job.process.poll() is not None or time.monotonic() > job.ends_s]
            for job in over:
                on.remove(job)
                follow.show(night.end(_result(night, job)))
            if not over:
                follow({})
                time.sleep(LOOK_S)


def _begun(night: Night, run: NightRun, backend_of: BackendOf, follow: Follower) -> _NightJob | None:
    began_s = time.monotonic()
    limit_s = budget_left_s(run, night.record, night.file)
    try:
        run = prepared(night, run, backend_of)
        made = night.directory.run_of(run)
        assert made is not None
        command = python_command("testbed.campaign.nights.night_jobs", str(made.path.resolve()))
        with (made.logs / LOG).open("wb") as log:
            process = child_processes.start(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
    except Exception as error:  # noqa: BLE001 - one broken run must not take the others with it
        follow.show(night.end(failed(night, run, error, time.monotonic() - began_s)))
        return None
    return _NightJob(run, made, process, began_s + limit_s, began_s)


def _result(night: Night, job: _NightJob) -> NightRun:
    """Return the result of a job whose process has ended, or is stopped now because its time is over."""
    took_s = time.monotonic() - job.began_s
    if job.process.poll() is None:
        _end(job)
        return broken(job.run, stopped_after(job.ends_s - job.began_s), took_s)
    try:
        return _finished_by_task(job, took_s)
    except Exception as error:  # noqa: BLE001 - one broken run must not take the others with it
        night.check_room()
        return failed(night, job.run, error, took_s)


def _finished_by_task(job: _NightJob, took_s: float) -> NightRun:
    """Return the result that the task left. Raises TestbedError if it failed, InputError if it died."""
    problem = read_json(result_file(job.made))["problem"]
    if problem is not None:
        raise TestbedError(problem)
    with sole_writer(job.made.path):
        write_report(job.made)
    return finished(job.run, job.made, took_s)


@contextlib.contextmanager
def _ended(jobs: list[_NightJob]) -> Iterator[None]:
    """End these jobs at the end of the block, however it ends."""
    try:
        yield
    finally:
        for job in jobs:
            _end(job)


def _end(job: _NightJob) -> None:
    job.process.kill()
    job.process.wait()


if __name__ == "__main__":
    SimulatePoint(Path(sys.argv[1]), analyze=True).execute()
