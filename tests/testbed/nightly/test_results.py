"""What became of a run, in a line, and the night's exit code."""

from dataclasses import replace
from typing import Any

import pytest

from experiments.nights import Failure, NightRecord, NightRun, State
from experiments.run_record import Phase, RunRecord
from testbed.nightly.results import broken, ended, exit_code, unmeasured
from tests.run_json import SMALL

RUN = NightRun("cut", 0, 11, "link-failure", "local")


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
    return ended(RUN, RunRecord(SMALL, problems=tuple(problems)), summary(verdict, **more), 1.0).problem


def test_a_run_that_passed_has_its_numbers_and_no_problem():
    run = ended(RUN, RunRecord(SMALL), summary("passed"), 12.34567)
    assert (run.state, run.verdict, run.problem, run.duration_s) == (State.DONE, "passed", None, 12.346)
    assert run.headline == {"events_per_s": 100.0, "latency_p99_ms": 5.0, "lost": 0}


def test_what_did_not_hold_is_said_with_what_was_found():
    expectations = [
        {"text": "events.lost == 0", "value": 3, "held": False},
        {"text": "latency.p99_ms <= 2", "value": 5.123456789, "held": False},
        {"text": "recovery.cut.switch_s <= 2", "value": None, "held": False},
        {"text": "events.duplicated == 0", "value": 0, "held": True},
    ]
    assert line("failed", expectations=expectations) == (
        "events.lost == 0 did not hold (3); latency.p99_ms <= 2 did not hold (5.12346); "
        "recovery.cut.switch_s <= 2 did not hold (not measured)"
    )


def test_of_many_reasons_the_first_are_said():
    fidelity = {"valid": False, "reasons": ["busy", "late", "slow", "sad"]}
    assert line("invalid", fidelity=fidelity) == "busy; late; and 2 more"


def test_a_run_that_crashed_says_of_what():
    assert line("crashed", ("r0/proxy-0 was killed",)) == "r0/proxy-0 was killed"
    assert line("failed", ("r0/proxy-0 was killed",)) == "r0/proxy-0 was killed"
    assert line("crashed") == "see its report"


def test_a_run_without_a_summary_has_one_line():
    run = broken(RUN, "the disk\n  is full", 3.0)
    assert (run.state, run.problem, run.verdict) == (State.FAILED, "the disk is full", None)
    assert unmeasured(RUN, RunRecord(SMALL, phase=Phase.BUILDING), 1.0).problem == "it ended while building"


def test_a_problem_can_be_written_anywhere():
    """Names of files that are no text come as lone surrogates, which no encoding takes."""
    assert broken(RUN, "no file b\udce9e", 1.0).problem == "no file b?e"
    assert line("crashed", ("no file b\udce9e",)) == "no file b?e"


@pytest.mark.parametrize(
    ("failures", "findings", "code"),
    [
        ((None, None), (), 0),
        ((None, Failure.EXPECTATION), (), 1),
        ((None, Failure.FIDELITY), (), 1),
        ((None, Failure.HARNESS), (), 3),
        ((Failure.CRASH, Failure.HARNESS), (), 1),
        ((None, None), ("slower",), 1),
        ((None, Failure.HARNESS), ("slower",), 1),
    ],
)
def test_the_exit_code(failures, findings, code):
    runs = tuple(replace(RUN, repeat=number, failure=failure) for number, failure in enumerate(failures))
    record = NightRecord("2026-11-21", "quick", "digest", None, 600.0, 0, runs, findings=findings)
    assert exit_code(record) == code
    allowed = replace(record, runs=tuple(replace(run, allow_failure=True) for run in runs), findings=())
    assert exit_code(allowed) == 0
    assert exit_code(replace(allowed, findings_allowed=("slower",))) == 0
    assert exit_code(replace(allowed, unchecked="the history is damaged")) == 1
