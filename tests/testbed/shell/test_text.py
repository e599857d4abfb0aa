"""Texts of the prompt."""

from typing import Any

from experiments.faults.kinds import KINDS
from testbed.shell.fault_commands import fault_lines, help_lines, news_lines, status_lines


def change(what: str, became: str, *, error: str | None = None, fault: str = "cut-1") -> dict[str, Any]:
    took_ms = None if error else 0.5
    return {
        "what": what,
        "became": became,
        "at_s": 3.25,
        "took_ms": took_ms,
        "error": error,
        "fault": fault,
    }


def test_both_directions_of_a_link_are_one_line():
    both = [change("link r0-r1 forward", "blackhole"), change("link r0-r1 backward", "blackhole")]
    [line] = fault_lines({"name": "cut-1", "changes": both})
    assert line.strip() == "3.250 s  cut-1: link r0-r1 blackhole, within 0.5 ms"


def test_a_later_fault_reports_that_nothing_changes_now():
    assert fault_lines({"name": "cut-2", "changes": []}) == ["cut-2: nothing changes now"]


def test_news_contain_scheduled_changes_and_problems():
    news = {
        "changes": [change("process r0/proxy-0", "kill", fault="kill-1")],
        "problems": ["a thing"],
    }
    first, second = news_lines(news)
    assert first.endswith("kill-1: process r0/proxy-0 killed, within 0.5 ms")
    assert second == "problem: a thing"


def test_the_status_shows_deviations_and_every_clients_rates():
    status = {
        "elapsed_s": 12.0,
        "running": 5,
        "ended": ["r0/proxy-0"],
        "stopped": ["r1/proxy-0"],
        "links": {"r0-r1 forward": "delay 80ms"},
        "rates": {"r0/client-0": {"0": 2000}},
        "free_bytes": 3_000_000_000,
        "problems": [],
    }
    lines = status_lines(status, {"0": "r0", "1": "r1"})
    assert lines[0].startswith("12.0 s since time 0, 5 processes running")
    assert "link r0-r1 forward: delay 80ms" in lines
    assert "stopped: r1/proxy-0" in lines
    assert "not running: r0/proxy-0" in lines
    assert lines[-1].split() == ["r0/client-0", "2,000", "0"]


def test_every_kind_of_fault_is_a_command_with_its_usage():
    lines = help_lines()
    at = lines.index("  cut LINK [for …] [direction both|forward|backward] [mode blackhole|down]")
    assert lines[at + 1] == "      Cuts a link."
    assert {line.split()[0] for line in lines} > {*KINDS, "status"}
