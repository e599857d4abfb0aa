"""A night on disk: its paths, what is written reads back, and what a crash left is set aside."""

import json
import time
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from experiments.campaigns.campaign import FailureKind, RunState
from experiments.campaigns.nights import NightDirectory, night_of
from tests.campaigns import night_record, night_run

RUNS = (
    night_run(),
    night_run(repetition=1, seed=12),
    night_run("peak", seed=13, experiment="throughput", allow_failure=True),
)
RECORD = night_record(*RUNS)


@pytest.fixture
def night(tmp_path: Path) -> NightDirectory:
    return NightDirectory.for_night(tmp_path / "runs", date(2026, 11, 21), "quick")


def test_a_nights_record_reads_back(night):
    failed = replace(
        RUNS[1],
        state=RunState.FAILED,
        failure=FailureKind.CRASH,
        problem="died",
        torn=("20261121T050000Z-x.torn",),
    )
    record = replace(RECORD.with_run(failed), findings=("throughput fell",), exit_code=1)
    night.write(record)
    assert night.read() == record
    assert [run.ended for run in night.read().runs] == [False, True, False]


def test_a_record_that_says_nothing_of_what_came_later_is_read(night):
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


def test_the_latest_night_is_that_of_the_suite(night, tmp_path):
    runs = tmp_path / "runs"
    for day, suite in ((19, "quick"), (21, "quick"), (22, "very-quick"), (23, "full")):
        NightDirectory.for_night(runs, date(2026, 11, day), suite).write(RECORD)
    assert NightDirectory.latest(runs, "quick") == night
    assert NightDirectory.latest(runs, "quick", before="2026-11-21").path.name == "2026-11-19-quick"
    assert NightDirectory.latest(runs, "quick", before="2026-11-19") is None
    assert NightDirectory.latest(runs, "none") is None
