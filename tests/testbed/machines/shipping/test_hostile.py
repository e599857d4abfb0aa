"""Whatever a machine sends, no file outside of its places is written, and shipping ends."""

import contextlib
import json
import sys
from functools import partial
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from testbed.machines.shipping.names import ShippingError, checked, destination
from testbed.machines.shipping.protocol import (
    BODY_BYTES_MAX,
    FILES_MAX,
    GREETING,
    HEAD,
    FileEntry,
    FrameReader,
    Hash,
    Kind,
    Read,
    decode_data,
    decode_digest,
    decode_listing,
    decode_request,
    encode,
    encode_data,
    encode_listing,
)
from tests.testbed.machines.shipping.machines import Machine, ProcessStream, read_files, ship_all


class Source:
    """A source of bytes in pieces of these sizes."""

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
def test_frames_arrive_unchanged_however_the_stream_divides_them(
    sent: list[tuple[Kind, bytes]], pieces: list[int]
) -> None:
    data = GREETING + b"".join(encode(kind, body) for kind, body in sent)
    received = FrameReader(Source(data, pieces).read)
    received.greet()
    assert [received.next() for _ in sent] == sent
    with pytest.raises(EOFError):
        received.next()


@given(body=st.binary(max_size=100) | st.text(max_size=50).map(str.encode))
@pytest.mark.slow
def test_garbage_is_refused_without_a_crash(body: bytes) -> None:
    for decode in (partial(decode_request, Read), partial(decode_request, Hash), decode_digest):
        with contextlib.suppress(ShippingError):
            decode(body)
    for listing in (body, zstandard.compress(body)):
        with contextlib.suppress(ShippingError):
            decode_listing(listing)
    with pytest.raises(ShippingError):
        decode_data(body, 10)


@given(st.lists(st.builds(FileEntry, paths, st.integers(0, 1 << 56), st.integers(0, 1 << 64)), max_size=5))
def test_listings_arrive_unchanged(entries: list[FileEntry]) -> None:
    assert decode_listing(encode_listing(entries)[HEAD.size :]) == sorted(entries)


@pytest.mark.parametrize(
    ("kind", "body", "said"),
    [
        (None, [["a", 1, 1], ["../b", 1, 1]], r"listing\.1\.0: .* leads out of the folder"),
        (None, [["a", -1, 1]], r"listing\.0\.1: .* greater than or equal to 0"),
        (None, [["a", "1", 1]], r"listing\.0\.1: .* valid integer"),
        (None, [["a", 1, 1, 1]], r"listing\.0"),
        (None, [["a", 1, 1]] * (FILES_MAX + 1), "at most 20000"),
        (None, {"a": 1}, "listing"),
        (Read, ["a", 1, 0, (1 << 20) + 1, ""], r"read\.3: .* less than or equal to 1048576"),
        (Read, ["a", 1, 1.5, 1, ""], r"read\.2"),
        (Read, ["a", 1, True, 1, ""], r"read\.2"),
        (Hash, ["a", 1, (1 << 56) + 1], r"hash\.2"),
        (Hash, ["\x1b[2J", 1, 1], r"hash\.0: .* is invalid"),
    ],
    ids=range(11),
)
def test_errors_in_a_message_name_their_place(kind: type | None, body: object, said: str) -> None:
    given = json.dumps(body).encode()
    with pytest.raises(ShippingError, match=said) as raised:
        decode_request(kind, given) if kind else decode_listing(zstandard.compress(given))
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
def test_data_is_never_decompressed_beyond_the_requested_size() -> None:
    bomb = zstandard.compress(bytes(1 << 27))
    assert len(bomb) < 1 << 14
    with pytest.raises(ShippingError, match="not of at most 1000 bytes"):
        decode_data(bomb, 1000)
    stream = zstandard.ZstdCompressor(write_content_size=False).compress(bytes(1 << 27))
    with pytest.raises(ShippingError):
        decode_data(stream, 1000)
    lie = bytearray(zstandard.compress(bytes(1000)))
    with pytest.raises(ShippingError):
        decode_data(bytes(lie[:-1]), 1000)


def test_damaged_data_is_detected() -> None:
    body = bytearray(encode_data(bytes(range(256)) * 4)[HEAD.size :])
    assert decode_data(bytes(body), 1024)
    body[-10] ^= 1
    with pytest.raises(ShippingError):
        decode_data(bytes(body), 1024)


def listed(*entries: object) -> bytes:
    """Encode a listing of these entries without checks."""
    return encode(Kind.LISTING, zstandard.compress(json.dumps(entries).encode()))


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
