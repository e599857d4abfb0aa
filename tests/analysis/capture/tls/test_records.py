"""A stream is cut into TLS records in any segmentation; other streams are reported or searched directly."""

import random
import struct
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.capture.markers import MarkerSearch
from analysis.capture.pcap import frames as frames_module
from analysis.capture.pcap.streams import HostCapture, extract_messages
from analysis.capture.tls.events import TlsConnections, TlsKeys
from analysis.capture.tls.records import BODY_BYTES_MAX
from analysis.schemas import DECODING
from tests.analysis.capture.pcap.captures import ACK, SYN, at_intervals, segment, write_pcap
from tests.analysis.capture.tls.speaking import CLIENT, SERVER

HELLO = b"\x01" + bytes(3) + b"\x03\x03" + bytes(range(32))


def record(kind: int, body: bytes) -> bytes:
    return struct.pack(">BBBH", kind, 3, 3, len(body)) + body


def frames(stream: bytes, cuts: list[int]) -> list[bytes]:
    ends = {"src": CLIENT, "dst": SERVER}
    bounds = sorted({0, len(stream), *cuts})
    parts = [segment(100 + at, stream[at:end], flags=ACK, **ends) for at, end in pairwise(bounds)]
    return [segment(99, flags=SYN, **ends), *parts]


def counted(folder: Path, captured: list[bytes]) -> dict[str, object]:
    """Return the counts for a stream without known keys."""
    path = write_pcap(folder / "r0-broker-0-eth0.pcap", at_intervals(captured))
    capture = HostCapture(str(path), "r0-broker-0", SERVER[0], None)
    found: list[pa.RecordBatch] = []
    with TlsConnections(MarkerSearch(40), TlsKeys(None, "no keys"), folder) as tls:
        extract_messages(
            capture, MarkerSearch(40), lambda t, rows: found.append(rows) if t == "decoding" else None, tls
        )
    [row] = pa.Table.from_batches(found, DECODING).to_pylist()
    return row


@given(st.lists(st.binary(min_size=25, max_size=200), max_size=12), st.data())
def test_all_records_are_found_in_any_segmentation(tmp_path_factory, bodies, data):
    stream = record(22, HELLO) + b"".join(record(23, body) for body in bodies)
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=30))
    first, *parts = frames(stream, cuts)
    random.Random(data.draw(st.integers(0, 9))).shuffle(parts)
    again = parts[: len(parts) // 3]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frames_module, "WINDOW_BYTES", data.draw(st.sampled_from([16, 64, 4096])))
        row = counted(tmp_path_factory.mktemp("records"), [first, *parts, *again])
    assert row["undecoded_bytes"] == sum(len(body) + 5 for body in bodies)
    assert row["unfinished_bytes"] == row["malformed"] == 0
    assert row["stopped"] == ("no keys" if bodies else None)


@given(st.binary(max_size=60), st.lists(st.integers(0, 60), max_size=10))
def test_any_stream_is_cut_or_refused(tmp_path_factory, stream, cuts):
    row = counted(tmp_path_factory.mktemp("any"), frames(stream, [cut for cut in cuts if cut < len(stream)]))
    assert row["undecoded_bytes"] + row["unfinished_bytes"] <= len(stream)


def test_a_truncated_last_record_is_counted(tmp_path):
    stream = record(22, HELLO) + record(23, bytes(100))[:60]
    row = counted(tmp_path, frames(stream, []))
    assert (row["unfinished_bytes"], row["undecoded_bytes"], row["stopped"]) == (60, 0, None)


@pytest.mark.parametrize(
    "begin", [b"\x17\x03\x03" + (BODY_BYTES_MAX + 1).to_bytes(2), b"\x19\x03\x03\0\1", b"GET /"]
)
def test_the_ends_of_records_are_reported(tmp_path, begin):
    stream = record(22, HELLO) + begin + bytes(90)
    row = counted(tmp_path, frames(stream, []))
    assert row["stopped"] == f"no TLS record begins at byte {5 + len(HELLO)}"
    assert row["undecoded_bytes"] == len(begin) + 90
