"""Successful runs from the command line: complete, by root and ordinary users, in parallel, with faults."""

from pathlib import Path
from typing import Any

import pytest

from node.core.deliveries import RecordKind, read_records
from tests.testbed.as_ordinary_user import ordinary
from tests.testbed.leftovers import namespaces_of
from tests.testbed.runner.live import PID_1, LiveRun, problems, write_experiment

pytestmark = pytest.mark.network

REGIONS, PER_REGION, WAN_LINKS = 2, 3, 1
KILLED_AND_RESTARTED = """
faults:
  - {name: client-ends, at: 300ms, kill: r1/client-0}
  - {name: driver-ends, at: 300ms, kill: r1/driver-0}
  - {name: client-again, at: 600ms, restart: r1/client-0}
  - {name: driver-again, at: 600ms, restart: r1/driver-0}
"""
JOINED_AND_LEFT_AND_CUT = """
faults:
  - {name: cut, at: 2s, cut: [r0, r1], for: 500ms}
  - {name: client-comes, at: 300ms, join: r1/client-0}
  - {name: driver-comes, at: 300ms, join: r1/driver-0}
  - {name: client-goes, at: 600ms, leave: r0/client-0}
"""
LONG = {"duration": "8s"}
"""For processes that start and end meanwhile, on a slow machine too."""


def assert_whole(record: dict[str, Any]) -> None:
    """Check that the run completed and recorded everything."""
    assert (record["phase"], record["outcome"], problems(record)) == ("collected", "completed", [])
    assert record["times"]["drained_ns"] > record["times"]["stopped_ns"] > record["times"]["zero_ns"]
    assert len(record["captures"]) == REGIONS * PER_REGION + 2 * WAN_LINKS
    assert all(capture["packets"] > 0 and capture["kernel_drops"] == 0 for capture in record["captures"])
    assert len(record["counters"]) == 2 * (REGIONS * PER_REGION + WAN_LINKS)
    assert [(probe["when"], len(probe["rtt_us"])) for probe in record["probes"]] == [
        ("before", 8),
        ("after", 8),
    ]
    assert record["cpu"]


@pytest.mark.parametrize("user", ["as we are", "ordinary user"])
def test_a_run_completes_and_leaves_only_its_directory(tmp_path, user):
    wrapper = ordinary([], tmp_path) if user == "ordinary user" else []
    with LiveRun(tmp_path, wrapper=wrapper) as run:
        run.pid(*PID_1)
        assert run.wait() == 0, run.said
        record = run.record()
        assert_whole(record)
        assert {process["exit"]["code"] for process in record["processes"]} == {0}
        files = {file.name for file in (run.directory / "captures").iterdir()}
        assert files == {Path(capture["file"]).name for capture in record["captures"]}
        run.assert_nothing_left()


def test_parallel_runs_do_not_affect_each_other(tmp_path):
    folders = [tmp_path / "one", tmp_path / "other"]
    for folder in folders:
        folder.mkdir()
    with LiveRun(folders[0]) as one, LiveRun(folders[1]) as other:
        for run in (one, other):
            run.pid(*PID_1)
            run.until("running for")
        assert not namespaces_of(one.token) & namespaces_of(other.token)
        for run in (one, other):
            assert run.wait() == 0, run.said
            assert_whole(run.record())
            run.assert_nothing_left()


def test_processes_killed_and_restarted_by_faults_work_again(cutset, tmp_path):
    """Request no captures."""
    experiment = write_experiment(tmp_path, faults=KILLED_AND_RESTARTED)
    [run] = cutset.run(experiment, set={**LONG, "captures": "none"}, analyze=False).runs
    record = run.record
    assert (record["outcome"], problems(record)) == ("completed", [])
    assert record["captures"] == list(run.directory.captures.iterdir()) == []
    assert [record["plan"]["changes"][change["index"]]["action"] for change in record["changes"]] == [
        "kill",
        "kill",
        "restart",
        "restart",
    ]
    for name, kind in (("client-0", RecordKind.DELIVERED), ("driver-0", RecordKind.PUBLISHED)):
        first, second = (end["exit"] for end in record["processes"] if end["name"] == f"r1/{name}")
        assert (first["signal"], first["expected"]) == (9, True)
        assert (second["code"], second["expected"]) == (0, True)
        written = run.directory.host_deliveries(f"r1-{name}").read_bytes()
        kinds = [delivery.kind for delivery in read_records(written)[0]]
        assert kinds.count(RecordKind.SESSION) == 2
        assert kinds[-1] == kind


def test_processes_join_and_leave_and_links_change_during_a_run(cutset, tmp_path):
    experiment = write_experiment(tmp_path, faults=JOINED_AND_LEFT_AND_CUT)
    [run] = cutset.run(experiment, set=LONG, analyze=False).runs
    record = run.record
    assert_whole(record)
    changes = record["changes"]
    planned = [record["plan"]["changes"][change["index"]] for change in changes]
    assert [change["action"] for change in planned[:3]] == ["join", "join", "leave"]
    assert [change["state"] for change in planned[3:]] == ["blackhole", "blackhole", "up", "up"]
    assert [change["direction"] for change in planned[3:]] == ["forward", "backward"] * 2
    zero_ns = record["times"]["zero_ns"]
    requested_ms = [(change["requested_ns"] - zero_ns) / 1e6 for change in changes]
    assert requested_ms == [300, 300, 600, 2000, 2000, 2500, 2500]
    assert all(change["applied_ns"] >= change["requested_ns"] for change in changes)
    names = [process["name"] for process in record["processes"]]
    assert len(names) == len(set(names)) == REGIONS * PER_REGION
    assert {process["exit"]["code"] for process in record["processes"]} == {0}
    end_ns = {process["name"]: process["exit"]["time_ns"] for process in record["processes"]}
    assert end_ns["r0/client-0"] < record["times"]["stopped_ns"]
    written = run.directory.host_deliveries("r1-client-0").read_bytes()
    delivered = [delivery for delivery in read_records(written)[0] if delivery.kind == RecordKind.DELIVERED]
    assert {delivery.stream for delivery in delivered} == {0, 1}
    assert min(delivery.first_seq for delivery in delivered) == 1
