"""The phases and outcomes of a run, as run.json records them."""

import time
from enum import StrEnum
from typing import Any

from experiments.rundir import RunDirectory

RUNNER_LOG = "runner.log"


class Phase(StrEnum):
    """The phase that a run has reached."""

    PLANNED = "planned"
    BUILDING = "building"
    RUNNING = "running"
    DRAINING = "draining"
    COLLECTED = "collected"


class Outcome(StrEnum):
    """How a run ended. A crash is the testbed's; that of a node is a problem of a completed run."""

    COMPLETED = "completed"
    INTERRUPTED = "interrupted"
    CRASHED = "crashed"


def settle(run: RunDirectory, log: str = f"logs/{RUNNER_LOG}") -> dict[str, Any]:
    """The content of run.json, with an outcome in place of the one that a dead sandbox could not record.

    log: the log file that problems refer to.
    """
    content = run.read_run()
    if content["outcome"] is not None:
        return content
    reason = f"the run died while {content['phase']}: see {log}"
    return run.update_run(
        outcome=Outcome.CRASHED,
        problems=[*content["problems"], reason],
        times={**content["times"], "ended_ns": time.time_ns()},
    )
