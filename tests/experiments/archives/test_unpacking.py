"""A foreign or hostile archive is refused in one line and leaves no files."""

import fcntl
import io
import os
import shutil
import tarfile
import tracemalloc
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import zstandard

from experiments.archives import unpacking
from experiments.archives.packing import COUNT
from experiments.archives.unpacking import unpacked
from topologies.errors import InputError

NAME = "20260314T020000Z-link-failure-0a1b2c"
RUN_JSON = f"{NAME}/run.json"


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    return tmp_path / "run.tar.zst"


@pytest.fixture
def there(tmp_path: Path) -> Iterator[Path]:
    """Yield the target folder, and check that nothing else was written."""
    yield tmp_path / "there"
    assert {path.name for path in tmp_path.iterdir()} <= {"run.tar.zst", "there"}


def refused(archive: Path, there: Path, said: str) -> None:
    """Check that the archive is refused and leaves no files."""
    with pytest.raises(InputError, match=said):
        unpacked(archive, there)
    assert not there.exists() or not list(there.iterdir())


def write(
    archive: Path, *members: tuple[str, bytes], headers: Mapping[str, str] | None = None, **fields: Any
) -> None:
    """Write an archive of these files. headers: the last one's pax headers. fields: of its own header."""
    files = []
    for name, content in members:
        member = tarfile.TarInfo(name)
        member.size = len(content)
        files.append((member, content))
    member.pax_headers = dict(headers or {})
    for name, value in fields.items():
        setattr(member, name, value)
    stream = io.BytesIO()
    count = {COUNT: str(sum(not member.isdir() for member, _ in files))}
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT, pax_headers=count) as tar:
        for member, content in files:
            tar.addfile(member, io.BytesIO(content))
    archive.write_bytes(zstandard.compress(stream.getvalue()))


@pytest.mark.parametrize(
    "fields",
    [
        {"name": f"{NAME}/../../outside"},
        {"name": "/tmp/outside"},
        {"name": f"{NAME}d/file"},
        {"name": NAME + "/d" * 40},
        {"name": f"{NAME}/\x1b[2Jfile"},
        {"type": tarfile.SYMTYPE, "linkname": "/etc/passwd"},
        {"type": tarfile.CHRTYPE},
        {"type": tarfile.GNUTYPE_LONGNAME},
        {"type": tarfile.GNUTYPE_SPARSE},
    ],
)
def test_members_other_than_files_and_folders_of_the_run_are_refused(
    archive: Path, there: Path, fields: dict[str, Any]
) -> None:
    write(archive, (RUN_JSON, b"{}"), (f"{NAME}/file", b"hello"), **fields)
    refused(archive, there, r"out of its folder|no packed run contains|neither a file nor a folder")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("path", f"{NAME}/a\0b"),
        ("path", f"{NAME}/{'x' * 300}"),
        ("size", "-5"),
        ("linkpath", "/etc/passwd"),
        ("hdrcharset", "BINARY"),
        ("GNU.sparse.map", "0,1"),
        ("SCHILY.xattr.user.a", "b"),
    ],
)
def test_unexpected_pax_headers_are_refused(archive: Path, there: Path, key: str, value: str) -> None:
    write(archive, (RUN_JSON, b"{}"), (f"{NAME}/file", b"hello"), headers={key: value})
    refused(archive, there, "which no packed run contains|File name too long")


@pytest.mark.parametrize("mtime", ["nan", "inf", "1e30", "-1e30", "now"])
def test_modification_times_of_members_are_ignored(archive: Path, there: Path, mtime: str) -> None:
    write(archive, (RUN_JSON, b"{}"), (f"{NAME}/file", b"hello"), headers={"mtime": mtime})
    place, _ = unpacked(archive, there)
    made_ns = [(place / name).stat().st_mtime_ns for name in ("run.json", "file")]
    assert min(made_ns) >= archive.stat().st_mtime_ns


def refused_in_little_memory(archive: Path, there: Path, said: str) -> None:
    tracemalloc.start()
    try:
        refused(archive, there, said)
        assert tracemalloc.get_traced_memory()[1] < 10 << 20
    finally:
        tracemalloc.stop()


def test_a_header_of_a_gibibyte_is_not_read(archive: Path, there: Path) -> None:
    header = tarfile.TarInfo("header")
    header.type, header.size = tarfile.XHDTYPE, 1 << 30
    plain = header.tobuf() + b"9 comment=" + b"x" * (64 << 20)  # the rest would come
    archive.write_bytes(zstandard.compress(plain))
    del plain
    refused_in_little_memory(archive, there, "has a header of 1048576 KiB")


def test_a_map_of_a_sparse_file_is_not_read(archive: Path, there: Path) -> None:
    sparse = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": "5"}
    plan = b"4000000\n" + b"0\n0\n" * 4_000_000
    write(archive, (RUN_JSON, b"{}"), (f"{NAME}/file", plan), headers=sparse)
    del plan
    refused_in_little_memory(archive, there, "holds a sparse file")


@pytest.mark.parametrize("records", [b"0 path=a\n", b"9 path=a", b"x\n", b"9" * 5000])
def test_broken_headers_are_refused(archive: Path, there: Path, records: bytes) -> None:
    header = tarfile.TarInfo("header")
    header.type, header.size = tarfile.XHDTYPE, len(records)
    plain = header.tobuf() + records + bytes(-len(records) % 512)
    archive.write_bytes(zstandard.compress(plain))
    refused(archive, there, "is damaged, or no packed run")


@pytest.mark.parametrize("text", [b"[" * 100_000, b'{"a":' * 100_000, b"9" * 10_000, b"\xff", b"{"])
def test_an_unreadable_run_json_is_refused(archive: Path, there: Path, text: bytes) -> None:
    write(archive, (RUN_JSON, text))
    refused(archive, there, r"its run\.json is not JSON")


@pytest.mark.parametrize("name", ["nights", "history", ".hidden", "run", "20260314T020000Z", "2026\x1b"])
def test_only_directories_with_the_name_of_a_run_are_unpacked(archive: Path, there: Path, name: str) -> None:
    write(archive, (f"{name}/run.json", b"{}"))
    refused(archive, there, "leads out of its folder|which no packed run contains")


def test_folders_count_towards_the_member_limit(
    archive: Path, there: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpacking, "MEMBERS_MAX", 1)
    write(archive, (RUN_JSON, b"{}"), (f"{NAME}/folder", b""), type=tarfile.DIRTYPE)
    refused(archive, there, "holds more than 1 files and folders")
    monkeypatch.setattr(unpacking, "MEMBERS_MAX", 2)
    assert (unpacked(archive, there)[0] / "folder").is_dir()


def test_a_duplicate_member_is_refused(archive: Path, there: Path) -> None:
    write(archive, (RUN_JSON, b"{}"), (RUN_JSON, b"[]"))
    refused(archive, there, "cannot be unpacked")


def test_data_after_the_archives_end_is_refused(archive: Path, there: Path) -> None:
    write(archive, (RUN_JSON, b"{}"))
    plain = zstandard.ZstdDecompressor().stream_reader(archive.read_bytes()).read()
    archive.write_bytes(zstandard.compress(plain + bytes(2 << 20)))
    refused(archive, there, "data follows its end")


def test_stale_folders_are_removed_but_not_those_in_use(archive: Path, there: Path) -> None:
    write(archive, (RUN_JSON, b"{}"))
    left, busy = there / ".unpacking-left", there / ".unpacking-busy"
    for folder in (left, busy):
        (folder / NAME).mkdir(parents=True)
    lock = os.open(busy, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        place, _ = unpacked(archive, there)
    finally:
        os.close(lock)
    assert sorted(there.iterdir()) == [busy, place]


def test_an_archive_with_an_implausible_compression_ratio_is_refused(
    archive: Path, there: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpacking, "SIZE_ALWAYS_ALLOWED", 1 << 20)
    write(archive, (RUN_JSON, b"{}"), *((f"{NAME}/logs/{n}", bytes(1 << 20)) for n in range(8)))
    assert archive.stat().st_size < 8 << 10
    refused(archive, there, r"unpacks to more than \d MiB, 1000 times its size.*tar --zstd -xf")


def test_small_files_count_with_their_disk_blocks(
    archive: Path, there: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpacking, "SIZE_ALWAYS_ALLOWED", 1 << 20)
    monkeypatch.setattr(unpacking, "GROWTH_MAX", 1)
    write(archive, (RUN_JSON, b"{}"), *((f"{NAME}/logs/{n}", b"") for n in range(300)))
    refused(archive, there, r"unpacks to more than 1 MiB")


def test_an_archive_may_fill_at_most_half_of_the_free_space(
    archive: Path, there: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(archive.parent)
    small = usage._replace(free=(600 << 20))
    monkeypatch.setattr(unpacking.shutil, "disk_usage", lambda _: small)
    monkeypatch.setattr(unpacking, "FREE_SHARE", 1e-3)
    write(archive, (RUN_JSON, b"{}"), (f"{NAME}/logs/a", bytes(1 << 20)))
    refused(archive, there, "unpacks to more than 0 MiB, half of what is free")
    monkeypatch.setattr(unpacking, "FREE_SHARE", 0.5)
    assert unpacked(archive, there)[1]
