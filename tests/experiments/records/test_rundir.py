"""The run directory: made once, never torn, and clear about what is missing."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from experiments.records import rundir
from experiments.records.json_files import write_json
from experiments.records.run_record import RunPhase, RunRecord, write_record
from experiments.records.rundir import RunDirectory
from tests.run_json import SMALL
from topologies.errors import InputError

NOW = datetime(2024, 3, 1, 2, 3, 4, tzinfo=UTC)


def test_a_new_run_is_named_by_time_experiment_and_token(tmp_path):
    run = RunDirectory.create(tmp_path / "runs", "link-failure", NOW, "a1b2c3")
    assert run.name == "20240301T020304Z-link-failure-a1b2c3"
    assert {path.name for path in run.path.iterdir()} == {
        "captures",
        "logs",
        "deliveries",
        "analysis",
        "figures",
    }


def test_a_run_is_never_made_twice(tmp_path):
    RunDirectory.create(tmp_path, "x", NOW, "a1b2c3")
    with pytest.raises(FileExistsError):
        RunDirectory.create(tmp_path, "x", NOW, "a1b2c3")


def test_run_json_is_replaced_as_a_whole(tmp_path):
    run = RunDirectory.create(tmp_path, "x", NOW, "a1b2c3")
    write_record(run.run_json, RunRecord(SMALL))
    write_record(run.run_json, replace(run.read_run(), phase=RunPhase.RUNNING))
    assert run.read_run() == RunRecord(SMALL, phase=RunPhase.RUNNING)
    assert [path.name for path in run.path.glob("run.json*")] == ["run.json"]


def test_a_crash_while_writing_leaves_the_old_content(tmp_path, monkeypatch):
    path = tmp_path / "run.json"
    write_json(path, {"phase": "running"})

    def crash(_descriptor: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(rundir.os, "fsync", crash)
    with pytest.raises(KeyboardInterrupt):
        write_json(path, {"phase": "collected"})
    assert json.loads(path.read_text()) == {"phase": "running"}


def test_numbers_that_json_does_not_have_are_refused(tmp_path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "a.json", {"x": float("nan")})


def test_an_invalid_run_is_bad_input(tmp_path):
    with pytest.raises(InputError, match=r"is no run directory: it has no run\.json"):
        RunDirectory.open(tmp_path)
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(InputError, match=r"run\.json: is not JSON"):
        RunDirectory.open(tmp_path).read_run()
    (tmp_path / "run.json").write_text("[]")
    with pytest.raises(InputError, match="should hold a JSON object"):
        RunDirectory.open(tmp_path).read_run()
    with pytest.raises(InputError, match=r"summary\.json: cannot be read: No such file"):
        RunDirectory.open(tmp_path).read_summary()


def test_json_that_nests_too_deeply_is_refused_in_one_line(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    run.summary_json.write_text("[" * 100_000)
    with pytest.raises(InputError, match=r"summary\.json: is not JSON"):
        run.read_summary()


def test_runs_of_different_sweeps_have_different_full_names(tmp_path: Path) -> None:
    single = RunDirectory(tmp_path / "20260101T000000Z-x-abcdef")
    points = [RunDirectory(tmp_path / sweep / "points" / "1-r0") for sweep in ("one", "other")]
    assert single.full_name == single.name
    assert [point.full_name for point in points] == ["one.1-r0", "other.1-r0"]
