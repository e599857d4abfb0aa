"""Which hooks are called after a night, and with what."""

import json
import sys
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from experiments.campaigns.campaign import FailureKind, RunState
from experiments.campaigns.nights import NightDirectory, NightRecord
from experiments.records.run_record import Outcome
from testbed.nightly.hooks import call, check_hooks, message, message_of_missing_night
from tests.campaigns import night_record, night_run
from topologies.errors import InputError

DONE = {"state": RunState.DONE, "run": "abc", "verdict": "passed"}
MISSED = {"verdict": "failed", "failure": FailureKind.EXPECTATION, "problem": "3 events lost"}
RUN, FAILED = night_run(**DONE), night_run(repetition=1, **DONE | MISSED)
RECORD = night_record(RUN, FAILED)
ENDED = replace(RECORD, outcome=Outcome.COMPLETED, exit_code=1, findings=("cut slower",))
DIRECTORY = NightDirectory.for_night(Path("runs"), date(2026, 11, 21), "quick")


def told(record: NightRecord = ENDED) -> dict[str, Any]:
    return message(DIRECTORY, record, Path("history/site/index.html"))


def test_a_message_lists_regressions_and_failures():
    content = told()
    assert content["subject"].startswith("quick 2026-11-21 on ")
    assert content["subject"].endswith(": 1 got worse, 1 of 2 runs failed")
    assert content["text"].splitlines()[1:] == [
        "cut slower",
        "cut r1: expectation: 3 events lost",
        str(Path("history/site/index.html").absolute()),
    ]
    assert content["page"] == str(Path("history/site/index.html").absolute())
    assert content["failed"][0]["run"].endswith("/runs/abc")
    assert json.loads(json.dumps(content)) == content


def test_a_night_that_could_not_begin_has_a_message_of_the_same_form():
    content = message_of_missing_night("quick", date(2026, 11, 21), "another night is on", 3)
    assert set(content) == set(told())
    assert (content["night"], content["outcome"], content["exit_code"]) == ("2026-11-21", "not begun", 3)
    assert content["text"].splitlines()[1:] == ["another night is on"]


def test_a_command_gets_the_night_on_standard_input(tmp_path):
    seen = tmp_path / "seen.json"
    program = f"open({str(seen)!r}, 'w').write(input())"
    assert call(f'{sys.executable} -c "{program}"', told()) is None
    assert json.loads(seen.read_text()) == told()


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("no-such-program --now", "the hook no-such-program could not be started: No such file"),
        ("sh -c 'echo no luck >&2; exit 7'", "the hook sh failed with 7: no luck"),
        ("false", "the hook false failed with 1: no output on standard error"),
        (r"""sh -c 'printf "caf\351" >&2; exit 1'""", "the hook sh failed with 1: caf\ufffd"),
    ],
)
def test_a_hook_that_fails_is_reported(command, said):
    assert said in call(command, told())


def test_a_hook_that_hangs_is_ended():
    assert call("sleep 100", told(), timeout_s=0.05) == "the hook sleep was ended after 0.05 s"


@pytest.mark.parametrize("command", ["", "  ", "echo 'half"])
def test_an_invalid_hook_is_refused_before_the_night(command):
    with pytest.raises(InputError, match="--hook"):
        check_hooks((command,))
