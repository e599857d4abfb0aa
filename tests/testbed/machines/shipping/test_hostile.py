"""Whatever a machine says, nothing outside of its places is written, and shipping ends."""

import contextlib
import json
import sys
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from testbed.machines.shipping.frames import (
    BODY_BYTES_MAX,
    GREETING,
    HEAD,
    FrameReader,
    Kind,
    ShippingError,
    encode,
)
from testbed.machines.shipping.messages import (
    ENTRIES_MAX,
    FileEntry,
    Hash,
    Listing,
    Read,
    decode_data,
    decode_digest,
    decode_message,
    decode_text,
    encode_data,
    encode_message,
)
from testbed.machines.shipping.names import PART_BYTES_MAX, PATH_BYTES_MAX, checked, destination
from tests.testbed.machines.shipping.machines import Machine, ProcessStream, read_files, ship_all


class Source:
    """Bytes that come in pieces of these sizes."""

    def __init__(self, data: bytes, pieces: list[int]) -> None:
        self._data = data
        self._pieces = pieces

    def read(self, size: int) -> bytes:
        """Read at most this many bytes, b"" at the end."""
        take = min(size, self._pieces.pop() if self._pieces else size)
        data, self._data = self._data[:take], self._data[take:]
        return data


frames = st.tuples(st.sampled_from(Kind), st.binary(max_size=300))
pieces = st.lists(st.integers(1, 50), max_size=50)
names = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"], exclude_characters="/\\"), min_size=1)
paths = st.lists(names, min_size=1, max_size=4).map("/".join).filter(lambda path: path == safe(path))


def safe(path: str) -> str | None:
    """Return the path if it is accepted."""
    try:
        return checked(path)
    except ShippingError:
        return None


@given(sent=st.lists(frames, max_size=5), pieces=pieces)
def test_frames_come_as_they_were_sent_however_the_stream_cuts_them(
    sent: list[tuple[Kind, bytes]], pieces: list[int]
) -> None:
    data = GREETING + b"".join(encode(kind, body) for kind, body in sent)
    received = FrameReader(Source(data, pieces).read)
    received.greet()
    assert [received.next() for _ in sent] == sent
    with pytest.raises(EOFError):
        received.next()


@given(data=st.binary(max_size=200), pieces=pieces)
def test_garbage_is_no_frame_and_no_crash(data: bytes, pieces: list[int]) -> None:
    received = FrameReader(Source(data, pieces).read)
    with pytest.raises((EOFError, ShippingError)):
        list(iter(received.next, None))


@given(body=st.binary(max_size=100) | st.text(max_size=50).map(str.encode))
@pytest.mark.slow
def test_garbage_is_no_message_and_no_crash(body: bytes) -> None:
    for kind in (Listing, Read, Hash):
        with contextlib.suppress(ShippingError):
            decode_message(kind, body)
    with contextlib.suppress(ShippingError):
        decode_digest(body)
    with pytest.raises(ShippingError):
        decode_data(body, 10)


@given(
    entries=st.lists(
        st.builds(FileEntry, paths, st.integers(0, 1 << 56), st.integers(0, 1 << 64)), max_size=5
    ),
    gone=st.lists(paths, max_size=5),
    more=st.booleans(),
)
def test_listings_come_as_they_were_sent(entries: list[FileEntry], gone: list[str], more: bool) -> None:
    listing = Listing(tuple(entries), tuple(gone), more)
    assert decode_message(Listing, encode_message(listing)[HEAD.size :]) == listing


@given(
    read=st.builds(Read, paths, st.integers(0, 1 << 56), st.integers(0, 1 << 20), st.text()),
    hashed=st.builds(Hash, paths, st.integers(0, 1 << 56)),
)
def test_requests_come_as_they_were_sent(read: Read, hashed: Hash) -> None:
    assert decode_message(Read, encode_message(read)[HEAD.size :]) == read
    assert decode_message(Hash, encode_message(hashed)[HEAD.size :]) == hashed


def test_the_longest_listing_fits_into_a_frame() -> None:
    part = "\U0001f600" * (PART_BYTES_MAX // 4)
    path = "/".join([part] * 5)
    assert PATH_BYTES_MAX * 0.9 < len(path.encode()) <= PATH_BYTES_MAX
    listing = Listing((FileEntry(path, 1 << 56, 1 << 64),) * ENTRIES_MAX, (), more=True)
    assert len(encode_message(listing)) < BODY_BYTES_MAX


@pytest.mark.parametrize(
    ("kind", "body", "said"),
    [
        (
            Listing,
            [[["a", 1, 1], ["../b", 1, 1]], [], False],
            r"listing\.0\.1\.0: .* leads out of the folder",
        ),
        (Listing, [[["a", -1, 1]], [], False], r"listing\.0\.0\.1: .* greater than or equal to 0"),
        (Listing, [[["a", "1", 1]], [], False], r"listing\.0\.0\.1: .* valid integer"),
        (Listing, [[["a", 1, 1, 1]], [], False], r"listing\.0\.0"),
        (Listing, [[["a", 1, 1]] * 200, ["b"] * 57, False], "a listing of more than 256 names"),
        (Listing, [[], ["b"] * 257, False], r"listing\.1: .* at most 256"),
        (Listing, {"entries": [], "gone": [], "more": False, "x": 1}, "listing"),
        (Read, ["a", 0, (1 << 20) + 1, ""], r"read\.2: .* less than or equal to 1048576"),
        (Read, ["a", 1.5, 1, ""], r"read\.1"),
        (Read, ["a", True, 1, ""], r"read\.1"),
        (Hash, ["a", (1 << 56) + 1], r"hash\.1"),
        (Hash, ["\x1b[2J", 1], r"hash\.0: .* is invalid"),
    ],
)
def test_errors_in_a_message_name_their_place(kind: type, body: object, said: str) -> None:
    with pytest.raises(ShippingError, match=said) as raised:
        decode_message(kind, json.dumps(body).encode())
    assert str(raised.value).isprintable()


@pytest.mark.parametrize(
    "path",
    [
        "", "/", "/etc/passwd", "..", "../x", "a/../../x", "a//b", "./a", "a/.", "a/", "a\0b", "a\nb",
        "a" * 201, "/".join("a" * 17), "a/" * 600 + "a", "x.shipping", "\udc80", "a\\b", None, 7, ["a"],
    ],
)  # fmt: skip
def test_names_that_lead_elsewhere_are_refused(path: object) -> None:
    with pytest.raises(ShippingError):
        checked(path)


@pytest.mark.parametrize(
    ("path", "where"),
    [
        ("captures/a.pcap", "captures/a.pcap"),
        ("storage/r0-proxy-0/log/1", "storage/r0-proxy-0/log/1"),
        ("logs/r0-proxy-0.jsonl", "logs/r0-proxy-0.jsonl"),
        ("logs/runner.log", "machines/h0/logs/runner.log"),
        ("run.json", "machines/h0/run.json"),
        ("captures", "machines/h0/captures"),
        ("summary.json", "machines/h0/summary.json"),
        ("analysis/packets.parquet", "machines/h0/analysis/packets.parquet"),
        ("machines/h1/run.json", "machines/h0/machines/h1/run.json"),
    ],
)
def test_a_machine_writes_only_where_its_files_belong(path: str, where: str) -> None:
    assert str(destination("h0", path)) == where


@pytest.mark.slow
def test_data_is_never_unpacked_to_more_than_was_asked_for() -> None:
    bomb = zstandard.compress(bytes(1 << 30))
    assert len(bomb) < 1 << 17
    with pytest.raises(ShippingError, match="not the 1000 bytes"):
        decode_data(bomb, 1000)
    stream = zstandard.ZstdCompressor(write_content_size=False).compress(bytes(1 << 30))
    with pytest.raises(ShippingError):
        decode_data(stream, 1000)
    lie = bytearray(zstandard.compress(bytes(1000)))
    with pytest.raises(ShippingError):
        decode_data(bytes(lie[:-1]), 1000)


def test_texts_from_machines_cannot_control_a_terminal() -> None:
    assert (
        decode_text(b"\x1b]0;title\x07 no\nsuch \xff file" + b"." * 9999)[:25]
        == "?]0;title? no such \ufffd file"
    )


def test_data_that_was_damaged_is_noticed() -> None:
    body = bytearray(encode_data(bytes(range(256)) * 4)[HEAD.size :])
    assert decode_data(bytes(body), 1024)
    body[-10] ^= 1
    with pytest.raises(ShippingError):
        decode_data(bytes(body), 1024)


def listed(*entries: object) -> bytes:
    """Encode a listing of these entries without checks."""
    return encode(Kind.LISTING, json.dumps([list(entries), [], False]).encode())


@pytest.mark.parametrize(
    "said",
    [
        b"x" * 2_000_000,
        GREETING + b"garbage that is no frame at all",
        GREETING + HEAD.pack(b"L", BODY_BYTES_MAX + 1),
        GREETING + encode(Kind.DATA, zstandard.compress(b"unasked")),
        GREETING + listed(["../../../outside", 10, 1]),
        GREETING + listed(["captures/a.pcap", -5, 1]),
        GREETING + listed(["captures/a.pcap", 5, 1]) + encode(Kind.DIGEST, bytes(32)),
        GREETING + listed(["captures/a.pcap", 5, 1]) + encode(Kind.DATA, zstandard.compress(bytes(1 << 24))),
        GREETING + encode(Kind.BUSY) * 50 + encode(Kind.FAILED, b"no such folder"),
    ],
    ids=["noise", "garbage", "length", "unasked", "outside", "negative", "other answer", "bomb", "failed"],
)
def test_protocol_violations_end_the_transfer_and_leave_nothing(said: bytes, tmp_path: Path) -> None:
    (tmp_path / "said").write_bytes(said)
    program = f"import os, sys; os.write(1, open({str(tmp_path / 'said')!r}, 'rb').read()); sys.stdin.read()"
    machine = Machine("h0", tmp_path, start=lambda _: ProcessStream([sys.executable, "-S", "-c", program]))
    shipped = ship_all(tmp_path / "run", machine)["h0"]
    assert shipped.problem
    assert not shipped.complete
    assert read_files(tmp_path / "run") == {}
    assert not (tmp_path / "outside").exists()
