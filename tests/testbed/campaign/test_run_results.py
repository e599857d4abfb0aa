"""The one-line result of a run."""

from dataclasses import replace
from typing import Any

from experiments.campaigns.campaign import FailureKind, RunHeadline, RunState
from experiments.records.run_record import Outcome, RunPhase, RunRecord
from testbed.campaign.run_results import PerformedRun, broken, concluded
from tests.campaigns import night_run
from tests.run_json import SMALL

RUN = night_run()
COMPLETED = RunRecord(SMALL, phase=RunPhase.COLLECTED, outcome=Outcome.COMPLETED)


def summary(verdict: str, **more: Any) -> dict[str, Any]:
    return {
        "verdict": verdict,
        "fidelity": {"valid": verdict != "invalid", "reasons": []},
        "expectations": [],
        "throughput": {"events_per_s": 100.0},
        "latency": {"p99_ms": 5.0},
        "events": {"lost": 0},
    } | more


def line(verdict: str, problems: tuple[str, ...] = (), **more: Any) -> str | None:
    made = PerformedRun(replace(COMPLETED, problems=problems), summary(verdict, **more))
    return concluded(RUN, made, 1.0).problem


def test_a_run_that_passed_has_its_numbers_and_no_problem():
    run = concluded(RUN, PerformedRun(COMPLETED, summary("passed")), 12.34567)
    assert (run.state, run.verdict, run.problem, run.duration_s) == (RunState.DONE, "passed", None, 12.346)
    assert run.headline == RunHeadline(100.0, 5.0, 0)


def test_a_run_without_a_summary_has_one_line():
    run = broken(RUN, "the disk\n  is full", 3.0)
    assert (run.state, run.problem, run.verdict) == (RunState.FAILED, "the disk is full", None)
    died = concluded(RUN, PerformedRun(RunRecord(SMALL, phase=RunPhase.BUILDING)), 1.0)
    assert (died.state, died.failure, died.problem) == (
        RunState.FAILED,
        FailureKind.HARNESS,
        "died while building",
    )


def test_a_completed_run_without_requested_analysis_is_fine():
    run = concluded(RUN, PerformedRun(COMPLETED), 1.0)
    assert (run.state, run.verdict, run.failure, run.problem) == (RunState.DONE, None, None, None)
    problem = "there is too little disk to analyse it"
    unanalysed = concluded(RUN, PerformedRun(COMPLETED, problem=problem), 1.0)
    assert (unanalysed.state, unanalysed.failure) == (RunState.DONE, FailureKind.HARNESS)
    assert unanalysed.problem == problem


def test_contradictions_of_packets_and_deliveries_are_no_missed_expectation():
    run = concluded(RUN, PerformedRun(COMPLETED, summary("failed")), 1.0)
    assert (run.failure, run.problem) == (
        FailureKind.FIDELITY,
        "packets and deliveries disagree",
    )


def test_the_headline_is_the_slowest_clients_rate_if_known():
    content = {"throughput": {"events_per_s": 9.0}, "latency": {"p99_ms": 5.0}, "events": {"lost": 0}}
    assert RunHeadline.from_summary(content) == RunHeadline(9.0, 5.0, 0)
    content["throughput"]["slowest_client_events_per_s"] = 4.0
    assert RunHeadline.from_summary(content).events_per_s == 4.0
    assert RunHeadline.from_summary({}) == RunHeadline(None, None, None)


def test_a_problem_can_be_written_anywhere():
    """Use names of files that are no text: they become lone surrogates, which no encoding accepts."""
    assert broken(RUN, "no file b\udce9e", 1.0).problem == "no file b?e"
    assert line("crashed", ("no file b\udce9e",)) == "no file b?e"
