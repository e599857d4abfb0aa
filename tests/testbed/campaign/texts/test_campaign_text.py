"""Texts about the runs of sweeps and nights: lines, remaining times, replay commands."""

from dataclasses import replace

import pytest

from experiments.campaigns.campaign import FailureKind, RunHeadline, RunState
from experiments.campaigns.sweepdir import SweepRun
from testbed.campaign.texts.campaign_text import duration_text, run_line
from tests.campaigns import night_run

POINT = SweepRun(name="2-driver-2-r1", number=2, values={"roles.driver": 2}, repetition=1, seed=8)
ENDED = replace(
    POINT,
    state=RunState.DONE,
    verdict="passed",
    duration_s=12.4,
    headline=RunHeadline(1234567.8, 45.2, 0),
)


def test_a_runs_line_has_its_numbers_and_the_remaining_time():
    assert run_line(ENDED, 3, 15, 130.0) == (
        "[ 3/15] roles.driver=2 seed 8: passed, 1,234,568 events/s, p99 45 ms, took 12 s, "
        "about 2 min 10 s left"
    )


def test_a_run_that_did_not_pass_has_its_reason():
    busy = {"verdict": "invalid", "failure": FailureKind.FIDELITY, "problem": "busy"}
    allowed = night_run("throughput", state=RunState.DONE, duration_s=61.0, allow_failure=True, **busy)
    assert run_line(allowed, 5, 5) == (
        "[5/5] throughput r0 seed 11: invalid (allowed): busy, took 1 min 01 s"
    )
    broke = replace(POINT, state=RunState.FAILED, failure=FailureKind.HARNESS, problem="no disk")
    assert run_line(broke, 1, 1) == "[1/1] roles.driver=2 seed 8: harness: no disk"
    left_out = night_run(state=RunState.SKIPPED, problem="no time left")
    assert run_line(left_out, 5, 5).endswith("seed 11: left out (no time left)")
    assert run_line(replace(POINT, state=RunState.DONE), 1, 1).endswith("seed 8: ran")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.44, "0.4 s"), (59.4, "59 s"), (60, "1 min 00 s"), (3599, "59 min 59 s"), (7_800, "2 h 10 min")],
)
def test_durations_have_two_places_at_most(seconds, text):
    assert duration_text(seconds) == text
