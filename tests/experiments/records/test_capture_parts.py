"""Captures in parts: ordered by name, and joined to the file of a single capture even after a crash."""

import struct
from pathlib import Path

import pytest

from experiments.records import capture_parts
from experiments.records.key_log import client_randoms, key_lines
from topologies.errors import InputError

HEADER = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262_144, 1)


def record(number: int) -> bytes:
    return struct.pack("<IIII", 1_700_000_000, number, 4, 4) + number.to_bytes(4)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three parts of records 0 to 5; the second one is empty, as after a second without packets."""
    made = capture_parts.folder_of(tmp_path / "r0-client-0-eth0.pcap")
    made.mkdir()
    for name, numbers in (("999", (0, 1, 2)), ("1000", ()), ("1001", (3, 4, 5))):
        (made / f"{name}.pcap").write_bytes(HEADER + b"".join(map(record, numbers)))
    return made


def whole() -> bytes:
    return HEADER + b"".join(map(record, range(6)))


def test_parts_are_ordered_numerically(folder: Path) -> None:
    (folder / "notes.pcap").touch()
    assert [capture_parts.number(part) for part in capture_parts.parts(folder)] == [999, 1000, 1001]


def test_joined_parts_equal_a_single_capture(folder: Path) -> None:
    assert capture_parts.join_all(folder.parent) == 1
    assert capture_parts.capture_of(folder).read_bytes() == whole()
    assert not folder.exists()
    assert [path.name for path in folder.parent.iterdir()] == ["r0-client-0-eth0.pcap"]


def test_an_interrupted_join_is_repeated(folder: Path) -> None:
    (folder.parent / "r0-client-0-eth0.pcap.joining").write_bytes(b"half of it")
    capture_parts.join_all(folder.parent)
    assert capture_parts.capture_of(folder).read_bytes() == whole()


def test_parts_left_beside_the_joined_capture_are_removed(folder: Path) -> None:
    capture = capture_parts.capture_of(folder)
    capture.write_bytes(whole())
    (folder / "999.pcap").unlink()
    capture_parts.join_all(folder.parent)
    assert capture.read_bytes() == whole()
    assert not folder.exists()


def test_a_part_without_a_file_header_holds_no_packets(folder: Path) -> None:
    (folder / "1002.pcap").write_bytes(HEADER[:10])
    capture_parts.join_all(folder.parent)
    assert capture_parts.capture_of(folder).read_bytes() == whole()


def test_a_capture_without_a_single_part_is_an_empty_file(tmp_path: Path) -> None:
    made = capture_parts.folder_of(tmp_path / "x.pcap")
    made.mkdir()
    capture_parts.join_all(tmp_path)
    assert (tmp_path / "x.pcap").read_bytes() == b""


def test_parts_of_different_captures_are_not_joined(folder: Path) -> None:
    other = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 96, 1)
    (folder / "1002.pcap").write_bytes(other + record(6))
    with pytest.raises(InputError, match=r"1002\.pcap.*another file header"):
        capture_parts.join_all(folder.parent)
    assert len(capture_parts.parts(folder)) == 4
    assert not capture_parts.capture_of(folder).exists()


def test_parts_that_are_still_written_are_not_joined(folder: Path) -> None:
    with (
        capture_parts.parts_lock(folder.parent),
        pytest.raises(InputError, match="still being written: wait until the run has ended"),
    ):
        capture_parts.join_all(folder.parent)
    assert len(capture_parts.parts(folder)) == 3


def test_the_kernel_copies_all_of_a_part_larger_than_one_copy(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capture_parts, "_COPY_BYTES", 7)
    capture_parts.join_all(folder.parent)
    assert capture_parts.capture_of(folder).read_bytes() == whole()


def test_symbolic_links_in_place_of_parts_are_not_followed(folder: Path, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "1000.pcap").write_bytes(b"all of it")
    capture = capture_parts.capture_of(folder)
    capture.with_name(f"{capture.name}.joining").symlink_to(precious / "1000.pcap")
    (folder.parent / f"other.pcap{capture_parts.SUFFIX}").symlink_to(precious)
    assert capture_parts.join_all(folder.parent) == 1
    assert capture.read_bytes() == whole()
    assert (precious / "1000.pcap").read_bytes() == b"all of it"


LINE = b"CLIENT_TRAFFIC_SECRET_0 " + b"ab" * 32 + b" " + b"cd" * 48 + b"\n"


@pytest.mark.parametrize(
    "other",
    [
        b"# comment\n",
        b"\n",
        b"CLIENT_RANDOM 12 34\n",
        b"client_random " + b"ab" * 32 + b" cd\n",
        b"\x00\xff" * 30 + b"\n",
        b" " + LINE,
        LINE[:-1] + b" more\n",
    ],
)
def test_only_whole_lines_of_the_form_count(tmp_path: Path, other: bytes) -> None:
    path = tmp_path / "keys"
    path.write_bytes(LINE + other + LINE)
    assert list(key_lines(path)) == [LINE, LINE]


def test_a_truncated_last_line_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_bytes(LINE + LINE[:-20])
    assert list(key_lines(path)) == [LINE]


def test_connections_are_known_by_their_clients_random_values(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_bytes(LINE + LINE.replace(b"CLIENT", b"SERVER") + LINE.replace(b"ab" * 32, b"01" * 32))
    assert client_randoms(path) == {b"\xab" * 32, b"\x01" * 32}
