"""One record of what a client got, taken away or changed, is found: by its hash, and by what it changes."""

import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from experiments.records.rundir import RunDirectory
from node.core.deliveries import RECORD, RecordKind
from testbed.cli import main
from tests.testbed.campaign.repacking import repacked
from tests.testbed.runner.live import write_experiment

pytestmark = pytest.mark.slow
GOT = "deliveries/r1-client-0.deliveries"
CRC = struct.calcsize(">IIQQ")
"""Offset of a batch's CRC in a record."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a run in virtual time, which has only the records of its processes."""
    folder = tmp_path_factory.mktemp("made")
    experiment = write_experiment(folder, faults="on: simulator\ncaptures: none\n")
    assert main.run(["run", str(experiment), "--out", str(folder / "runs")]) == 0
    [run] = (folder / "runs").iterdir()
    return run


@pytest.fixture
def run(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunDirectory:
    monkeypatch.chdir(tmp_path)
    return RunDirectory(Path(shutil.copytree(made, tmp_path / "there" / made.name)))


def removed(content: bytes) -> bytes:
    """Without its last batch."""
    return content[: -RECORD.size]


def changed(content: bytes) -> bytes:
    """With another CRC of its last batch, as of events that arrived otherwise than they were sent."""
    last = bytearray(content[-RECORD.size :])
    last[CRC] ^= 1
    return content[: -RECORD.size] + bytes(last)


def packed(run: RunDirectory) -> Path:
    archive = Path("run.tar.zst").absolute()
    assert main.run(["export", str(run.path), "-o", str(archive)]) == 0
    return archive


@pytest.fixture(params=[removed, changed], ids=["removed", "changed"])
def change(request: pytest.FixtureRequest) -> Callable[[Path], object]:
    """Return a change of a run's directory."""

    def changed(place: Path) -> None:
        content = (place / GOT).read_bytes()
        assert RecordKind(RECORD.unpack(content[-RECORD.size :])[6]) is RecordKind.DELIVERED
        (place / GOT).write_bytes(request.param(content))

    return changed


def test_delivery_logs_support_the_claims(run: RunDirectory, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["verify", str(packed(run))]) == 0
    assert capsys.readouterr().out.endswith("verified: everything holds\n")


def test_one_record_is_found_by_its_hash(
    run: RunDirectory, change: Callable[[Path], object], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(["verify", str(repacked(packed(run), change))]) == 1
    assert f"{GOT}: has changed since it was packed" in capsys.readouterr().out


def test_one_record_is_found_though_the_hashes_were_made_after_it(
    run: RunDirectory,
    change: Callable[[Path], object],
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
) -> None:
    change(run.path)
    assert main.run(["verify", str(packed(run))]) == 1
    said = capsys.readouterr().out
    assert "has changed since it was packed" not in said
    figure = "events.corrupted" if "changed" in request.node.callspec.id else "events.delivered"
    assert f"  {figure}: claimed " in said
    assert said.endswith("not verified: see above\n")
