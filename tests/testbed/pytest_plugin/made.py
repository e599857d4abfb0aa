"""Hand-written runs, as if they had been made."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from experiments.records.run_record import Outcome, RunPhase, RunRecord, Times
from experiments.records.rundir import RunDirectory
from testbed.campaign.sweeps.made_runs import MadeRun
from tests.run_json import SMALL

RAN = RunRecord(
    SMALL,
    experiment={"name": "tiny"},
    phase=RunPhase.COLLECTED,
    outcome=Outcome.COMPLETED,
    times=Times(zero_ns=1),
)
REPLAY = "cutset run tiny"
PASSED: dict[str, Any] = {
    "verdict": "passed",
    "fidelity": {"valid": True, "reasons": [], "links": [{"link": "r0-r1", "delay_p50_ms": 5.1}]},
    "events": {"lost": 0, "delivered": 10},
    "latency": {"p99_ms": 12.5},
    "recovery": {"cut": {"switch_s": 0.9}, "restore": {"switch_s": 0.1, "returned_s": 0.4}},
    "agreement": {"held": True, "disagreements": []},
    "expectations": [],
    "problems": [],
}


def made(
    name: str = "a", problem: str | None = None, record: dict[str, Any] | None = None, **summary: Any
) -> MadeRun:
    """Return a passed run with changed sections of its summary; with a problem, a run without a summary."""
    content = None if problem else PASSED | summary
    return _made_run(replace(RAN, **(record or {})), content, problem, name)


def unsummarised(**record: Any) -> MadeRun:
    """Return a run that was not analysed on request."""
    return _made_run(replace(RAN, **record))


def _made_run(
    record: RunRecord, summary: dict[str, Any] | None = None, problem: str | None = None, name: str = "a"
) -> MadeRun:
    directory = RunDirectory(Path("/runs") / name)
    return MadeRun(record, summary, problem, directory=directory, seed=1, replay=REPLAY)


def switched(*seconds: float | None) -> list[MadeRun]:
    """Return runs whose clients switched paths within this time after the cut."""
    return [
        made(f"run-{number}", recovery={"cut": {"switch_s": value}}) for number, value in enumerate(seconds)
    ]
