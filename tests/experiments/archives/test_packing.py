"""A packed run is unpacked unchanged; a damaged archive is refused and leaves no files."""

import io
import json
import shutil
import stat
import subprocess
import tarfile
from pathlib import Path

import pytest
import zstandard

from experiments.archives.packing import SUMS, check_captures, pack
from experiments.archives.unpacking import unpacked
from experiments.records.run_record import Outcome, RunRecord, record_to_json
from experiments.records.rundir import RunDirectory
from tests.run_json import SMALL
from topologies.errors import InputError

NAME = "20260314T020000Z-link-failure-0a1b2c"
ENTERED = record_to_json(RunRecord(SMALL, run=NAME, seed=7, outcome=Outcome.COMPLETED))


def make_run(path: Path) -> RunDirectory:
    run = RunDirectory(path)
    run.make()
    run.run_json.write_text(json.dumps(ENTERED))
    run.summary_json.write_text('{"verdict": "passed"}')
    (run.captures / "a.pcap").write_bytes(bytes(range(256)) * 5000)
    (run.analysis / "packets.parquet").mkdir()
    (run.analysis / "packets.parquet" / "part-0.parquet").write_bytes(b"packets")
    return run


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return make_run(tmp_path / "here" / NAME)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    return tmp_path / "run.tar.zst"


def contents(folder: Path) -> dict[str, bytes]:
    """All files by their paths, without their hashes."""
    found = (path for path in folder.rglob("*") if path.is_file() and path.name != SUMS)
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def test_an_unpacked_run_equals_the_packed_one(run: RunDirectory, archive: Path, tmp_path: Path) -> None:
    packed = pack(run.path, archive, captures=True)
    assert packed.files == 4
    assert packed.bytes == sum(map(len, contents(run.path).values()))
    assert packed.archive_bytes == archive.stat().st_size < packed.bytes / 10
    place, just_now = unpacked(archive, tmp_path / "there")
    assert (place, just_now) == (tmp_path / "there" / NAME, True)
    assert contents(place) == contents(run.path)
    assert list((tmp_path / "there").iterdir()) == [place]


def test_a_run_packed_without_captures_records_that_and_is_not_reanalysed(
    run: RunDirectory, archive: Path, tmp_path: Path
) -> None:
    pack(run.path, archive, captures=False)
    place, _ = unpacked(archive, tmp_path / "there")
    assert set(contents(place)) == {"run.json", "summary.json", "analysis/packets.parquet/part-0.parquet"}
    with pytest.raises(InputError, match="no longer has captures"):
        check_captures(RunDirectory(place))
    check_captures(run)  # the run itself has them


def test_temporary_files_are_not_packed(run: RunDirectory, archive: Path, tmp_path: Path) -> None:
    before = contents(run.path)
    run.unpacked.mkdir()
    (run.unpacked / "a.pcap").write_bytes(b"again")
    (run.path / ".run.json.7.tmp").write_text("{torn")
    (run.analysis / "packets.part").mkdir()
    (run.analysis / "packets.part" / "x").write_bytes(b"torn")
    (run.path / "link").symlink_to("/etc/hostname")
    pack(run.path, archive, captures=True)
    assert contents(unpacked(archive, tmp_path / "there")[0]) == before


def test_tls_keys_are_packed_with_mode_600_or_left_out(
    run: RunDirectory, archive: Path, tmp_path: Path
) -> None:
    run.key_log.write_text("keys\n")
    kept = run.program_key_log("r0-broker-0")
    kept.parent.mkdir(parents=True)
    kept.write_text("not collected\n")
    assert pack(run.path, archive, captures=True).keys
    place = RunDirectory(unpacked(archive, tmp_path / "there")[0])
    assert place.key_log.read_text() == "keys\n"
    assert stat.S_IMODE(place.key_log.stat().st_mode) == 0o600
    for number, given in enumerate(({"captures": True, "keys": False}, {"captures": False})):
        assert not pack(run.path, archive, **given).keys
        place = RunDirectory(unpacked(archive, tmp_path / str(number))[0])
        assert not list(place.path.rglob("tls-keys*"))
    pack(run.path, archive, captures=True, keys=False)
    record = RunDirectory(unpacked(archive, tmp_path / "without")[0]).read_run()
    assert record.left_out == {"keys": "left out when the run was packed"}


def test_a_sweep_is_packed_with_all_its_runs(tmp_path: Path, archive: Path) -> None:
    sweep = tmp_path / "here" / "20260314T020000Z-sweep-0a1b2c"
    for point in ("1-r0", "2-r0"):
        make_run(sweep / "points" / point)
    (sweep / "sweep.json").write_text("{}")
    pack(sweep, archive, captures=False)
    place, _ = unpacked(archive, tmp_path / "there")
    assert (place / "sweep.json").is_file()
    for point in ("1-r0", "2-r0"):
        assert not (place / "points" / point / "captures").exists()
        with pytest.raises(InputError, match="no longer has captures"):
            check_captures(RunDirectory(place / "points" / point))


def test_tar_and_sha256sum_read_it_too(run: RunDirectory, archive: Path, tmp_path: Path) -> None:
    if shutil.which("zstd") is None:
        pytest.skip("tar needs zstd")
    (run.captures / "r0-r1@r0 100 %: a#b?.pcap").write_bytes(b"packets")
    pack(run.path, archive, captures=True)
    subprocess.run(["tar", "--zstd", "-xf", archive, "-C", tmp_path], check=True)
    assert contents(tmp_path / NAME) == contents(run.path)
    subprocess.run(["sha256sum", "--check", "--quiet", SUMS], cwd=tmp_path / NAME, check=True)


def test_unpacking_again_does_nothing(run: RunDirectory, archive: Path, tmp_path: Path) -> None:
    pack(run.path, archive, captures=True)
    place, _ = unpacked(archive, tmp_path / "there")
    (place / "summary.json").write_text("analysed again")
    assert unpacked(archive, tmp_path / "there") == (place, False)
    assert (place / "summary.json").read_text() == "analysed again"


def test_an_archive_without_captures_accepts_the_existing_run_with_captures(
    run: RunDirectory, archive: Path
) -> None:
    pack(run.path, archive, captures=False)
    assert unpacked(archive, run.path.parent) == (run.path, False)


def test_an_archive_with_captures_refuses_an_existing_run_without_them(
    run: RunDirectory, archive: Path, tmp_path: Path
) -> None:
    small = tmp_path / "small.tar.zst"
    pack(run.path, small, captures=False)
    pack(run.path, archive, captures=True)
    unpacked(small, tmp_path / "there")
    with pytest.raises(InputError, match="already exists, but lacks its captures"):
        unpacked(archive, tmp_path / "there")


def test_another_run_of_that_name_is_not_touched(run: RunDirectory, archive: Path, tmp_path: Path) -> None:
    pack(run.path, archive, captures=True)
    other = make_run(tmp_path / "there" / NAME)
    other.run_json.write_text('{"run": "mine", "seed": 8}')
    before = contents(other.path)
    with pytest.raises(InputError, match="already exists and is a different run"):
        unpacked(archive, tmp_path / "there")
    assert contents(other.path) == before


@pytest.mark.parametrize("left", [0, 3, 100, 0.3, 0.9])
def test_a_truncated_archive_is_refused_and_leaves_no_files(
    run: RunDirectory, archive: Path, tmp_path: Path, left: float
) -> None:
    pack(run.path, archive, captures=True)
    whole = archive.read_bytes()
    archive.write_bytes(whole[: int(left * len(whole)) if 0 < left < 1 else int(left)])
    with pytest.raises(InputError, match=r"is damaged|is truncated|is not a packed run"):
        unpacked(archive, tmp_path / "there")
    assert not list(tmp_path.glob("there/*"))
    assert not list(tmp_path.glob("there/.*"))


@pytest.mark.slow
def test_a_changed_byte_never_changes_a_file_undetected(
    run: RunDirectory, archive: Path, tmp_path: Path
) -> None:
    pack(run.path, archive, captures=True)
    whole = archive.read_bytes()
    for place in range(0, len(whole), len(whole) // 20):
        archive.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        there = tmp_path / f"there-{place}"
        try:  # some bits, as padding, do not change what is unpacked
            assert contents(unpacked(archive, there)[0]) == contents(run.path)
        except InputError:
            assert not list(there.glob("*")), place


def test_a_missing_member_is_detected(run: RunDirectory, archive: Path, tmp_path: Path) -> None:
    pack(run.path, archive, captures=True)
    plain = zstandard.ZstdDecompressor().stream_reader(archive.read_bytes()).read()
    with tarfile.open(fileobj=io.BytesIO(plain)) as tar:
        last = tar.getmembers()[-1]
    archive.write_bytes(zstandard.compress(plain[: last.offset]))  # ends where a member ends
    with pytest.raises(InputError, match="is truncated: it has 4 of its 5 files"):
        unpacked(archive, tmp_path / "there")


def test_a_failed_write_leaves_no_archive(run: RunDirectory, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be packed"):
        pack(run.path, tmp_path / "missing" / "run.tar.zst", captures=True)
    assert not (tmp_path / "missing").exists()


def test_an_existing_archive_is_replaced_when_the_new_one_is_complete(
    run: RunDirectory, archive: Path
) -> None:
    archive.write_text("old")
    (run.path / "unreadable").write_text("")
    (run.path / "run.json").write_text("{torn")
    with pytest.raises(InputError):
        pack(run.path, archive, captures=False)
    assert archive.read_text() == "old"
    assert [path.name for path in archive.parent.iterdir() if path.is_file()] == [archive.name]


def test_a_run_of_a_sweep_is_named_after_its_sweep_too(tmp_path: Path, archive: Path) -> None:
    point = make_run(tmp_path / "20260314T020000Z-sweep-0a1b2c" / "points" / "1-r0")
    pack(point.path, archive, captures=True)
    place, _ = unpacked(archive, tmp_path / "there")
    assert place.name == "20260314T020000Z-sweep-0a1b2c.1-r0"


def test_a_run_that_was_renamed_is_not_packed(tmp_path: Path, archive: Path) -> None:
    with pytest.raises(InputError, match="does not have the name of a run"):
        pack(make_run(tmp_path / "mine").path, archive, captures=True)
    assert not archive.exists()
