"""Compressed captures are decompressed once, within bounds; unreadable parts are reported."""

import gzip
import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from analysis.capture.pcap.files import compressed
from analysis.capture.pcap.files.compressed import readable, unpack, unpacking_problem
from analysis.capture.pcap.files.index import build_index
from analysis.capture.pcap.files.naming import find_captures
from analysis.errors import CaptureError
from analysis.jobs.extraction import describe_captures, load_indices
from experiments.records.rundir import RunDirectory
from tests.analysis.capture.pcap.captures import at_intervals, pcap_bytes, segment
from tests.run_json import set_run

CONTENT = pcap_bytes(at_intervals([segment(n, os.urandom(4_000)) for n in range(100)]))
SKIPPED = struct.pack("<II", 0x184D2A53, 5) + b"hello"  # a frame that decoders pass over


def zstd(content: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True).compress(content)


PACKED = {
    "gzip": gzip.compress(CONTENT),
    "gzip in members": gzip.compress(CONTENT[:7])
    + gzip.compress(b"")
    + gzip.compress(CONTENT[7:])
    + bytes(512),
    "zstd": zstd(CONTENT),
    "zstd in frames": SKIPPED + zstd(CONTENT[:2]) + zstd(b"") + SKIPPED + zstd(CONTENT[2:]),
}


@pytest.mark.parametrize("name", PACKED)
def test_any_number_of_members_and_frames_are_one_capture(tmp_path: Path, name: str) -> None:
    """The format follows from the first bytes, not from the file name."""
    (tmp_path / "a.pcap").write_bytes(PACKED[name])
    assert unpack(tmp_path / "a.pcap") == readable(tmp_path / "a.pcap") == tmp_path / "unpacked" / "a.pcap"
    assert readable(tmp_path / "a.pcap").read_bytes() == CONTENT
    assert build_index(readable(tmp_path / "a.pcap")).problem is None


def test_a_capture_that_is_not_compressed_stays_where_it_is(tmp_path: Path) -> None:
    (tmp_path / "a.pcap").write_bytes(CONTENT)
    assert unpack(tmp_path / "a.pcap") == readable(tmp_path / "a.pcap") == tmp_path / "a.pcap"
    assert unpack(tmp_path / "none.pcap") == tmp_path / "none.pcap"
    assert [path.name for path in tmp_path.iterdir()] == ["a.pcap"]


def test_unpacking_is_done_once_until_the_file_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.pcap.gz"
    path.write_bytes(PACKED["gzip"])
    unpack(path)
    monkeypatch.setattr(compressed, "_copy", lambda *_: pytest.fail("unpacked again"))
    unpack(path)
    monkeypatch.undo()
    path.write_bytes(gzip.compress(CONTENT[:7_000]))
    assert unpack(path).read_bytes() == CONTENT[:7_000]
    (tmp_path / "unpacked" / "a.pcap.origin").write_text("[1")
    assert unpack(path).read_bytes() == CONTENT[:7_000]


@pytest.mark.parametrize("pack", [gzip.compress, zstd])
def test_a_truncated_file_is_used_as_far_as_it_goes_and_reported(
    tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "a.pcap.x"
    whole = pack(CONTENT)
    path.write_bytes(whole[: len(whole) * 2 // 3])
    index = build_index(unpack(path))
    assert 30 < index.packets < 100
    assert index.problem is not None
    assert "the compressed file is cut off" in index.problem
    assert unpacking_problem(unpack(path)) is not None


def test_garbage_after_the_last_member_is_reported_and_loses_no_packets(tmp_path: Path) -> None:
    (tmp_path / "a.pcap.gz").write_bytes(PACKED["gzip"] + b"garbage")
    index = build_index(unpack(tmp_path / "a.pcap.gz"))
    assert index.packets == 100
    assert str(index.problem).startswith(f"unpacked to byte {len(CONTENT)} only: ")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (gzip.compress(b"no capture at all", mtime=0), "neither a pcap nor a pcapng"),
        (gzip.compress(gzip.compress(CONTENT, mtime=0), mtime=0), "neither a pcap nor a pcapng"),
        (gzip.compress(b"", mtime=0), "unpacks to 0 bytes"),
        (b"\x1f\x8b\x08", "cannot be decompressed"),
        (b"\x28\xb5\x2f\xfd\xff\xff", "cannot be decompressed"),
    ],
)
def test_archives_without_a_capture_are_refused_and_leave_nothing(
    tmp_path: Path, content: bytes, said: str
) -> None:
    (tmp_path / "a.pcap.gz").write_bytes(content)
    with pytest.raises(CaptureError, match=rf"a\.pcap\.gz: .*{said}"):
        unpack(tmp_path / "a.pcap.gz")
    assert list((tmp_path / "unpacked").iterdir()) == []


def test_files_that_expand_beyond_the_limit_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compressed, "SIZE_ALWAYS_ALLOWED", 1_000_000)
    monkeypatch.setattr(compressed, "GROWTH_MAX", 2)
    for name, pack in (("a.gz", gzip.compress), ("a.zst", zstd)):
        (tmp_path / name).write_bytes(pack(CONTENT + bytes(50_000_000)))
        with pytest.raises(CaptureError, match=rf"{name}: unpacks to more than 1,000,000 bytes"):
            unpack(tmp_path / name)
    assert list((tmp_path / "unpacked").iterdir()) == []


def test_a_full_disk_is_not_filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=600 << 20))
    (tmp_path / "a.pcap.gz").write_bytes(PACKED["gzip"])
    unpack(tmp_path / "a.pcap.gz")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=500 << 20))
    (tmp_path / "b.pcap.gz").write_bytes(PACKED["gzip"])
    with pytest.raises(CaptureError, match=r"b\.pcap\.gz: no room to unpack it .* 500 MiB are free"):
        unpack(tmp_path / "b.pcap.gz")


def test_a_zstd_window_beyond_the_limit_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.pcap").write_bytes(CONTENT)
    how = zstandard.ZstdCompressionParameters(window_log=31)
    packer = zstandard.ZstdCompressor(compression_params=how).compressobj()
    (tmp_path / "a.pcap.zst").write_bytes(packer.compress(CONTENT) + packer.flush())
    with pytest.raises(CaptureError, match="too much memory"):
        unpack(tmp_path / "a.pcap.zst")


def test_each_capture_of_a_folder_is_read_once(tmp_path: Path) -> None:
    for file in ("b.pcap.zst", "b.pcap", "a.pcapng.gz", "c.pcapng", "c.pcap.gz", "a.pcap.index", "notes.txt"):
        (tmp_path / file).write_bytes(CONTENT)
    assert [path.name for path in find_captures(str(tmp_path))] == ["a.pcapng.gz", "b.pcap", "c.pcapng"]


def test_a_runs_unpacked_captures_are_in_its_analysis_and_unusable_ones_are_named(
    tmp_path: Path,
) -> None:
    run = RunDirectory(tmp_path / "a-run")
    run.make()
    files = ["a.pcap", "b.pcap", "c.pcap", "d.pcap"]
    set_run(run, captures=[{"file": f"captures/{file}"} for file in files])
    run.capture("a.pcap.zst").write_bytes(PACKED["zstd"])
    run.capture("b.pcapng").write_bytes(CONTENT)
    run.capture("c.pcap.gz").write_bytes(gzip.compress(b"junk, all of it"))
    indices, unusable = load_indices(run)
    assert list(indices) == [run.analysis / "unpacked" / "a.pcap", run.captures / "b.pcapng"]
    rows = {row["capture"]: row for row in describe_captures(indices, unusable).to_pylist()}
    assert {name: row["packets"] for name, row in rows.items()} == {"a": 100, "b": 100, "c": 0, "d": 0}
    assert "neither a pcap nor a pcapng" in rows["c"]["problem"]
    assert "No such file" in rows["d"]["problem"]
