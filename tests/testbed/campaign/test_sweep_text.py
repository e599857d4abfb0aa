"""What is said about a sweep: lines, times left, commands that replay."""

import shlex

import pytest

from experiments.sweepdir import PointRecord, replay_command
from testbed.campaign.sweep_outcome import duration_text, point_line, seconds_left

POINT = PointRecord("2-driver-2-r1", 2, {"roles.driver": 2}, 1, 8, "points/x", "points/x/summary.json")
ENDED = PointRecord(
    *("2-driver-2-r1", 2, {"roles.driver": 2}, 1, 8, "points/x", "points/x/summary.json"),
    outcome="completed",
    verdict="passed",
    duration_s=12.4,
    headline={"events_per_s": 1234567.8, "latency_p99_ms": 45.2, "lost": 0},
)


def test_a_runs_line_tells_its_numbers_and_the_time_left():
    assert point_line(ENDED, 15, 3, 130.0) == (
        "[ 3/15] roles.driver=2 seed 8: passed, 1,234,568 events/s, p99 45 ms, took 12 s, 2 min 10 s left"
    )


def test_the_last_line_has_nothing_left():
    assert point_line(ENDED, 3, 3, 0.0).endswith("took 12 s")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.44, "0.4 s"), (59.4, "59 s"), (60, "1 min 00 s"), (3599, "59 min 59 s"), (7_800, "2 h 10 min")],
)
def test_durations_have_two_places_at_most(seconds, text):
    assert duration_text(seconds) == text


def test_the_time_left_follows_from_what_the_others_took():
    assert seconds_left(30.0, 3, 5) == 50.0
    assert seconds_left(30.0, 0, 5) is None


def test_a_run_is_replayed_alone_with_its_values_and_seed():
    command = replay_command("x.yaml", ["captures=none"], POINT, "simulator")
    assert command == (
        "cutset run x.yaml --set captures=none --set sweep=null --set roles.driver=2"
        " --seed 8 --repeat 1 --on simulator"
    )


def test_what_the_shell_would_take_apart_is_quoted():
    command = replay_command("my file.yaml", ["faults=[{at: 1s, kill: a}]"], POINT, "local")
    assert shlex.split(command)[2:5] == ["my file.yaml", "--set", "faults=[{at: 1s, kill: a}]"]
