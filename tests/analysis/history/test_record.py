"""The history's rows of a run's directory, complete or not."""

import json
from pathlib import Path
from typing import Any

import pytest

from analysis.history import History, HistoryRecord, record_from_run, record_of_failed_start
from experiments.planned.plan import plan_to_json
from experiments.records.rundir import RunDirectory
from tests.run_json import SMALL
from topologies.errors import InputError

NAME = "20260314T020000Z-link-failure-0a1b2c"
S = 1_000_000_000
RUN = {
    "experiment": {"name": "link-failure"}, "seed": 7, "links": "relay", "commit": "c0ffee",
    "versions": {"python": "3.11.7", "cutset": "0.1.0", "kernel": "6.1"},
    "machine": {"cpus": 2, "memory_bytes": 4}, "phase": "collected", "outcome": "completed",
    "times": {"started_ns": 1_000 * S, "ended_ns": 1_064 * S}, "problems": ["r0/proxy-0 ended unexpectedly"],
}  # fmt: skip
SUMMARY = {
    "verdict": "failed",
    "fidelity": {"valid": True, "reasons": ["no captures of links"]},
    "latency": {"p95_ms": 82.0},
    "expectations": [
        {"text": "latency.p95_ms <= 80", "value": 82.0, "held": False},
        {"text": "agreement.held == true", "value": True, "held": True},
        {"text": "links == netem", "value": "relay", "held": False},
    ],
}


def directory(parent: Path, run: dict[str, Any], summary: dict[str, Any] | None) -> RunDirectory:
    path = parent / NAME
    (path / "captures").mkdir(parents=True)
    (path / "captures" / "a.pcap").write_bytes(b"x" * 1000)
    (path / "run.json").write_text(json.dumps({"plan": plan_to_json(SMALL), **run}))
    if summary is not None:
        (path / "summary.json").write_text(json.dumps(summary))
    return RunDirectory(path)


def kept(run: RunDirectory) -> HistoryRecord:
    return record_from_run(
        run, night="2026-03-14", suite="quick", entry="cut", repeat=2, settings={"duration": "30s"}
    )


def test_a_complete_run_is_recorded_with_its_place_and_results(tmp_path: Path) -> None:
    record = kept(directory(tmp_path, RUN, SUMMARY))
    assert (record.run, record.path) == (NAME, str(tmp_path / NAME))
    assert (record.suite, record.entry, record.repeat, record.experiment) == (
        "quick",
        "cut",
        2,
        "link-failure",
    )
    assert (record.seed, record.commit, record.cutset, record.kernel) == (7, "c0ffee", "0.1.0", "6.1")
    assert (record.links, record.place, record.machine["cpus"]) == ("relay", "local", 2)
    assert (record.outcome, record.verdict, record.valid) == ("completed", "failed", True)
    assert (record.started_ns, record.duration_s, record.captures_bytes) == (1_000 * S, 64.0, 1000)
    assert record.reasons == ("no captures of links",)
    assert record.problems == ("r0/proxy-0 ended unexpectedly",)
    assert [(metric.name, metric.value) for metric in record.metrics] == [("latency.p95_ms", 82.0)]
    assert [(each.value, each.held) for each in record.expectations] == [
        (82.0, False), (1.0, True), (None, False),
    ]  # fmt: skip


def test_a_run_without_a_summary_crashed(tmp_path: Path) -> None:
    run = {**RUN, "outcome": None, "phase": "building", "times": {"started_ns": 1_000 * S}}
    record = kept(directory(tmp_path, run, None))
    assert (record.verdict, record.valid, record.outcome) == ("crashed", False, "died while building")
    assert (record.duration_s, record.metrics, record.expectations) == (0.0, (), ())


def test_a_simulated_run_has_its_creation_time_and_real_duration(tmp_path: Path) -> None:
    record = kept(directory(tmp_path, {**RUN, "links": "simulator", "simulation": {"wall_s": 6.5}}, SUMMARY))
    assert record.place == "simulator"
    assert record.duration_s == 6.5
    assert record.started_ns == 1_773_453_600 * S  # 2026-03-14T02:00:00Z, as its name says


def test_a_run_on_several_machines_has_the_place_hosts(tmp_path: Path) -> None:
    assert kept(directory(tmp_path, {**RUN, "machines": [{"name": "a"}]}, SUMMARY)).place == "hosts"


@pytest.mark.parametrize("allowed", [True, False])
def test_the_history_records_allowed_failures(tmp_path: Path, allowed: bool) -> None:
    of: dict[str, Any] = {"night": "2026-03-14", "suite": "quick", "settings": {}, "allow_failure": allowed}
    history = History(tmp_path / "history")
    history.append(record_from_run(directory(tmp_path, RUN, SUMMARY), entry="cut", repeat=0, **of))
    history.append(
        record_of_failed_start("no tcpdump", entry="cut", repeat=1, experiment="x", started_ns=S, **of)
    )
    assert history.runs()["allow_failure"].to_pylist() == [allowed, allowed]


def test_a_run_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    run = directory(tmp_path, RUN, None)
    run.summary_json.write_text("{torn")
    with pytest.raises(InputError, match="is not JSON"):
        kept(run)


@pytest.mark.parametrize(
    ("summary", "found"), [({**SUMMARY, "verdict": "degraded"}, "degraded"), ({}, "None")]
)
def test_an_unknown_verdict_is_refused(tmp_path: Path, summary: dict[str, Any], found: str) -> None:
    run = directory(tmp_path, RUN, summary)
    with pytest.raises(InputError, match=rf"summary\.json: verdict: expected one of .*, found {found}"):
        kept(run)


def test_a_run_that_could_not_start_is_recorded(tmp_path: Path) -> None:
    record = record_of_failed_start(
        "tcpdump is missing", night="2026-03-14", suite="quick", entry="cut", repeat=1, settings={},
        experiment="link-failure", started_ns=1_773_453_600 * S,
    )  # fmt: skip
    assert record.run == "20260314T020000Z-cut-1-not-started"
    history = History(tmp_path)
    history.append(record)
    (row,) = history.runs().to_pylist()
    assert (row["outcome"], row["verdict"], row["path"]) == ("not started", "crashed", "")
    assert row["problems"] == ["tcpdump is missing"]
