"""Packed runs in S3, with a real server on loopback and Arrow's own client."""

import errno
from pathlib import Path
from typing import IO

import pytest

from experiments.archives import elsewhere
from experiments.archives.elsewhere import download_run
from experiments.records.rundir import RunDirectory
from testbed.cli import main
from tests.bench.traffic import write_run
from topologies.errors import InputError

NAME = "20260101T000000Z-link-failure-0a1b2c"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunDirectory:
    """Return a run without analysis."""
    monkeypatch.chdir(tmp_path)
    write_run(tmp_path / "mine" / NAME, 300, regions=2)
    return RunDirectory(tmp_path / "mine" / NAME)


@pytest.mark.slow
def test_a_run_uploaded_to_s3_is_downloaded_once_queried_and_verified(
    s3: str, run: RunDirectory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"s3a://lab/nights/{NAME}.tar.zst?{s3}"
    assert main.run(["analyze", str(run.path)]) == 0
    assert main.run(["export", str(run.path), "-o", url]) == 0
    assert main.run(["export", str(run.path), "-o", url]) == 2
    assert "exists already" in capsys.readouterr().err
    assert main.run(["export", str(run.path), "-o", url, "--force"]) == 0
    capsys.readouterr()

    assert main.run(["report", url]) == 0
    assert f"downloaded to {Path('runs', NAME)}" in capsys.readouterr().err
    assert main.run(["sql", url, "SELECT sum(delivered) AS n FROM deliveries", "--format", "csv"]) == 0
    out, told = capsys.readouterr()
    assert out.split() == ['"n"', str(300 * 100 * 2 * 4)]
    assert "already downloaded to" in told
    assert not [path for path in tmp_path.iterdir() if path.suffix == ".zst"]
    assert main.run(["verify", url]) == 0
    assert main.run(["export", str(run.path), "-o", "packed.tar.zst"]) == 0
    archive = tmp_path / "packed.tar.zst"
    content = bytearray(archive.read_bytes())
    content[len(content) // 2] ^= 1
    archive.write_bytes(content)
    capsys.readouterr()
    assert main.run(["verify", archive.as_uri()]) == 2  # although an earlier copy is here
    told = capsys.readouterr().err
    assert told.startswith(f"cutset: {archive.as_uri()}: is damaged")
    assert {path.name for path in tmp_path.iterdir()} == {"mine", "runs", "packed.tar.zst"}


def test_only_the_beginning_of_an_archive_is_downloaded_if_its_run_exists_locally(
    run: RunDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(elsewhere, "BEGINNING_BYTES", 40_000)
    assert main.run(["export", str(run.path), "-o", "packed.tar.zst"]) == 0
    archive = tmp_path / "packed.tar.zst"
    place = tmp_path / "runs" / NAME
    assert download_run(archive.as_uri(), tmp_path / "runs") == (place, True)
    archive.write_bytes(archive.read_bytes()[:50_000])
    assert download_run(archive.as_uri(), tmp_path / "runs") == (place, False)
    (place / "run.json").unlink()  # something else has its place
    with pytest.raises(InputError):
        download_run(archive.as_uri(), tmp_path / "runs")


def test_missing_or_unreachable_urls_are_reported_in_one_line(
    s3: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for url, problem in (
        (f"s3://lab/none.tar.zst?{s3}", "there is no such packed run"),
        (f"s3://no-such-bucket/none.tar.zst?{s3}", "there is no such packed run"),
        ("gopher://lab/a-run.tar.zst", "cannot be read or written"),
    ):
        with pytest.raises(InputError, match=problem) as raised:
            download_run(url, tmp_path)
        assert "\n" not in str(raised.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("damage", ["no archive", "cut off"])
def test_an_invalid_archive_leaves_no_files(s3: str, run: RunDirectory, tmp_path: Path, damage: str) -> None:
    assert main.run(["export", str(run.path), "-o", "whole.tar.zst"]) == 0
    whole = Path("whole.tar.zst").read_bytes()
    bad = tmp_path / "bad.tar.zst"
    bad.write_bytes(b"nothing of the kind" * 100_000 if damage == "no archive" else whole[: len(whole) // 2])
    with pytest.raises(InputError):
        download_run(bad.as_uri(), tmp_path / "runs")
    assert list((tmp_path / "runs").iterdir()) == []


def test_a_url_that_names_no_archive_is_refused(
    run: RunDirectory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in ("report", "verify"):
        assert main.run([command, run.path.as_uri()]) == 2
        assert "should name a file that ends with .tar.zst" in capsys.readouterr().err


def test_an_interrupted_download_leaves_no_files(
    run: RunDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks_off(*_: object) -> None:
        raise OSError(errno.ECONNRESET, "Connection reset by peer")

    assert main.run(["export", str(run.path), "-o", "packed.tar.zst"]) == 0
    monkeypatch.setattr(elsewhere, "copy", breaks_off)
    with pytest.raises(InputError, match="Connection reset by peer"):
        download_run((tmp_path / "packed.tar.zst").as_uri(), tmp_path / "runs")
    assert list((tmp_path / "runs").iterdir()) == []


def test_a_partial_upload_replaces_no_existing_archive(
    run: RunDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def send_a_part(source: IO[bytes], stream: IO[bytes], _: int) -> None:
        stream.write(source.read(1000))
        raise OSError(errno.ENOSPC, "No space left on device")

    place = tmp_path / "there" / "packed.tar.zst"
    place.parent.mkdir()
    place.write_bytes(b"of yesterday")
    monkeypatch.setattr(elsewhere.shutil, "copyfileobj", send_a_part)
    assert main.run(["export", str(run.path), "-o", place.as_uri(), "--force"]) == 2
    assert "No space left on device" in capsys.readouterr().err
    assert [path.read_bytes() for path in place.parent.iterdir()] == [b"of yesterday"]
