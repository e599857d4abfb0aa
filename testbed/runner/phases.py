"""How far a run got and how it ended, as run.json has it."""

import time
from enum import StrEnum
from typing import Any

from experiments.rundir import RunDirectory

RUNNER_LOG = "runner.log"


class Phase(StrEnum):
    """How far a run got."""

    PLANNED = "planned"
    BUILDING = "building"
    RUNNING = "running"
    DRAINING = "draining"
    COLLECTED = "collected"


class Outcome(StrEnum):
    """How a run ended. A crash is the testbed's, not a node's: that is a problem of a completed run."""

    COMPLETED = "completed"
    INTERRUPTED = "interrupted"
    CRASHED = "crashed"


def settle(run: RunDirectory, log: str = f"logs/{RUNNER_LOG}") -> dict[str, Any]:
    """The content of run.json, with the outcome that a sandbox that died could not write down.

    log: the file that says more, as problems name it.
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
