"""Datagrams to multicast groups arrive at the hosts that have joined, and nowhere else."""

import socket
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
from scapy.layers.inet import IP, UDP, fragment
from scapy.layers.l2 import Ether

from analysis.capture.markers import MarkerSearch
from node.core.marker import marked
from tests.analysis.capture.pcap.captures import START_NS, Record
from tests.analysis.capture.pcap.reading import search, seqs

SIZE = 40
HOST, NEIGHBOUR, PUBLISHER = "10.0.0.2", "10.0.0.3", "10.1.0.2"
GROUP, OTHER = "239.1.2.3", "239.1.2.4"
JOIN, LEAVE = 4, 3
STEP_NS = 1_000_000_000
ETHER = Ether(src="02:00:00:00:00:01", dst="01:00:5e:01:02:03")


def report(kind: int, host: str = HOST, group: str = GROUP) -> list[bytes]:
    message = struct.pack(">BBHHHBBH", 0x22, 0, 0, 0, 1, kind, 0, 0) + socket.inet_aton(group)
    return [bytes(ETHER / IP(src=host, dst="224.0.0.22", proto=2) / message)]


def datagram(seq: int, src: str = PUBLISHER, group: str = GROUP, size: int = SIZE) -> list[bytes]:
    whole = IP(src=src, dst=group, id=seq) / UDP(sport=5000, dport=6000) / marked(0, seq, size, START_NS)
    parts: list[IP] = fragment(whole, fragsize=1_480)  # type: ignore[no-untyped-call]
    return [bytes(ETHER / part) for part in parts]


def extracted(
    folder: Path, packets: Iterable[list[bytes]], size: int = SIZE, **markers: Any
) -> dict[str, pa.Table]:
    """Search a host's capture of these packets, a second apart."""
    records = [
        Record(START_NS + number * STEP_NS, frame) for number, some in enumerate(packets) for frame in some
    ]
    return search(folder, records, MarkerSearch(size, **markers))


def test_only_datagrams_to_joined_groups_arrive(tmp_path: Path) -> None:
    before = [datagram(1), report(JOIN, NEIGHBOUR), datagram(2)]
    joined = [report(JOIN), datagram(3), datagram(4, group=OTHER), report(LEAVE, NEIGHBOUR), datagram(5)]
    found = extracted(tmp_path, [*before, *joined, report(LEAVE), datagram(6), report(JOIN), datagram(7)])
    assert sorted(seqs(found)) == [3, 5, 7]
    assert [row["messages"] for row in found["decoding"].to_pylist()] == [3]
    times = [
        (START_NS + first * STEP_NS, last and START_NS + last * STEP_NS)
        for first, last in ((3, 8), (10, None))
    ]
    assert [tuple(row.values()) for row in found["memberships"].to_pylist()] == [
        ("r0-broker-0", GROUP, *time) for time in times
    ]


def test_a_datagram_just_before_the_membership_report_arrives(tmp_path: Path) -> None:
    records = [
        Record(START_NS, datagram(1)[0]),
        Record(START_NS + 90_000_000, datagram(2)[0]),
        Record(START_NS + 100_000_000, report(JOIN)[0]),
    ]
    assert seqs(search(tmp_path, records, MarkerSearch(SIZE))) == [2]


def test_a_datagram_sent_to_a_group_counts_once_at_its_sender(tmp_path: Path) -> None:
    found = extracted(tmp_path, [datagram(1, HOST), report(JOIN), datagram(2, HOST)])
    assert found["messages"].column("direction").to_pylist() == ["out", "out"]
    assert sorted(seqs(found)) == [1, 2]


def test_fragments_to_a_group_are_reassembled_and_only_those_of_members_can_be_missing(
    tmp_path: Path,
) -> None:
    cut = [datagram(seq, size=3_000) for seq in (1, 2, 3)]
    found = extracted(tmp_path, [cut[0][:1], report(JOIN), cut[1], cut[2][:2]], size=3_000)
    assert seqs(found) == [2]
    assert found["gaps"].column("length").to_pylist() == [48]


def test_an_event_to_a_group_is_new_to_servers_and_passed_to_subscribers(tmp_path: Path) -> None:
    def types(src: str, **markers: Any) -> list[str]:
        found = extracted(
            tmp_path, [report(JOIN), datagram(1, src)], publishers={src: frozenset({0})}, **markers
        )
        return list(found["messages"].column("type").to_pylist())

    assert types(PUBLISHER) == ["NEW_EVENT"]
    assert types(PUBLISHER, receivers=frozenset({HOST})) == ["PASSED_EVENT"]
    assert types(HOST) == ["NEW_EVENT"]
    assert types(HOST, serves=False) == ["PASSED_EVENT"]
