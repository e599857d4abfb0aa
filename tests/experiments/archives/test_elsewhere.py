"""Packed runs in S3, with a real server on loopback and Arrow's own client."""

import errno
import json
import shutil
from pathlib import Path
from typing import IO

import pytest
from pyarrow.fs import copy_files

from experiments.archives import elsewhere
from experiments.archives.elsewhere import download_run
from experiments.archives.stores import copy, store_and_path
from experiments.records.rundir import INDEX, KEY_LOG, RunDirectory
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


def test_a_url_without_a_run_is_refused(
    run: RunDirectory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    elsewhere_url = run.path.parent.as_uri()
    assert main.run(["report", elsewhere_url]) == 2
    assert "is neither a run's directory nor a packed run (*.tar.zst)" in capsys.readouterr().err
    assert main.run(["verify", run.path.as_uri()]) == 2
    assert "should name a file that ends with .tar.zst" in capsys.readouterr().err
    assert list((tmp_path / "runs").iterdir()) == []


@pytest.mark.slow
def test_a_directory_in_s3_is_downloaded_once_without_rebuildable_files(
    s3: str, run: RunDirectory, tmp_path: Path
) -> None:
    store, path = store_and_path(f"s3://lab/runs/{NAME}?{s3}")
    [capture, *_] = sorted(run.captures.glob("*.pcap"))
    (run.captures / (capture.name + INDEX)).write_text("{}")
    (run.path / KEY_LOG).write_text("CLIENT_RANDOM 00 00")
    copy_files(str(run.path), path, destination_filesystem=store)
    url = f"s3a://lab/runs/{NAME}/?{s3}"
    place = tmp_path / "runs" / NAME
    assert download_run(url, tmp_path / "runs") == (place, True)
    assert download_run(url, tmp_path / "runs") == (place, False)
    there = {file.relative_to(place): file.read_bytes() for file in place.rglob("*") if file.is_file()}
    here = {file.relative_to(run.path): file.read_bytes() for file in run.path.rglob("*") if file.is_file()}
    assert there == {file: content for file, content in here.items() if file.suffix != INDEX}
    assert (place / KEY_LOG).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("record", ["junk", "[]", "{}", ""])
def test_a_directory_with_an_invalid_record_replaces_no_valid_run(
    run: RunDirectory, tmp_path: Path, record: str
) -> None:
    bad = RunDirectory(shutil.copytree(run.path, tmp_path / "bad" / NAME))
    bad.run_json.write_text(record)
    with pytest.raises(InputError) as raised:
        download_run(bad.path.as_uri(), tmp_path / "runs")
    assert raised.value.file == bad.path.as_uri()
    assert download_run(run.path.as_uri(), tmp_path / "runs") == (tmp_path / "runs" / NAME, True)


def test_an_interrupted_download_leaves_no_files_and_other_runs_are_untouched(
    run: RunDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks_off(store: object, path: str, file: Path, size: int) -> None:
        if file.parent.name == "captures":
            raise OSError(errno.ECONNRESET, "Connection reset by peer")
        copy(store, path, file, size)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(elsewhere, "copy", breaks_off)
        with pytest.raises(InputError, match="Connection reset by peer"):
            download_run(run.path.as_uri(), tmp_path / "runs")
    assert list((tmp_path / "runs").iterdir()) == []

    assert download_run(run.path.as_uri(), tmp_path / "runs") == (tmp_path / "runs" / NAME, True)
    content = json.loads(run.run_json.read_text())
    run.run_json.write_text(json.dumps(content | {"commit": "of another checkout"}))
    with pytest.raises(InputError, match="already exists and is a different run"):
        download_run(run.path.as_uri(), tmp_path / "runs")


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
