"""Walking the chain of records in lanes finds what the plain loop finds, whatever is in the file."""

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.capture.pcap import walk as walk_module
from analysis.capture.pcap.files.format import Format, read_file_header
from analysis.capture.pcap.walk import walk
from tests.analysis.capture.pcap.captures import Record, at_intervals, pcap_bytes

frames = st.lists(st.binary(max_size=200), min_size=0, max_size=120)


def plain_walk(data: bytes, start: int, stop: int, form: Format) -> tuple[list[int], int]:
    """Walk the records by the definition of the format."""
    offsets, offset = [], start
    while offset < min(stop, len(data) - 15):
        offsets.append(offset)
        offset += 16 + struct.unpack_from(form.order + "I", data, offset + 8)[0]
    return offsets, offset


@pytest.fixture(autouse=True)
def _short_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk_module, "LANE_BYTES", 256)
    monkeypatch.setattr(walk_module, "SEARCH_BYTES", 200)
    monkeypatch.setattr(walk_module, "LANES_MIN", 2)


def check(content: bytes, stop: int | None = None) -> None:
    form = read_file_header(np.frombuffer(content, np.uint8), "test")
    stop = len(content) if stop is None else stop
    offsets, following = walk(np.frombuffer(content, np.uint8), 24, stop, form)
    assert (offsets.tolist(), following) == plain_walk(content, 24, stop, form)


@given(frames, st.sampled_from("<>"), st.integers(0, 5000))
def test_lanes_find_the_records_of_the_plain_loop(bodies: list[bytes], order: str, stop: int) -> None:
    content = pcap_bytes(at_intervals(bodies), order=order)
    check(content)
    check(content, stop)


@given(frames)
def test_records_inside_records_deceive_no_lane(bodies: list[bytes]) -> None:
    """Packets that carry a capture file are full of perfectly plausible record headers."""
    inner = pcap_bytes(at_intervals(bodies))
    pieces = [inner[first : first + 1000] for first in range(0, len(inner), 1000)]
    check(pcap_bytes(at_intervals(pieces)))


@given(frames, st.data())
def test_damage_leads_lanes_where_it_leads_the_plain_loop(bodies: list[bytes], data: st.DataObject) -> None:
    content = bytearray(pcap_bytes(at_intervals(bodies)))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(24, len(content)))
        content[at : at + 2] = data.draw(st.binary(min_size=0, max_size=4))
    check(bytes(content))


@settings(max_examples=20)
@given(st.binary(min_size=24, max_size=4000))
def test_noise_ends_the_walk(noise: bytes) -> None:
    check(pcap_bytes([])[:24] + noise)


def test_lanes_are_used_and_all_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """With well-formed records no lane is walked twice."""
    content = pcap_bytes([Record(10**18 + n, bytes(50)) for n in range(1000)])
    plainly = []
    monkeypatch.setattr(walk_module, "_walk_plainly", lambda *a, **k: plainly.append(a))
    check(content)
    assert not plainly
