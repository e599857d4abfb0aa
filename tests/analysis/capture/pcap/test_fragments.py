"""TCP segments that IP cut into fragments give the same stream as if they had not been cut."""

import random
from collections.abc import Callable
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from scapy.layers.inet import IP, TCP, UDP, fragment
from scapy.layers.inet6 import IPv6, IPv6ExtHdrFragment

from analysis.capture.pcap import fragments
from analysis.capture.pcap.files import index, record_batches, scan
from analysis.capture.pcap.files.index import CaptureIndex, build_index
from analysis.capture.pcap.files.mapping import map_bytes
from tests.analysis.capture.pcap import fragmenting
from tests.analysis.capture.pcap.captures import START_NS, Record, at_intervals, write_pcap
from tests.analysis.capture.pcap.fragmenting import ETHER
from tests.analysis.capture.pcap.reading import ours, packets

PAYLOAD = random.Random(1).randbytes(9_000)
LOST = "fragments of TCP segments whose beginning is missing"


def ipv4(payload: bytes, *, seq: int, number: int, flags: str = "A", size: int = 600) -> list[bytes]:
    """Return the fragments of an IPv4 segment."""
    return fragmenting.ipv4(TCP(sport=5, dport=7000, seq=seq % 2**32, flags=flags) / payload, number, size)


def ipv6(payload: bytes, *, seq: int, number: int, size: int = 600) -> list[bytes]:
    """Return the fragments of an IPv6 segment."""
    return fragmenting.ipv6(TCP(sport=5, dport=7000, seq=seq % 2**32, flags="A") / payload, number, size)


def pieces(path: Path) -> list[tuple[int, bytes]]:
    """Return the sequence number and the captured payload of every packet to the port."""
    data = map_bytes(path)
    found = []
    for columns in packets(path):
        for row in np.flatnonzero((columns["dport"] == 7000) & (columns["payload_length"] > 0)):
            begin = int(columns["offset"][row] + columns["payload_offset"][row])
            content = data[begin : begin + int(columns["payload_length"][row])].tobytes()
            found.append((int(columns["seq"][row]), content))
    return found


def joined(found: list[tuple[int, bytes]], first: int) -> bytes:
    """Join pieces of a stream by sequence number; later pieces overwrite overlaps."""
    stream = bytearray(max((((seq - first) % 2**32) + len(content) for seq, content in found), default=0))
    for seq, content in found:
        begin = (seq - first) % 2**32
        stream[begin : begin + len(content)] = content
    return bytes(stream)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("cut", [ipv4, ipv6])
@pytest.mark.parametrize("seq", [100, 2**32 - 700])
def test_fragments_in_any_order_are_the_segment(
    tmp_path: Path, cut: Callable[..., list[bytes]], seq: int, seed: int
) -> None:
    """The fragments of two segments are mixed."""
    frames = [*cut(PAYLOAD[:4000], seq=seq, number=1), *cut(PAYLOAD[4000:], seq=seq + 4000, number=2)]
    random.Random(seed).shuffle(frames)
    path = write_pcap(tmp_path / "a.pcap", at_intervals(frames))
    found = pieces(path)
    assert len(found) == len(frames) > 10
    assert (joined(found, seq) == PAYLOAD) is True  # no comparison of thousands of bytes is shown
    assert index.load_index(path).unused == {}


def test_the_payload_of_a_syn_segment_starts_one_later(tmp_path: Path) -> None:
    path = write_pcap(tmp_path / "a.pcap", at_intervals(ipv4(PAYLOAD, seq=100, number=1, flags="SP")))
    _, rows = ours(path)
    first, second = (int(row["payload"]) for row in rows[:2])
    assert [row["seq"] for row in rows[:3]] == [100, 101 + first, 101 + first + second]


def test_fragments_without_their_first_are_counted_and_give_no_ports(tmp_path: Path) -> None:
    frames = ipv4(PAYLOAD, seq=100, number=1)
    path = write_pcap(tmp_path / "a.pcap", at_intervals(frames[1:]))
    found, rows = ours(path)
    assert found.unused == {LOST: len(frames) - 1}
    assert {row["dport"] for row in rows} == {0}


def test_a_reused_identification_is_another_datagram(tmp_path: Path) -> None:
    """Complete datagrams and those of more than a minute ago are not continued."""
    first, second, third = (ipv4(PAYLOAD[:2000], seq=seq, number=1) for seq in (100, 50_000, 90_000))
    records = at_intervals([*first, *second[:-1]])
    records += at_intervals(third[1:], START_NS + 10**11)
    path = write_pcap(tmp_path / "a.pcap", records)
    found, rows = ours(path)
    payload = [len(frame) - 34 for frame in first]
    wanted = [100, *(100 - 20 + sum(payload[:n]) for n in range(1, len(payload)))]
    assert [row["seq"] for row in rows[: len(first)]] == wanted
    assert [row["seq"] for row in rows[len(first) : -len(third) + 1]] == [seq + 49_900 for seq in wanted[:-1]]
    assert {row["dport"] for row in rows[-len(third) + 1 :]} == {0}
    assert found.unused == {LOST: len(third) - 1}


def test_fragments_find_their_first_across_spans_and_in_the_sidecar(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "SPLIT_BYTES", 700)
    monkeypatch.setattr(scan, "_WINDOW_BYTES", 2_000)
    monkeypatch.setattr(record_batches, "SPAN_BYTES", 700)
    monkeypatch.setattr(record_batches, "BATCH_ROWS", 2)
    both = zip(ipv4(PAYLOAD, seq=0, number=1), ipv4(bytes(9000), seq=9000, number=2), strict=True)
    path = write_pcap(tmp_path / "a.pcap", at_intervals(chain.from_iterable(both)))
    made = index.load_index(path)
    monkeypatch.setattr(index, "build_index", lambda _: pytest.fail("walked again"))
    assert index.load_index(path) == made
    assert len(list(record_batches.spans_of(path, made))) > 10
    assert (joined(pieces(path), 0) == PAYLOAD + bytes(9000)) is True


def test_only_fragments_of_tcp_are_placed(tmp_path: Path) -> None:
    whole = IP(src="1.2.3.4", dst="5.6.7.8") / UDP(sport=1, dport=7000) / PAYLOAD
    udp = fragment(whole, fragsize=600)  # type: ignore[no-untyped-call]
    alone = IPv6(src="::1", dst="::2") / IPv6ExtHdrFragment(id=4, m=0) / TCP(dport=7000, seq=3) / b"whole"
    frames = [bytes(ETHER / part) for part in udp] + [bytes(ETHER / alone)]
    path = write_pcap(tmp_path / "a.pcap", at_intervals(frames))
    assert build_index(path).unused == {}
    assert pieces(path)[-1] == (3, b"whole")
    assert {row["dport"] for row in ours(path)[1][1:-1]} == {0}


def test_waiting_fragments_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fragments, "DATAGRAMS_MAX", 3)
    monkeypatch.setattr(fragments, "WAITING_MAX", 2)
    monkeypatch.setattr(fragments, "FRAGMENTS_MAX", 5)
    starts = [ipv4(PAYLOAD[:2000], seq=0, number=number) for number in range(10)]
    made = _index(
        tmp_path,
        [frame for frames in starts for frame in frames[1:]] + [frames[0] for frames in reversed(starts)],
    )
    assert len(made.fragments) == 5
    assert made.unused == {LOST: sum(len(frames) - 1 for frames in starts) - 5}


def _index(folder: Path, frames: list[bytes]) -> CaptureIndex:
    return build_index(write_pcap(folder / "a.pcap", [Record(START_NS, frame) for frame in frames]))
