"""A sweep's directory: what is planned, what became of it, and that a torn run is made from nothing."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from experiments.sweep import runs
from experiments.sweepdir import PointRecord, SweepDirectory, SweepRecord
from topologies.errors import InputError

NOW = datetime(2026, 11, 21, 5, 0, tzinfo=UTC)


@pytest.fixture
def directory(tmp_path: Path) -> SweepDirectory:
    return SweepDirectory.create(tmp_path, "small", NOW, "abc123")


def record(directory: SweepDirectory) -> SweepRecord:
    points = tuple(PointRecord.planned(run) for run in runs({"roles.driver": [1, 2]}, 2, 7))
    return SweepRecord(
        directory.name, {"name": "small"}, "local", "auto", 7, 2, "digest", None, 1_000, points
    )


def test_its_paths(directory):
    assert directory.name == "20261121T050000Z-small-abc123"
    point = record(directory).points[1]
    assert (point.run, point.summary) == ("points/2-driver-2-r0", "points/2-driver-2-r0/summary.json")
    assert directory.run_of(point).path == directory.path / point.run


def test_what_is_written_reads_back(directory):
    written = record(directory)
    ended = replace(written.points[2], outcome="completed", verdict="passed", headline={"lost": 0})
    directory.write(written.with_point(ended))
    read = directory.read()
    assert read.points[2] == ended
    assert [point.ended for point in read.points] == [False, False, True, False]
    assert read == written.with_point(ended)


def test_a_run_made_again_begins_with_nothing(directory):
    point = record(directory).points[0]
    run = directory.make_run(point)
    (run.logs / "torn.jsonl").write_text("{")
    assert list(directory.make_run(point).logs.iterdir()) == []


@pytest.mark.parametrize("content", ["[]", "{", '{"points": [{}]}', '{"points": [], "colour": "red"}'])
def test_what_is_no_record_is_bad_input(directory, content):
    directory.sweep_json.write_text(content)
    with pytest.raises(InputError, match=r"sweep\.json"):
        directory.read()


def test_a_run_is_no_sweep(tmp_path):
    with pytest.raises(InputError, match=r"is no directory of a sweep: it has no sweep\.json"):
        SweepDirectory.open(tmp_path)
