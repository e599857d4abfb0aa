"""A changed or removed record of a client's deliveries is detected by its effects."""

import shutil
import struct
from pathlib import Path

import pytest

from experiments.records.rundir import RunDirectory
from node.core.deliveries import RECORD, RecordKind
from testbed.cli import main
from tests.testbed.runner.live import write_experiment

pytestmark = pytest.mark.slow
GOT = "deliveries/r1-client-0.deliveries"
CRC = struct.calcsize(">IIQQ")
"""Offset of a batch's CRC in a record."""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Make a run in virtual time, which has only the records of its processes."""
    folder = tmp_path_factory.mktemp("made")
    experiment = write_experiment(folder, faults="on: simulator\ncaptures: none\n")
    assert main.run(["run", str(experiment), "--out", str(folder / "runs")]) == 0
    [run] = (folder / "runs").iterdir()
    return run


@pytest.fixture
def run(made, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return RunDirectory(Path(shutil.copytree(made, tmp_path / "there" / made.name)))


def removed(content: bytes) -> bytes:
    """Return the records without the last batch."""
    return content[: -RECORD.size]


def changed(content: bytes) -> bytes:
    """Return the records with another CRC of the last batch, as if its events had been altered in transit."""
    last = bytearray(content[-RECORD.size :])
    last[CRC] ^= 1
    return content[: -RECORD.size] + bytes(last)


def test_delivery_records_support_the_claims(run, capsys):
    assert main.run(["verify", str(run.path)]) == 0
    assert capsys.readouterr().out.endswith("verified: everything holds\n")


@pytest.mark.parametrize(("change", "figure"), [(removed, "events.delivered"), (changed, "events.corrupted")])
def test_one_changed_record_is_found_by_its_effects(run, change, figure, capsys):
    content = (run.path / GOT).read_bytes()
    assert RecordKind(RECORD.unpack(content[-RECORD.size :])[6]) is RecordKind.DELIVERED
    (run.path / GOT).write_bytes(change(content))
    assert main.run(["verify", str(run.path)]) == 1
    said = capsys.readouterr().out
    assert f"  {figure}: claimed " in said
    assert said.endswith("not verified: see above\n")
