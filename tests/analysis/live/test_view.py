"""The view of a run: its progress messages and the clients' records, as pages and the terminal get them."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from analysis.live.__main__ import NICE
from analysis.live.timelines import EventBatch
from analysis.live.view import LiveView
from experiments.child_python import python_command
from experiments.records.rundir import RunDirectory
from tests.analysis.timelines.world import ZERO, S, run_json

CLIENT = "r0-client-0"
NOW = ZERO + 12 * S


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    """Return a starting run."""
    content = run_json(
        changes=[], times={"started_ns": ZERO - 3 * S}, outcome=None, processes=[], captures=[]
    )
    found = RunDirectory(tmp_path / "run")
    found.make()
    found.run_json.write_text(json.dumps(content))
    return found


@pytest.fixture
def view(run: RunDirectory) -> LiveView:
    return LiveView(run, lambda: NOW)


def change(state: str, direction: str, at_s: float) -> dict[str, Any]:
    at_ns = ZERO + round(at_s * S)
    fault = "cut" if state == "blackhole" else "restore"
    index = 2 * (fault == "restore") + (direction == "backward")
    return {
        "did": "change", "index": index,
        "fault": fault, "link": "r2-r3", "direction": direction, "state": state,
        "requested_ns": at_ns, "applied_ns": at_ns,
    }  # fmt: skip


def batch_of(later_ns: int = 0) -> list[EventBatch]:
    """Return a batch of 100 events at a client at 10 s, or later by its clock."""
    return [EventBatch(False, CLIENT, 0, 1, 100, 100, ZERO + 10 * S + later_ns)]


READ = {CLIENT: ZERO + 11 * S}


def test_a_batch_with_a_future_time_stamp_makes_no_bins(view: LiveView) -> None:
    view.handle({"did": "running", "zero_ns": ZERO, "duration_us": 14_000_000})
    view.take(batch_of(later_ns=30 * 86_400 * S), READ)
    rows = view.board.whole()["throughput"]
    assert max(row[0] for each in rows.values() for row in each) < 12
    assert all(row[1] == 0 for each in rows.values() for row in each)


def test_before_time_0_there_is_a_plan_and_a_phase(view: LiveView) -> None:
    view.handle({"did": "phase", "phase": "building"})
    whole = view.board.whole()
    assert (whole["title"], whole["duration_s"], whole["status"]["phase"]) == (
        "link-failure",
        14.0,
        "building",
    )
    assert [one["name"] for one in whole["charts"][0]["series"]] == ["r0", "r1", "r2", "r3"]
    assert view.status() == {}


def test_bands_open_and_close_with_the_changes_of_links(view: LiveView) -> None:
    view.handle({"did": "running", "zero_ns": ZERO, "duration_us": 14_000_000})
    assert view.disturbances() == []
    for direction in ("forward", "backward"):
        view.handle(change("blackhole", direction, 5.0))
    assert view.disturbances() == ["cut r2–r3"]  # noqa: RUF001
    for direction in ("forward", "backward"):
        view.handle(change("up", direction, 9.0))
    assert view.disturbances() == []
    [band] = view.board.whole()["status"]["bands"]
    assert (band["start_s"], band["end_s"]) == (5.0, 9.0)


def test_problems_are_noted(view: LiveView) -> None:
    view.handle({"did": "problem", "text": "the disk is full"})
    assert view.board.whole()["lines"] == ["problem: the disk is full"]


def test_batches_become_timelines_with_the_delay_of_the_view(view: LiveView) -> None:
    view.handle({"did": "running", "zero_ns": ZERO, "duration_us": 14_000_000})
    view.take(batch_of(), READ)
    whole = view.board.whole()
    assert whole["throughput"]["r0"][50] == [10.0, 250.0]  # 100 events in 0.2 s at one of two clients
    assert (whole["status"]["behind_s"], whole["status"]["shown_s"]) == (1.0, 11.0)
    assert view.status()["elapsed_s"] == 12.0


def test_events_before_time_0_is_known_are_counted_later(view: LiveView) -> None:
    view.take(batch_of(), READ)
    assert view.board.whole()["throughput"] == {}
    view.handle({"did": "running", "zero_ns": ZERO, "duration_us": 14_000_000})
    view.take([], READ)
    assert view.board.whole()["throughput"]["r0"][50] == [10.0, 250.0]


def test_all_threads_of_a_watching_process_have_a_low_priority(run: RunDirectory) -> None:
    watching = subprocess.Popen(
        python_command("analysis.live", str(run.path)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    with watching:
        assert watching.stdin is not None
        assert watching.stdout is not None
        assert json.loads(watching.stdout.readline())["did"] == "watching"
        threads = [int(task.name) for task in Path(f"/proc/{watching.pid}/task").iterdir()]
        niceness = [os.getpriority(os.PRIO_PROCESS, thread) for thread in threads]
        watching.stdin.close()
    assert len(niceness) > 1
    assert min(niceness) >= NICE
