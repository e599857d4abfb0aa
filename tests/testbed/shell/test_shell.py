"""`cutset shell` as a user at a terminal sees it: commands, keys, leaving, and leftovers."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from analysis.jobs.choice import workers_at
from analysis.pipeline import analyze
from experiments.records.rundir import RunDirectory
from tests.testbed.as_ordinary_user import ordinary
from tests.testbed.runner.live import PID_1, problems
from tests.testbed.shell.live_shell import PROMPT, LiveShell, run_lines

pytestmark = pytest.mark.network

CTRL_C, CTRL_D, TAB = "\x03", "\x04", "\t"
OWN_FAULT = "faults: [{name: own, at: 1ms, set: [r0, r1], delay: 9ms}]\n"


def rate(shell: LiveShell, client: str, stream: int) -> int:
    """Return the events per second of a stream at a client, as `status` shows it."""
    found = re.search(rf"^{client} +(.*)$", shell.line("status"), re.MULTILINE)
    return int(found[1].split()[stream].replace(",", "")) if found else 0


def until(shell: LiveShell, condition: Callable[[], object]) -> None:
    """Poll a condition from the prompt."""
    while not condition():
        shell.line("sh sleep 0.2")


@pytest.fixture(scope="module")
def provoked(tmp_path_factory):
    """Return an ended shell in which a link was cut and restored by hand."""
    with LiveShell(tmp_path_factory.mktemp("provoked")) as shell:
        shell.until(PROMPT)
        until(shell, lambda: rate(shell, "r0/client-0", 1))
        assert "cut-1: link r0-r1 blackhole" in shell.line("cut r0 r1")
        until(shell, lambda: not rate(shell, "r0/client-0", 1))
        until(shell, lambda: rate(shell, "r0/client-0", 0))  # the region's own stream goes on
        assert "link r0-r1 forward: blackhole" in shell.line("status")
        assert "restore-1: link r0-r1 up" in shell.line("restore r0 r1")
        until(shell, lambda: rate(shell, "r0/client-0", 1))
        shell.type("exit\n")
        assert shell.wait() == 0, shell.said
    return shell


def test_manual_faults_leave_a_complete_run_with_a_plan_of_them(provoked):
    record = provoked.record()
    assert (record["phase"], record["outcome"], problems(record)) == ("collected", "completed", [])
    assert record["shell"] == {"with_faults": False}
    assert record["times"]["drained_ns"] > record["times"]["stopped_ns"] > record["times"]["zero_ns"]
    assert [fault["name"] for fault in record["plan"]["faults"]] == ["cut-1", "restore-1"]
    assert record["plan"]["duration_us"] > 1_500_000  # longer than the experiment's own
    planned, carried = record["plan"]["changes"], record["changes"]
    assert [each["index"] for each in carried] == list(range(len(planned)))
    assert all(each["applied_ns"] >= each["requested_ns"] for each in carried)
    files = {file.name for file in (provoked.directory / "captures").glob("*.pcap*")}
    assert files == {Path(capture["file"]).name for capture in record["captures"]}


@pytest.mark.spark
def test_the_analysis_reports_manual_faults_and_their_recovery(provoked):
    with workers_at("local[2]") as found:
        summary = analyze(RunDirectory(provoked.directory), workers_for=found, progress=lambda _: None)
    assert [(fault["name"], fault["target"]) for fault in summary["faults"]] == [
        ("cut-1", "r0-r1"),
        ("restore-1", "r0-r1"),
    ]
    assert summary["recovery"]["cut-1"]["affected_pairs"] >= 1
    assert summary["recovery"]["cut-1"]["switch_s"] > 0
    assert (summary["events"]["lost"], summary["agreement"]["held"]) == (0, True)


def test_host_commands_and_keys_work_as_in_mininets_prompt_for_ordinary_users(tmp_path):
    with LiveShell(tmp_path, wrapper=ordinary([], tmp_path)) as shell:
        shell.until(PROMPT)
        shell.pid(*PID_1)
        shell.type(f"r0-cl{TAB}")
        shell.until("r0-client-0 ")
        shell.type(f"ping -i 0.2 r1-pr{TAB}\n")  # for ever
        shell.until("icmp_seq=2")
        shell.type(CTRL_C)
        assert "received" in shell.until(PROMPT)
        shell.type("half a line")
        shell.until("half a line")
        shell.type(CTRL_C)
        shell.until(PROMPT)
        assert "lan0" in shell.line("nodes")
        shell.type(f"kill r1/cl{TAB}")
        shell.until("r1/client-0 ")
        shell.type("\n")
        assert "kill-1: process r1/client-0 killed" in shell.until(PROMPT)
        assert "restart-1: process r1/client-0 restarted" in shell.line("restart r1-client-0")
        shell.type(CTRL_D)
        assert shell.wait() == 0, shell.said
        assert shell.record()["outcome"] == "completed"
        shell.assert_nothing_left()


def test_lines_from_a_pipe_are_executed_in_order_and_invalid_ones_skipped(tmp_path):
    lines = ["frobnicate", "cut r0", "cut r0 r9", "set r0 r1 delay soon", "kill r0/proxy-9"]
    lines += ["link r0 r1 down", "restore r0 r9", "restore r0 r1", "set r0 r1 delay 80ms"]
    lines += ["r0-gw sleep 0.5", "faults"]
    ended = run_lines(tmp_path, lines, faults=OWN_FAULT)
    assert ended.returncode == 0, ended.stderr
    assert "the faults of tiny do not happen" in ended.stderr
    answers = ended.stdout.split(PROMPT)[1:]
    for line, answer in zip(lines[:8], answers, strict=False):
        assert len(answer.splitlines()) == 2
        assert answer.startswith(f"{line}\n*** ")
    assert "set-1: link r0-r1" in answers[8]
    assert answers[9] == "r0-gw sleep 0.5\n"
    assert "set: [r0, r1]" in answers[10]
    [run] = (tmp_path / "runs").iterdir()
    record = json.loads((run / "run.json").read_text())
    assert [fault["name"] for fault in record["plan"]["faults"]] == ["set-1"]  # refused ones never were
    assert record["outcome"] == "completed"


def test_the_experiments_faults_happen_and_a_killed_shell_leaves_nothing_behind(tmp_path):
    with LiveShell(tmp_path, "--with-faults", faults=OWN_FAULT) as shell:
        shell.until(PROMPT)
        until(shell, lambda: "r0-r1 forward: delay 9ms" in shell.line("status"))
        shell.line("cut r0 r1")
        shell.kill()
        shell.wait()
        shell.assert_nothing_left()
