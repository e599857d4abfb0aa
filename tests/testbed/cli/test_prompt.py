"""`packets` at the prompt of `cutset shell`: which options it has, and what it says of others."""

from pathlib import Path

import pytest

from experiments.records.rundir import RunDirectory
from testbed.cli.prompt import RecentPackets
from testbed.errors import TestbedError


def refusal(line: str) -> str:
    with pytest.raises(TestbedError) as error:
        RecentPackets(RunDirectory(Path("nowhere")))(line.split(), print)
    return str(error.value)


@pytest.mark.parametrize(
    "option", ["--around", "--from", "--to", "--span", "--json", "--raw", "--pcap", "--retransmissions"]
)
def test_options_that_only_the_command_has_are_for_after_leaving(option):
    said = f"{option} is for `cutset packets`, after leaving"
    assert refusal(option) == refusal(f"--lost {option} cut") == refusal(f"{option}=cut") == said


def test_other_unknown_options_are_answered_with_the_nearest_one():
    assert "Did you mean --region" in refusal("--regoin r0").replace("'", "")
