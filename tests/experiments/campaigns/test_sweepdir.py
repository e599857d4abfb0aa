"""A sweep's directory: what is planned, what became of it, and that a torn run is made from nothing."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from experiments.campaigns.sweepdir import SweepDirectory, SweepRecord, runs
from tests.campaigns import sweep_record
from topologies.errors import InputError

NOW = datetime(2026, 11, 21, 5, 0, tzinfo=UTC)


@pytest.fixture
def directory(tmp_path: Path) -> SweepDirectory:
    return SweepDirectory.create(tmp_path, "small", NOW, "abc123")


def record(directory: SweepDirectory) -> SweepRecord:
    return sweep_record(*runs({"roles.driver": [1, 2]}, 2, 7), sweep=directory.name, repeat=2)


def test_a_run_made_again_begins_with_nothing(directory):
    point = record(directory).runs[0]
    run = directory.make_run(point)
    (run.logs / "torn.jsonl").write_text("{")
    assert list(directory.make_run(point).logs.iterdir()) == []


def test_a_run_is_no_sweep(tmp_path):
    with pytest.raises(InputError, match=r"is no directory of a sweep: it has no sweep\.json"):
        SweepDirectory.open(tmp_path)
