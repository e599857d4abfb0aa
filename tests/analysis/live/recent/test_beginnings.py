"""The first message boundary in a stream that is captured from the middle."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from analysis.capture.pcap.files.byte_ranges import TcpSegments
from analysis.capture.pcap.files.mapping import map_bytes
from analysis.capture.pcap.streams import directions
from analysis.live.recent.beginnings import begin_at_message
from node.protocols.sprinkler.messages import CODEC, Events, Request, Subscribe
from tests.analysis.capture.pcap.captures import SYN, Record, segment, write_pcap
from tests.analysis.capture.pcap.reading import packets

PORT = 7000
TYPES = frozenset(CODEC.by_type)
MESSAGES = [Request(0, 1, 9), Events(0, 0, 0, 1, 4, 10, 0, 0, b"x" * 40), Subscribe(0, 5), Subscribe(1, 6)]
FRAMES = [b"".join(CODEC.encode(message)) for message in MESSAGES]
STARTS = np.cumsum([0, *map(len, FRAMES)]).tolist()
CONTENT = b"".join(FRAMES)
FIRST_SEQ = 2**32 - 40  # it wraps on the way


def begin(path: Path, segments: list[tuple[int, bytes]], *, flags: int = 0) -> tuple[int | None, bytes]:
    """Return where it begins in CONTENT, and the remaining payload in stream order."""
    frames = [segment(FIRST_SEQ + at, payload, flags=flags) for at, payload in segments]
    write_pcap(path, [Record(number, frame) for number, frame in enumerate(frames)])
    kept, base = begun(path)
    data = map_bytes(path)
    left = b"".join(
        data[start : start + length].tobytes()
        for start, length in zip(kept.at.tolist(), kept.length.tolist(), strict=True)
    )
    return None if base is None else (base - FIRST_SEQ) % 2**32, left


def begun(path: Path) -> tuple[TcpSegments, int | None]:
    """Return what remains of the only direction in a capture."""
    [(_, segments)] = directions(packets(path), PORT)
    return begin_at_message(map_bytes(path), segments, TYPES)


@given(seen_from=st.integers(0, STARTS[3]), sizes=st.lists(st.integers(1, 60), min_size=1))
@example(seen_from=0, sizes=[1000])
@example(seen_from=1, sizes=[1])
def test_the_stream_begins_at_its_first_complete_message(
    tmp_path_factory: pytest.TempPathFactory, seen_from: int, sizes: list[int]
):
    segments, at = [], seen_from
    for number in range(len(CONTENT)):
        if at >= len(CONTENT):
            break
        size = sizes[number % len(sizes)]
        segments.append((at, CONTENT[at : at + size]))
        at += size
    expected = next(start for start in STARTS if start >= seen_from)
    found, left = begin(tmp_path_factory.mktemp("seen") / "one.pcap", segments)
    assert (found, left) == (expected, CONTENT[expected:])


def test_the_beginning_is_found_after_a_gap(tmp_path: Path):
    hole = STARTS[1] + 4  # within the second message
    segments = [(hole, CONTENT[hole : hole + 9]), (STARTS[2], CONTENT[STARTS[2] :])]
    assert begin(tmp_path / "hole.pcap", segments)[0] == STARTS[2]


def test_a_stream_without_a_message_boundary_is_dropped(tmp_path: Path):
    inside = CONTENT[STARTS[1] + 8 : STARTS[2]]
    assert begin(tmp_path / "none.pcap", [(STARTS[1] + 8, inside)]) == (None, b"")


def test_a_single_apparent_header_is_not_trusted(tmp_path: Path):
    inside = FRAMES[2][:8] + b"no frame follows this one, whatever its header says"
    segments = [(0, inside), (len(inside), CONTENT)]
    found, left = begin(tmp_path / "alike.pcap", segments)
    assert (found, left) == (len(inside), CONTENT)


def test_a_connection_whose_syn_is_seen_is_read_from_its_beginning(tmp_path: Path):
    old = (0, CONTENT[: STARTS[1]])
    path = tmp_path / "anew.pcap"
    frames = [
        segment(FIRST_SEQ + old[0], old[1]),
        segment(77, flags=SYN),
        segment(78, CONTENT),
    ]
    write_pcap(path, [Record(number, frame) for number, frame in enumerate(frames)])
    kept, base = begun(path)
    assert base == 78
    assert kept.length.tolist() == [0, len(CONTENT)]
