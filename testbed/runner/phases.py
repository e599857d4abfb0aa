"""Settles the outcome of a run that could not record it."""

import time
from dataclasses import replace

from experiments.run_record import Outcome, RunRecord, write_record
from experiments.rundir import RunDirectory

RUNNER_LOG = "runner.log"


def settle(run: RunDirectory, log: str = f"logs/{RUNNER_LOG}") -> RunRecord:
    """The run's record, with an outcome in place of the one that a dead sandbox could not record.

    log: the log file that problems refer to.
    """
    record = run.read_run()
    if record.outcome is not None:
        return record
    reason = f"the run died while {record.phase}: see {log}"
    settled = replace(
        record,
        outcome=Outcome.CRASHED,
        problems=(*record.problems, reason),
        times=replace(record.times, ended_ns=time.time_ns()),
    )
    write_record(run.run_json, settled)
    return settled
