"""`cutset shell` with the system of docs/bring-your-own.md: words on programs and links."""

import pytest

from tests.systems.test_documentation import written
from tests.testbed.runner.live import problems
from tests.testbed.shell.live_shell import PROMPT, LiveShell
from tests.testbed.shell.test_shell import rate, until

pytestmark = [pytest.mark.network, pytest.mark.slow]


def test_links_and_programs_are_broken_and_restored_by_hand(tmp_path):
    written(tmp_path)
    with LiveShell(tmp_path, experiment=tmp_path / "relay.yaml") as shell:
        shell.until(PROMPT)
        until(shell, lambda: rate(shell, "r1/subscriber-0", 0))
        assert "cut-1: link r0-r1 blackhole" in shell.line("cut r0 r1")
        until(shell, lambda: not rate(shell, "r1/subscriber-0", 0))
        shell.line("restore r0 r1")
        until(shell, lambda: rate(shell, "r1/subscriber-0", 0))
        assert "process r1/broker-0 killed" in shell.line("kill r1/broker-0")
        until(shell, lambda: not rate(shell, "r1/subscriber-0", 1))
        assert "not running: r1/broker-0" in shell.line("status")
        assert "process r1/broker-0 restarted" in shell.line("restart r1/broker-0")
        until(shell, lambda: rate(shell, "r1/subscriber-0", 1))
        shell.type("exit\n")
        assert shell.wait() == 0, shell.said
    record = shell.record()
    assert (record["outcome"], problems(record)) == ("completed", [])
    started = (tmp_path / "runs" / record["run"] / "logs" / "r1-broker-0.jsonl").read_text()
    assert started.count('"event":"started"') == 2
