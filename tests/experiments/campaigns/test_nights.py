"""A night on disk: paths, reading back, and renaming of what a crash left."""

import json
import time
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from pydantic_core import PydanticCustomError

from experiments.campaigns.campaign import RunState
from experiments.campaigns.nights import NightDirectory, night_of
from experiments.campaigns.sweep import points, refuse_unusable, values_text
from experiments.campaigns.sweepdir import SweepDirectory, SweepRecord, runs
from tests.campaigns import night_record, night_run, sweep_record
from topologies.errors import InputError

RUNS = (
    night_run(),
    night_run(repetition=1, seed=12),
    night_run("peak", seed=13, experiment="throughput", allow_failure=True),
)
RECORD = night_record(*RUNS)


@pytest.fixture
def night(tmp_path: Path) -> NightDirectory:
    return NightDirectory.for_night(tmp_path / "runs", date(2026, 11, 21), "quick")


def test_a_record_without_later_fields_is_read(night):
    night.write(RECORD)
    content = json.loads(night.night_json.read_text())
    del content["findings_allowed"], content["unchecked"]
    night.night_json.write_text(json.dumps(content))
    assert night.read() == RECORD


@pytest.mark.parametrize(("zone", "day"), [("UTC", 21), ("<-10>10", 20), ("<+14>-14", 21)])
def test_a_night_has_the_date_of_the_machine_s_own_clock(monkeypatch, zone, day):
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        assert night_of(datetime(2026, 11, 21, 2, tzinfo=UTC)) == date(2026, 11, day)
    finally:
        monkeypatch.undo()
        time.tzset()


def test_an_interrupted_runs_directory_is_renamed_and_the_run_repeated(night):
    left = night.runs / "20261121T020000Z-link-failure-abc123"
    left.mkdir(parents=True)
    torn = replace(RUNS[0], state=RunState.RUNNING, run=left.name, tries=1)
    again = night.set_aside(torn)
    assert (again.state, again.run, again.tries) == (RunState.PENDING, None, 1)
    assert again.torn == (f"{left.name}.torn",)
    assert [path.name for path in night.runs.iterdir()] == [f"{left.name}.torn"]


def test_latest_returns_the_last_night_of_the_suite(night, tmp_path):
    runs = tmp_path / "runs"
    for day, suite in ((19, "quick"), (21, "quick"), (22, "very-quick"), (23, "full")):
        NightDirectory.for_night(runs, date(2026, 11, day), suite).write(RECORD)
    assert NightDirectory.latest(runs, "quick") == night
    assert NightDirectory.latest(runs, "quick", before="2026-11-21").path.name == "2026-11-19-quick"
    assert NightDirectory.latest(runs, "quick", before="2026-11-19") is None
    assert NightDirectory.latest(runs, "none") is None


NOW = datetime(2026, 11, 21, 5, 0, tzinfo=UTC)


@pytest.fixture
def directory(tmp_path: Path) -> SweepDirectory:
    return SweepDirectory.create(tmp_path, "small", NOW, "abc123")


def record(directory: SweepDirectory) -> SweepRecord:
    return sweep_record(*runs({"roles.driver": [1, 2]}, 2, 7), sweep=directory.name, repeat=2)


def test_make_run_removes_the_content_of_an_earlier_attempt(directory):
    point = record(directory).runs[0]
    run = directory.make_run(point)
    (run.logs / "torn.jsonl").write_text("{")
    assert list(directory.make_run(point).logs.iterdir()) == []


def test_a_run_directory_is_not_opened_as_a_sweep(tmp_path):
    with pytest.raises(InputError, match=r"is not a directory of a sweep: it has no sweep\.json"):
        SweepDirectory.open(tmp_path)


def test_points_are_all_combinations_with_the_last_path_varying_fastest():
    assert points({"roles.driver": [1, 2], "workload.rate": ["1/s", "2/s"]}) == [
        {"roles.driver": 1, "workload.rate": "1/s"},
        {"roles.driver": 1, "workload.rate": "2/s"},
        {"roles.driver": 2, "workload.rate": "1/s"},
        {"roles.driver": 2, "workload.rate": "2/s"},
    ]


def test_combinations_are_bounded():
    with pytest.raises(PydanticCustomError, match="more than 10000 combinations"):
        refuse_unusable({f"parameters.p{n}": list(range(100)) for n in range(3)})


def test_every_combination_runs_once_before_the_next_repetition_and_seed():
    made = runs({"roles.driver": [1, 2]}, repeat=2, seed=7)
    assert [(run.name, run.repetition, run.seed) for run in made] == [
        ("1-driver-1-r0", 0, 7),
        ("2-driver-2-r0", 0, 7),
        ("1-driver-1-r1", 1, 8),
        ("2-driver-2-r1", 1, 8),
    ]


def test_run_names_are_valid_paths_and_sort_in_run_order():
    made = runs({"workload.rate": [f"{n}/s" for n in range(1, 13)], "captures": ["none"]}, repeat=11, seed=1)
    assert made[0].name == "01-rate-1-s-captures-none-r00"
    assert len({run.name for run in made}) == len(made) == 132


def test_values_are_shown_as_after_set():
    values = {"roles": {"proxy": 1}, "workload.closed_loop": True, "captures.where": ["hosts"]}
    assert values_text(values) == "roles={proxy: 1} workload.closed_loop=true captures.where=[hosts]"
