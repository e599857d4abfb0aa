"""The index describes a capture's content, the length of its valid part, and the problem with the rest."""

import json
import os
import struct
from itertools import pairwise
from pathlib import Path

import pytest

from analysis.capture.pcap.files import index as index_module
from analysis.capture.pcap.files import scan
from analysis.capture.pcap.files.compressed import readable
from analysis.capture.pcap.files.index import build_index, load_index, sidecar
from analysis.errors import CaptureError
from tests.analysis.capture.pcap.blocks import block, section
from tests.analysis.capture.pcap.captures import (
    START_NS,
    Record,
    at_intervals,
    pcap_bytes,
    segment,
    write_pcap,
)

RECORDS = at_intervals([segment(n, bytes(n % 50)) for n in range(100)])
SIZES = [16 + len(record.data) for record in RECORDS]


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("nanoseconds", [True, False])
def test_an_index_counts_packets_and_times(tmp_path: Path, order: str, nanoseconds: bool) -> None:
    index = build_index(write_pcap(tmp_path / "a.pcap", RECORDS, order=order, nanoseconds=nanoseconds))
    assert (index.packets, index.first_ns, index.last_ns) == (100, START_NS, START_NS + 99_000_000)
    assert (index.good_bytes, index.problem) == (24 + sum(SIZES), None)


def test_splits_cover_the_records_without_overlap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "SPLIT_BYTES", 500)
    monkeypatch.setattr(scan, "_WINDOW_BYTES", 2000)
    index = build_index(write_pcap(tmp_path / "a.pcap", RECORDS))
    assert len(index.splits) > 8
    assert index.splits[0].offset == 24
    assert index.splits[-1].end == index.good_bytes
    pairs = pairwise(index.splits)
    assert all(a.end == b.offset and a.last_ns < b.first_ns for a, b in pairs)
    assert index.packets == 100


@pytest.mark.parametrize(
    ("field", "value"), [(8, b"\xff\xff\xff\x7f"), (4, b"\xff\xff\xff\xff")], ids=["length", "fraction"]
)
def test_a_damaged_header_ends_the_valid_part_and_is_reported(
    tmp_path: Path, field: int, value: bytes
) -> None:
    content = bytearray(pcap_bytes(RECORDS))
    tenth = 24 + sum(SIZES[:10])
    content[tenth + field : tenth + field + 4] = value
    (tmp_path / "a.pcap").write_bytes(content)
    index = build_index(tmp_path / "a.pcap")
    assert (index.packets, index.good_bytes) == (10, tenth)
    assert f"byte {tenth}" in str(index.problem)


def test_a_fraction_of_a_whole_second_carries_over_and_is_counted(tmp_path: Path) -> None:
    """Scapy 2.8 writes such a fraction for a time of 100.9999997."""
    content = bytearray(pcap_bytes(RECORDS, nanoseconds=False))
    second = 24 + SIZES[0]
    content[second : second + 8] = struct.pack("<II", 100, 1_000_000)
    (tmp_path / "a.pcap").write_bytes(content)
    index = build_index(tmp_path / "a.pcap")
    assert (index.packets, index.problem) == (len(RECORDS), None)
    assert index.first_ns == 101 * 10**9
    assert index.unused == {"time stamps with a whole second in their fraction": 1}


def test_a_capture_without_packets_is_valid(tmp_path: Path) -> None:
    index = build_index(write_pcap(tmp_path / "a.pcap", []))
    assert (index.packets, index.first_ns, index.problem, index.splits) == (0, None, None, ())


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "empty"),
        (b"\xd4\xc3\xb2\xa1\x02", "too few"),
        (b"hello, I am no capture at all", "neither a pcap nor a pcapng file"),
        (b"\x0a\x0d\x0d\x0a" + bytes(40), "damaged section header"),
        (section()[:20], "cut off"),
        (section().replace(b"\x4d\x3c\x2b\x1a", b"\x4d\x3c\x2b\x1b"), "byte order 4d3c2b1b"),
        (block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 2, 0, -1)), "version 2"),
        (section()[:-4] + b"\x1d\0\0\0", "two lengths differ"),
    ],
)
def test_files_other_than_captures_are_refused_by_name(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "odd.pcap").write_bytes(content)
    with pytest.raises(CaptureError, match=rf"odd\.pcap.*{said}"):
        load_index(tmp_path / "odd.pcap")
    with pytest.raises(CaptureError, match="No such file"):
        load_index(tmp_path / "none.pcap")


def test_the_sidecar_is_used_until_the_capture_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_pcap(tmp_path / "a.pcap", RECORDS)
    first = load_index(path)
    assert sidecar(path).exists()
    monkeypatch.setattr(index_module, "build_index", lambda _: pytest.fail("walked again"))
    assert load_index(path) == first
    monkeypatch.undo()
    times = [5, 3, 9, 4]
    write_pcap(path, [Record(START_NS + times[n % 4], one.data) for n, one in enumerate(RECORDS)])
    os.utime(path, ns=(1, path.stat().st_mtime_ns + 1))
    assert path.stat().st_size == first.file_bytes
    assert (load_index(path).first_ns, load_index(path).last_ns) == (START_NS + 3, START_NS + 9)


@pytest.mark.parametrize("torn", ["", "{", "[]", '{"schema": 99}', '{"schema": 1}'])
def test_a_damaged_or_foreign_sidecar_is_rebuilt(tmp_path: Path, torn: str) -> None:
    path = write_pcap(tmp_path / "a.pcap", RECORDS)
    sidecar(path).write_text(torn)
    assert load_index(path).packets == 100
    assert json.loads(sidecar(path).read_text())["schema"] == index_module.SCHEMA


@pytest.mark.parametrize("name", ["a.pcap", "a.pcap.zst"])
def test_a_pipe_in_place_of_a_capture_does_not_block(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(CaptureError, match="is not a regular file"):
        load_index(readable(tmp_path / name))
