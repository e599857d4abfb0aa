"""The progress of a run as the user sees it."""

from typing import Any

import pytest

from testbed.campaign.texts.progress import Follower, RunSituation

ZERO_NS = 1_700_000_000_000_000_000
SECOND_NS = 1_000_000_000


def change(direction: str, at_s: float = 19.0, state: str = "blackhole") -> dict[str, Any]:
    requested_ns = ZERO_NS + round(at_s * SECOND_NS)
    return {
        "did": "change",
        "fault": "cut",
        "link": "r2-r3",
        "direction": direction,
        "state": state,
        "requested_ns": requested_ns,
        "applied_ns": requested_ns + 1,
    }


@pytest.fixture
def situation():
    there = RunSituation()
    there.take({"did": "phase", "phase": "running"})
    there.take({"did": "running", "zero_ns": ZERO_NS, "duration_us": 60_000_000})
    return there


def test_the_line_shows_elapsed_of_total_and_events_a_second(situation):
    situation.take({"did": "progress", "events_per_s": 79_812, "delivered": 1})
    text = " ".join(situation.text(ZERO_NS + 23 * SECOND_NS).split())
    assert text == "running 23 of 60 s 79,812 events/s"


def test_a_live_view_adds_latency_disturbances_and_its_delay(situation):
    now_ns = ZERO_NS + 23 * SECOND_NS
    assert situation.take({"did": "watching", "url": "http://127.0.0.1:1/"}) == "live at http://127.0.0.1:1/"
    situation.take({"did": "timelines", "p95_ms": 62.31, "disturbed": ["cut r2-r3"], "behind_s": 1.94})
    assert situation.text(now_ns).endswith("p95    62.3 ms  cut r2-r3  1.9 s behind")
    situation.take({"did": "timelines", "p95_ms": None, "disturbed": [], "behind_s": 1.0})
    assert situation.text(now_ns).endswith("events/s  no fault  1.0 s behind")
    assert situation.take({"did": "unwatched", "text": "the live view ended"}) == "the live view ended"
    assert situation.text(now_ns).endswith("events/s")


def test_both_directions_of_a_change_are_one_line(situation):
    lines = [situation.take(change(direction)) for direction in ("forward", "backward")]
    assert lines == ["  19.0 s  cut: r2-r3 blackhole", None]


def test_problems_are_shown_as_they_come(situation):
    assert situation.take({"did": "problem", "text": "the relay died"}) == "problem: the relay died"


def test_plain_lines_are_few(capsys):
    with Follower() as follow:
        follow({"did": "phase", "phase": "building"})
        follow({"did": "phase", "phase": "running"})
        follow({"did": "running", "zero_ns": ZERO_NS, "duration_us": 60_000_000})
        for count in range(1000):
            follow({"did": "progress", "events_per_s": count, "delivered": count})
            follow({})
        follow({"did": "phase", "phase": "draining"})
    said = capsys.readouterr()
    assert said.out == ""
    lines = said.err.splitlines()
    assert lines[0] == "building the network and starting the nodes"
    assert lines[-1] == "draining"
    assert len(lines) < 10
