"""Commands that are ended at drawn moments leave nothing; `tests.kills` tries more of them, and oftener."""

import random
import signal

import pytest

from tests.kills import Place


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Place:
    return Place(tmp_path_factory.mktemp("killed"))


@pytest.mark.slow
@pytest.mark.network
@pytest.mark.parametrize(
    ("command", "at_most_s", "number"),
    [("analyze", 3.0, signal.SIGTERM), ("nightly", 14.0, signal.SIGKILL), ("hunt", 4.0, signal.SIGKILL)],
)
def test_a_command_that_is_ended_leaves_nothing(place, command, at_most_s, number):
    after_s = random.Random(f"{command} {number}").uniform(0.4, at_most_s)
    assert not place.ended(command, number, after_s).left


@pytest.mark.slow
@pytest.mark.network
def test_a_run_can_be_analysed_again_at_once_when_its_analysis_was_killed(place):
    assert not place.ended("analyze", signal.SIGKILL, 2.0).left
    assert place.start(place.arguments("analyze"), "again").wait() in {0, 1}  # 1: not valid
