"""The run directory: made once, never torn, and clear about what is missing."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from experiments.records import rundir
from experiments.records.json_files import write_json
from experiments.records.run_record import RunPhase, RunRecord, write_record
from experiments.records.rundir import RunDirectory
from tests.run_json import SMALL
from topologies.errors import InputError

NOW = datetime(2024, 3, 1, 2, 3, 4, tzinfo=UTC)


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
