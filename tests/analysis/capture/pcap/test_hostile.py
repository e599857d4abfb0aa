"""Any file content is accepted: problems are reported, and the valid part before them is used."""

import gzip
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analysis.capture.pcap import fragments
from analysis.capture.pcap.files import scan
from analysis.capture.pcap.files.compressed import unpack
from analysis.capture.pcap.files.index import CaptureIndex, build_index
from analysis.capture.pcap.files.record_batches import read_span, spans_of
from analysis.capture.time_range import TimeRange
from analysis.errors import CaptureError
from analysis.schemas import PACKETS
from tests.analysis.capture.pcap.blocks import block, enhanced, interface, obsolete, section, simple
from tests.analysis.capture.pcap.captures import at_intervals, pcap_bytes, segment
from tests.analysis.capture.pcap.judging import tsharks
from tests.analysis.capture.pcap.reading import ours

FRAMES = [segment(n * 10, bytes(n * 7 % 90)) for n in range(40)]


def _pcapng(order: str) -> bytes:
    parts = [section(order), interface(order=order), interface(276, order=order, resolution=0x8A, offset_s=5)]
    for number, frame in enumerate(FRAMES):
        parts.append(enhanced(frame, number, order=order, number=number % 2, comment=b"x" * (number % 5)))
        parts.append(
            (obsolete(frame, 9, order=order), simple(frame, order=order), block(77, frame, order))[number % 3]
        )
    return b"".join(parts)


GOOD = {
    "pcap": pcap_bytes(at_intervals(FRAMES)),
    "microseconds, big-endian": pcap_bytes(at_intervals(FRAMES), order=">", nanoseconds=False),
    "pcapng": _pcapng("<") + _pcapng(">"),
}
EVERY = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def attempt(path: Path) -> tuple[CaptureIndex | None, str]:
    """Return the index of a file, or the error."""
    try:
        return build_index(unpack(path)), ""
    except CaptureError as error:
        return None, str(error)


def read(path: Path) -> tuple[CaptureIndex, int] | None:
    """Read all of a file; None if it was refused with an error. Checks invariants of any file."""
    found, said = attempt(path)
    if found is None:
        assert path.name in said
        return None
    path = unpack(path)
    rows = 0
    for span in spans_of(path, found, TimeRange()):
        for batch in read_span(span, PACKETS):
            batch.validate(full=True)
            columns = {name: batch.column(name).to_numpy() for name in ("offset", "length", "payload_length")}
            assert (columns["offset"] + columns["length"] <= found.good_bytes).all()
            assert (columns["length"] >= 0).all()
            assert (columns["payload_length"] >= 0).all()
            rows += batch.num_rows
    assert rows == found.packets
    assert (found.problem is None) == (found.good_bytes == found.file_bytes)
    return found, rows


@pytest.fixture(autouse=True)
def _small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use small windows and splits, so that small files have many."""
    for module, name, value in (
        (scan, "_WINDOW_BYTES", 2_000), (scan, "_FIRST_WINDOW_BYTES", 300), (scan, "SPLIT_BYTES", 500),
        (scan, "_BATCH_RECORDS", 7), (fragments, "WAITING_MAX", 2),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, value)


@EVERY
@given(
    st.binary(max_size=400),
    st.sampled_from([b"", *(good[:48] for good in GOOD.values()), b"\x1f\x8b\x08\0", b"\x28\xb5\x2f\xfd"]),
)
def test_random_bytes_are_refused_or_read(tmp_path: Path, noise: bytes, beginning: bytes) -> None:
    (tmp_path / "a").write_bytes(beginning + noise)
    read(tmp_path / "a")


@EVERY
@pytest.mark.parametrize("name", GOOD)
@given(data=st.data())
@pytest.mark.slow
def test_records_before_any_damage_are_read(tmp_path: Path, name: str, data: st.DataObject) -> None:
    content = bytearray(GOOD[name])
    (tmp_path / "whole").write_bytes(content)
    whole = build_index(tmp_path / "whole")
    at = data.draw(st.integers(0, len(content) - 1))
    content[at : at + data.draw(st.integers(0, 4))] = data.draw(st.binary(min_size=1, max_size=6))
    (tmp_path / "a").write_bytes(content)
    found = read(tmp_path / "a")
    if found is not None:
        before = sum(split.packets for split in whole.splits if split.end <= at)
        assert found[0].packets >= before or at < 200  # what describes interfaces stands first
        assert len(content) - 40_000 < found[0].good_bytes <= len(content)


@EVERY
@pytest.mark.parametrize("name", GOOD)
@given(cut=st.integers(0, 12_000))
def test_truncation_loses_only_the_truncated_record(tmp_path: Path, name: str, cut: int) -> None:
    whole = GOOD[name]
    content = whole[: cut % len(whole)]
    (tmp_path / "a").write_bytes(content)
    found = read(tmp_path / "a")
    if found is not None:
        (tmp_path / "whole").write_bytes(whole)
        assert found[0].good_bytes <= len(content)
        longest = max(len(frame) for frame in FRAMES) + 80
        assert len(content) - found[0].good_bytes < longest
        assert found[0].problem is None or "cut off" in found[0].problem


@pytest.mark.parametrize(("name", "cut"), list(zip(GOOD, (1, 13, 100), strict=True)))
def test_tshark_reads_as_many_records_of_a_truncated_file(tmp_path: Path, name: str, cut: int) -> None:
    (tmp_path / "a").write_bytes(GOOD[name][:-cut])
    assert len(ours(tmp_path / "a")[1]) == len(tsharks(tmp_path / "a"))


@EVERY
@pytest.mark.parametrize("packing", [gzip.compress, zstandard.ZstdCompressor(write_checksum=True).compress])
@given(data=st.data())
def test_records_before_the_damage_of_a_compressed_file_are_read(
    tmp_path: Path, packing: Callable[[bytes], bytes], data: st.DataObject
) -> None:
    content = bytearray(packing(GOOD["pcap"]))
    cut = data.draw(st.booleans())
    at = data.draw(st.integers(0, len(content) - 1))
    content[at:] = b"" if cut else bytes([content[at] ^ data.draw(st.integers(1, 255))]) + content[at + 1 :]
    (tmp_path / "a.pcap.x").write_bytes(content)
    found, said = attempt(tmp_path / "a.pcap.x")
    if found is None:
        assert "a.pcap.x" in said
    elif cut:
        assert found.problem is not None
        assert "the compressed file is cut off" in found.problem
        assert GOOD["pcap"].startswith(unpack(tmp_path / "a.pcap.x").read_bytes())
    elif at > 10:  # headers may say that there is no check sum, or another time of compression
        unnoticed = found.problem is None  # some bits of zstd's blocks mean nothing
        assert not unnoticed or unpack(tmp_path / "a.pcap.x").read_bytes() == GOOD["pcap"]


def _peak(path: Path) -> int:
    tracemalloc.start()
    try:
        read(path)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", ["empty packets", "empty sections", "interfaces", "empty blocks"])
@pytest.mark.slow
def test_files_of_many_small_records_take_bounded_memory(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    content = {
        "empty packets": GOOD["pcap"][:24] + struct.pack("<IIII", 1, 2, 0, 0) * 100_000,
        "empty sections": section() * 400,
        "interfaces": section() + interface() * 10_000,
        "empty blocks": section() + interface() + block(77, b"") * 200_000,
    }[kind]
    (tmp_path / "a").write_bytes(content)
    assert _peak(tmp_path / "a") < 30_000_000


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        (struct.pack("<III", 6, 0, 0) * 50, "damaged block at byte {}: length 0"),
        (section()[:-4] + b"\x1d\0\0\0", "damaged section header at byte {}: its two lengths differ"),
    ],
)
def test_an_invalid_block_ends_the_valid_part_and_is_reported(
    tmp_path: Path, more: bytes, problem: str
) -> None:
    good = section() + interface() + enhanced(FRAMES[0], 1)
    (tmp_path / "a").write_bytes(good + more)
    found = build_index(tmp_path / "a")
    assert (found.packets, found.good_bytes, found.problem) == (1, len(good), problem.format(len(good)))
