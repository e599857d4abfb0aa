"""Events in UDP datagrams that IP cut into fragments are found if their receiver gets them."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from scapy.layers.inet import UDP

from analysis.capture import fragmented_datagrams
from analysis.capture.markers import MarkerSearch
from analysis.capture.pcap.files import record_batches
from node.core.marker import marked
from tests.analysis.capture.pcap import fragmenting
from tests.analysis.capture.pcap.captures import START_NS, Record, at_intervals
from tests.analysis.capture.pcap.reading import search, seqs

SIZE = 3_000
PORTS = {"sport": 5000, "dport": 6000}
Cut = Callable[..., list[bytes]]


def ipv4(*seqs: int, number: int = 1, size: int = 1_480) -> list[bytes]:
    """Return the fragments of a datagram with these events; `number` identifies it."""
    return fragmenting.ipv4(UDP(**PORTS) / payload(*seqs), number, size)


def ipv6(*seqs: int, number: int = 0xFFFF_FFFF, size: int = 1_480) -> list[bytes]:
    """Return the same over IPv6."""
    return fragmenting.ipv6(UDP(**PORTS) / payload(*seqs), number, size)


both = pytest.mark.parametrize("cut", [ipv4, ipv6])


def payload(*seqs: int) -> bytes:
    return b"header" + b"".join(marked(0, seq, SIZE, START_NS) for seq in seqs)


def extracted(folder: Path, records: list[Record]) -> dict[str, pa.Table]:
    return search(folder, records, MarkerSearch(SIZE))


def gaps_in(tables: dict[str, pa.Table]) -> list[dict[str, Any]]:
    columns = ["sport", "dport", "stream_offset", "length", "cause"]
    return list(tables["gaps"].select(columns).to_pylist())


@both
@pytest.mark.parametrize("size", [64, 1_480])
def test_fragments_in_any_order_are_the_datagram(tmp_path: Path, cut: Cut, size: int) -> None:
    frames = [frame for number in (1, 2, 3) for frame in cut(number, 10 + number, number=number, size=size)]
    random.Random(0).shuffle(frames)
    found = extracted(tmp_path, at_intervals([*frames, *cut(4, number=4, size=65_000)]))
    assert sorted(seqs(found)) == [1, 2, 3, 4, 11, 12, 13]
    assert set(found["messages"].column("dport").to_pylist()) == {6000}
    assert gaps_in(found) == []
    [counts] = found["decoding"].to_pylist()
    assert (counts["messages"], counts["segments"], counts["missing_bytes"]) == (7, len(frames) + 1, 0)


@both
def test_a_datagram_lasts_from_its_first_fragment_to_its_last(tmp_path: Path, cut: Cut) -> None:
    records = at_intervals(reversed(cut(1)))
    [message] = extracted(tmp_path, records)["messages"].to_pylist()
    assert (message["t_first_ns"], message["t_complete_ns"]) == (records[0].t_ns, records[-1].t_ns)


@both
@pytest.mark.parametrize(
    ("lost", "gap"),
    [
        (0, {"sport": 0, "dport": 0, "stream_offset": 0, "length": 1_472}),
        (1, PORTS | {"stream_offset": 1_472, "length": 1_480}),
        (-1, PORTS | {"stream_offset": 2_952, "length": 54}),
    ],
)
def test_a_datagram_with_a_missing_fragment_has_a_gap_and_no_events(
    tmp_path: Path, cut: Cut, lost: int, gap: dict[str, int]
) -> None:
    frames = cut(1, number=1)
    frames.pop(lost)
    found = extracted(tmp_path, at_intervals([*frames, *cut(2, number=2)]))
    assert seqs(found) == [2]
    assert gaps_in(found) == [gap | {"cause": "missing"}]
    assert sum(found["decoding"].column("missing_bytes").to_pylist()) == gap["length"]


def test_duplicate_fragments_are_ignored(tmp_path: Path) -> None:
    first, *others = ipv4(1)
    found = extracted(tmp_path, at_intervals([first, first, others[0], first, *others]))
    assert (seqs(found), gaps_in(found)) == ([1], [])


def test_overlapping_fragments_are_discarded(tmp_path: Path) -> None:
    """RFC 5722: the receiver discards it."""
    one, other = ipv4(1, size=1_480), ipv4(1, size=1_600)
    assert seqs(extracted(tmp_path, at_intervals([one[0], other[1], *one[1:]]))) == []


def test_a_reused_identification_begins_another_datagram(tmp_path: Path) -> None:
    records = at_intervals([*ipv4(1), *ipv4(2), ipv4(3)[0]])
    records += at_intervals(ipv4(4), START_NS + 61 * 10**9)
    found = extracted(tmp_path, records)
    assert seqs(found) == [1, 2, 4]
    assert [gap["length"] for gap in gaps_in(found)] == [SIZE + 6 - 1_472]


def test_fragments_are_reassembled_across_spans_and_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_batches, "BATCH_ROWS", 2)
    monkeypatch.setattr(record_batches, "SPAN_BYTES", 700)
    parts = zip(ipv4(1, size=200), ipv6(2, size=200), strict=True)
    found = extracted(tmp_path, at_intervals(frame for pair in parts for frame in pair))
    assert sorted(seqs(found)) == [1, 2]


def test_events_behind_the_snap_length_are_not_found(tmp_path: Path) -> None:
    records = [Record(START_NS, frame[:400], len(frame)) for frame in ipv4(1)]
    found = extracted(tmp_path, records)
    assert seqs(found) == []
    assert found["decoding"].column("unfinished_bytes").to_pylist() == [400 - 42 - len(b"header")]


def test_waiting_datagrams_and_gaps_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fragmented_datagrams, "DATAGRAMS_MAX", 3)
    monkeypatch.setattr(fragmented_datagrams, "ABANDONED_MAX", 5)
    frames = [ipv4(number, number=number) for number in range(1, 13)]
    found = extracted(tmp_path, at_intervals([each[0] for each in frames] + [each[1] for each in frames]))
    assert (seqs(found), len(gaps_in(found))) == ([], 5)


@both
@pytest.mark.parametrize("size", [1_480, 65_000])
def test_a_datagram_with_a_wrong_checksum_has_no_events(tmp_path: Path, cut: Cut, size: int) -> None:
    *frames, last = cut(1, number=1, size=size)
    damaged = last[:-1] + bytes([last[-1] ^ 1])
    found = extracted(tmp_path, at_intervals([*frames, damaged, *cut(2, number=2, size=size)]))
    assert seqs(found) == [2]
