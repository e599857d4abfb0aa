"""A process that reports a sent message is paused until it is released."""

import signal
import subprocess
import sys

import pytest

from node.tcp.watching import GO_ON
from tests.testbed.runner.live import PROJECT

SENDS_TWICE = """
import os, sys
from types import SimpleNamespace
from node.core import machine as m
from node.core.specification import SendWatch
from node.tcp.watching import GO_ON, Watching

def tell(message):
    if sys.argv[1] == "early":
        os.kill(os.getpid(), GO_ON)
    print("told", message["index"], flush=True)
    return sys.argv[1] != "idle"

watching = Watching([SendWatch(7, 0, "LETTER", 2)], SimpleNamespace(holds=lambda message, name: True), tell)
watching.begin(0)
for number in range(3):
    watching.sent(m.Send(1, [None]))
    print("went on", number, flush=True)
"""


def sending(how: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", SENDS_TWICE, how]
    return subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("how", ["early", "idle"])
def test_a_process_continues_if_released_early_or_without_a_listener(how: str) -> None:
    with sending(how) as process:
        said, _ = process.communicate(timeout=60)
    assert said.splitlines() == ["went on 0", "told 7", "went on 1", "went on 2"]


def test_being_stopped_and_continued_meanwhile_changes_nothing() -> None:
    with sending("late") as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(2)]
        process.send_signal(signal.SIGSTOP)
        process.send_signal(signal.SIGCONT)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.2)
        process.send_signal(GO_ON)
        rest, _ = process.communicate(timeout=60)
    assert lines == ["went on 0\n", "told 7\n"]
    assert rest.splitlines() == ["went on 1", "went on 2"]
