"""No name in the files of a run, a sweep or a night leads out of its folder."""

import json
import os
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from analysis.jobs.extraction import part_name
from experiments.campaigns.nights import NightDirectory
from experiments.campaigns.sweepdir import SweepDirectory, runs
from experiments.files.plain_name import plain_name
from experiments.files.whole_files import write_whole
from experiments.records.json_files import write_json
from experiments.records.run_record import record_from_json
from experiments.records.rundir import RunDirectory
from tests.analysis.timelines.world import run_json
from tests.campaigns import night_record, night_run, sweep_record
from topologies.errors import InputError

NOW = datetime(2026, 11, 21, 5, 0, tzinfo=UTC)
ELSEWHERE = ("..", ".", "", "../precious", "/etc", "a/b", "a\nb", "\0", "n" * 201, None, 7)


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    """Create a user's folder beside the sweep."""
    folder = tmp_path / "precious"
    folder.mkdir()
    (folder / "thesis.tex").write_text("all of it")
    return folder


@pytest.fixture
def sweep(tmp_path: Path) -> SweepDirectory:
    directory = SweepDirectory.create(tmp_path, "small", NOW, "abc123")
    directory.write(sweep_record(*runs({"roles.driver": [1, 2]}, 1, 7)))
    return directory


def change_run(sweep: SweepDirectory, **fields: str) -> None:
    content = json.loads(sweep.sweep_json.read_text())
    content["runs"][0] |= fields
    sweep.sweep_json.write_text(json.dumps(content))


@pytest.mark.parametrize("name", ELSEWHERE)
def test_names_with_several_path_parts_are_refused(name, tmp_path):
    with pytest.raises(InputError, match="is not the name of a file"):
        plain_name(name, tmp_path)


@pytest.mark.parametrize("name", ["r2-proxy-0", "r0-r1@r1.pcap", "ä b", "...", "-x"])
def test_any_other_name_is_accepted(name, tmp_path):
    assert plain_name(name, tmp_path) == name


@pytest.mark.parametrize("absolute", [True, False])
def test_a_sweep_naming_other_directories_removes_none_of_them(sweep, precious, absolute):
    [run, _] = sweep.read().runs
    change_run(sweep, run=str(precious) if absolute else "../precious")
    with pytest.raises(
        InputError, match=r"sweep\.json: runs\.0\.run: .* is not the directory of .*: it leads"
    ):
        sweep.read()
    made = sweep.make_run(replace(run, run="../precious"))
    assert made.path == sweep.points / run.name
    assert (precious / "thesis.tex").exists()


def test_a_sweep_with_a_run_name_outside_its_folder_is_refused(sweep, precious):
    change_run(sweep, name="../../precious")
    with pytest.raises(InputError, match=r"sweep\.json.*is not the name of a file"):
        sweep.read()
    with pytest.raises(InputError, match="is not the name of a file"):
        sweep.make_run(replace(runs({}, 1, 7)[0], name="../../precious"))
    assert (precious / "thesis.tex").exists()


def test_links_in_place_of_folders_are_not_followed(sweep, precious):
    [point, _] = sweep.read().runs
    (precious / point.name).mkdir()
    (precious / point.name / "thesis.tex").write_text("all of it")
    sweep.points.rmdir()
    sweep.points.symlink_to(precious)
    with pytest.raises(InputError, match="symbolic link"):
        sweep.make_run(point)
    sweep.points.unlink()
    sweep.points.mkdir()
    sweep.run_of(point).path.symlink_to(precious)
    with pytest.raises(InputError, match="symbolic link"):
        sweep.make_run(point)
    assert (precious / point.name / "thesis.tex").exists()


@pytest.mark.parametrize("field", ["run", "torn"])
def test_a_night_naming_other_directories_moves_none_of_them(tmp_path, field):
    night = NightDirectory.for_night(tmp_path / "runs", date(2026, 11, 21), "small")
    run = night_run(**{field: "../precious" if field == "run" else ("../precious",)})
    night.write(night_record(run))
    with pytest.raises(InputError, match=r"night\.json.*is not the name of a run"):
        night.read()


@pytest.mark.parametrize("name", ["../../precious", "/etc/passwd"])
def test_names_in_run_json_cannot_leave_the_run_directory(tmp_path, name):
    run = RunDirectory(tmp_path / "a-run")
    for path in (run.capture, run.log, run.host_deliveries, run.host_collection, run.storage, part_name):
        with pytest.raises(InputError, match="is not the name of a file"):
            path(name)
    content = run_json()
    content["plan"]["hosts"][0]["name"] = name
    with pytest.raises(InputError, match="is not the name of a file"):
        record_from_json(content)


def test_atomic_writes_follow_no_symbolic_link(tmp_path):
    (tmp_path / "passwd").write_text("root")
    (tmp_path / f".run.json.{os.getpid()}.tmp").symlink_to(tmp_path / "passwd")
    write_json(tmp_path / "run.json", {"schema": 1})
    (tmp_path / f".log.{os.getpid()}.tmp").symlink_to(tmp_path / "passwd")
    write_whole(tmp_path / "log", "text")
    assert (tmp_path / "passwd").read_text() == "root"
