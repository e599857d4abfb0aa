"""Captures of every format and link type give what tshark reads in them."""

import gzip
import struct
import subprocess
from collections.abc import Callable
from itertools import compress, product
from pathlib import Path

import pytest
import zstandard
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrHopByHop, IPv6ExtHdrRouting
from scapy.layers.l2 import ARP, Dot1AD, Dot1Q, Ether

from tests.analysis.capture.pcap.blocks import block, enhanced, interface, obsolete, section, simple
from tests.analysis.capture.pcap.captures import START_NS, at_intervals, segment, write_pcap
from tests.analysis.capture.pcap.judging import tsharks
from tests.analysis.capture.pcap.reading import ours

ETHER = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
IPV4 = IP(src="10.1.2.3", dst="192.168.250.251") / TCP(sport=40000, dport=7000, seq=77) / b"payload"
IPV6 = (
    IPv6(src="2001:db8::1", dst="fe80::2") / IPv6ExtHdrHopByHop() / TCP(sport=7000, dport=1, seq=9) / b"abc"
)
ROUTING = IPv6ExtHdrRouting(addresses=["::1"])
ROUTED = IPv6(src="2001:db8::1", dst="2001:db8::3") / ROUTING / IPv6ExtHdrDestOpt()
DATAGRAM = IP(src="1.2.3.4", dst="5.6.7.8") / UDP(sport=53, dport=1234) / b"question"
PACKETS = [bytes(packet) for packet in (IPV4, IPV6, DATAGRAM, ROUTED / UDP(sport=9, dport=8))]


def _ethertype(packet: bytes) -> bytes:
    return b"\x08\x00" if packet[0] >> 4 == 4 else b"\x86\xdd"


def _cooked(packet: bytes) -> bytes:
    return struct.pack(">HHH8s", 4, 1, 6, bytes(8)) + _ethertype(packet) + packet


def _cooked_2(packet: bytes) -> bytes:
    return _ethertype(packet) + struct.pack(">HIHBB8s", 0, 3, 1, 0, 6, bytes(8)) + packet


def _family(order: str, ipv6: int) -> Callable[[bytes], bytes]:
    return lambda packet: struct.pack(order + "I", 2 if packet[0] >> 4 == 4 else ipv6) + packet


def _tagged(packet: bytes) -> bytes:
    layer = IP(packet) if packet[0] >> 4 == 4 else IPv6(packet)
    return bytes(ETHER / Dot1AD(vlan=5) / Dot1Q(vlan=6) / layer)


LINKS: dict[str, tuple[int, Callable[[bytes], bytes]]] = {
    "ethernet": (1, lambda packet: bytes(12) + _ethertype(packet) + packet),
    "stacked vlan": (1, _tagged),
    "cooked": (113, _cooked),
    "cooked vlan": (113, lambda packet: _cooked(packet)[:14] + b"\x81\x00\x00\x05" + _cooked(packet)[14:]),
    "cooked 2": (276, _cooked_2),
    "raw": (101, bytes),
    "raw of BSD": (12, bytes),
    "raw of OpenBSD": (14, bytes),
    "null, little-endian": (0, _family("<", 30)),
    "null, big-endian": (0, _family(">", 28)),
    "loop": (108, _family(">", 24)),
}  # fmt: skip
FRAMES = [bytes(12) + _ethertype(packet) + packet for packet in PACKETS]


def test_tshark_reads_the_same_on_every_link_type(tmp_path: Path) -> None:
    """All are in one file, with an interface for each link type."""
    links = [link for link in LINKS.values() if link[0] != 14]  # which this tshark does not know
    one_version = [(228, PACKETS[0]), (229, PACKETS[1])]
    content = section() + b"".join(interface(link_type) for link_type, _ in (*links, *one_version))
    for number, (_, wrap) in enumerate(links):
        content += b"".join(enhanced(wrap(packet), 1, number=number) for packet in PACKETS)
    for number, (_, packet) in enumerate(one_version, len(links)):
        content += enhanced(packet, 1, number=number)
    (tmp_path / "a.pcapng").write_bytes(content)
    index, found = ours(tmp_path / "a.pcapng")
    assert len(found) == len(PACKETS) * len(links) + len(one_version)
    assert found == tsharks(tmp_path / "a.pcapng")
    assert [row["src"] for row in found[:4]] == ["10.1.2.3", "2001:db8::1", "1.2.3.4", "2001:db8::1"]
    assert [(row["sport"], row["payload"]) for row in found[:4]] == [(40000, 7), (7000, 3), (53, 0), (9, 0)]
    assert not index.unused
    records = at_intervals(PACKETS)
    by_number = [ours(write_pcap(tmp_path / "raw.pcap", records, link_type=each))[1] for each in (14, 101)]
    assert by_number[0] == by_number[1]


def test_packets_of_unread_link_types_are_counted_with_time_and_length(tmp_path: Path) -> None:
    index, found = ours(write_pcap(tmp_path / "a.pcap", at_intervals(FRAMES), link_type=105))  # IEEE 802.11
    assert [row["t_ns"] for row in found] == [START_NS + n * 1_000_000 for n in range(4)]
    assert index.unused == {"packets of link type 105 (IEEE 802.11)": 4}


def test_unread_ethertypes_and_protocols_are_counted_by_number_and_name(tmp_path: Path) -> None:
    ethernet = [
        (0x88CC, bytes(20)),
        (0x1234, bytes(20)),
        (0x0806, bytes(28)),
        (12, b"\x42\x42\x03" + bytes(9)),
    ]
    frames = [bytes(12) + struct.pack(">H", kind) + rest for kind, rest in ethernet]
    frames.append(bytes(12) + b"\x88\x64\x11\0\0\x07\0\x08\xc0\x21" + bytes(6))
    index, _ = ours(write_pcap(tmp_path / "a.pcap", at_intervals([*frames, *FRAMES])))
    assert index.unused == {
        "packets of ethertype 0x88cc (LLDP)": 1,
        "packets of ethertype 0x1234": 1,
        "packets of LLC service access point 0x42 (spanning tree)": 1,
        "packets of PPP protocol 0xc021 (LCP)": 1,
    }


def test_a_header_that_contradicts_itself_gives_no_fields(tmp_path: Path) -> None:
    """Cases: IP's length ends within TCP's header and the rest is padding; an IP header of four bytes."""
    short, tiny = bytearray(segment(1, bytes(20))), bytearray(segment(2, bytes(20)))
    short[16:18] = struct.pack(">H", 30)
    tiny[14] = 0x41
    index, found = ours(write_pcap(tmp_path / "a.pcap", at_intervals([bytes(short), bytes(tiny)])))
    assert index.unused == {"packets with a header that contradicts itself": 1}
    assert [(row["src"], row["dport"], row["payload"]) for row in found] == [("10.0.0.1", 0, 0), ("", 0, 0)]


SECOND = 1_700_000_000
UNITS = {6: 10**6, 9: 10**9, 3: 10**3, 0: 1, 12: 10**12, 0x8A: 2**10, 0x94: 2**20, 0xA8: 2**40}


def test_time_stamps_of_pcapng_have_the_resolution_and_offset_of_their_interface(tmp_path: Path) -> None:
    """One file has a section for each byte order and resolution."""
    content, wanted, comparable = b"", [], []
    for order, (resolution, units) in product("<>", UNITS.items()):
        # finer stamps do not reach this century by themselves
        offset_s = SECOND if SECOND * units >= 1 << 64 else 0
        content += section(order) + interface(order=order, resolution=resolution, offset_s=offset_s)
        content += interface(order=order, resolution=9, offset_s=SECOND - 5)
        times = [(SECOND - offset_s) * units + part for part in (0, units // 3, units - 1)]
        content += b"".join(enhanced(FRAMES[0], time, order=order) for time in times)
        content += enhanced(FRAMES[1], 5_000_000_123, order=order, number=1)
        wanted += [time * 10**9 // units + offset_s * 10**9 for time in times] + [SECOND * 10**9 + 123]
        comparable += [units <= 10**10] * 4  # else tshark's product of fraction and nanoseconds overflows
    (tmp_path / "a.pcapng").write_bytes(content)
    _, found = ours(tmp_path / "a.pcapng")
    assert [row["t_ns"] for row in found] == wanted
    assert list(compress(found, comparable)) == list(compress(tsharks(tmp_path / "a.pcapng"), comparable))


def test_interfaces_of_a_section_may_differ_and_be_described_late(tmp_path: Path) -> None:
    content = section() + interface(101, resolution=9)
    content += enhanced(PACKETS[0], 1) + interface(113, snaplen=60)
    content += enhanced(_cooked(PACKETS[0]), 2, number=1, comment=b"hello") + enhanced(PACKETS[1], 3)
    content += interface(1, resolution=6) + enhanced(FRAMES[2], 4, number=2)
    content += enhanced(PACKETS[0][:30], 9, wire_length=47)
    (tmp_path / "a.pcapng").write_bytes(content)
    index, found = ours(tmp_path / "a.pcapng")
    assert [row["t_ns"] for row in found] == [1, 2_000, 3, 4_000, 9]
    assert found[:-1] == tsharks(tmp_path / "a.pcapng")[:-1]  # which takes ports from a header cut in two
    assert index.unused == {
        "packets that were not captured whole": 1,
        "packets whose headers were not captured whole": 1,
    }


@pytest.mark.parametrize("order", ["<", ">"])
def test_obsolete_and_simple_packet_blocks_are_read_and_other_blocks_skipped(
    tmp_path: Path, order: str
) -> None:
    snaplen = 58
    others = [block(kind, bytes(16), order) for kind in (4, 5, 10, 0xBAD, 0x40000BAD)]
    strange = [block(kind, b"x" * 21, order) for kind in (0x7777, 0x80000001)]
    packets = [
        obsolete(FRAMES[0], 7_000_000, order=order, drops=3),
        simple(FRAMES[0][:58], order=order, wire_length=len(FRAMES[0])),
    ]
    content = section(order) + interface(order=order, snaplen=snaplen)
    content += b"".join(
        [*others, packets[0], *strange, packets[1], enhanced(FRAMES[1], 8_000_000, order=order)]
    )
    (tmp_path / "a.pcapng").write_bytes(content)
    index, found = ours(tmp_path / "a.pcapng")
    assert [(row["t_ns"], row["length"]) for row in found] == [
        (7_000_000_000, len(FRAMES[0])), (0, 58), (8_000_000_000, len(FRAMES[1]))
    ]  # fmt: skip
    # tshark shows custom blocks as if they were packets
    assert found == [row for row in tsharks(tmp_path / "a.pcapng") if row["src"]]
    assert index.unused == {
        "blocks of an unknown type": 2,
        "packets without a time": 1,
        "packets that were not captured whole": 1,
    }


def test_packets_without_an_interface_are_counted_and_others_read(tmp_path: Path) -> None:
    lying = bytearray(enhanced(FRAMES[0], 3))
    lying[20:24] = struct.pack("<I", 9_999)  # captured bytes, more than the block has
    content = section() + interface() + enhanced(FRAMES[0], 1) + enhanced(FRAMES[0], 2, number=1)
    content += interface() + bytes(lying) + enhanced(FRAMES[0], 4, number=1)
    content += interface(offset_s=1 << 60) + enhanced(FRAMES[0], 5, number=2)
    (tmp_path / "a.pcapng").write_bytes(content)
    index, found = ours(tmp_path / "a.pcapng")
    assert [row["t_ns"] for row in found] == [1_000, 4_000]
    assert index.unused == {
        "packets of an interface that was not described": 1,
        "packets longer than their block": 1,
        "packets with an impossible time": 1,
    }
    assert index.problem is None


PACKINGS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".zst": zstandard.ZstdCompressor().compress,
}


@pytest.mark.parametrize("kind", ["pcap", "pcapng"])
def test_captures_converted_by_editcap_read_the_same(tmp_path: Path, kind: str) -> None:
    frames = [segment(n * 100, bytes(n)) for n in range(1, 60)] + FRAMES + [bytes(ETHER / ARP())]
    before = write_pcap(tmp_path / "before.pcap", at_intervals(frames))
    after = tmp_path / "after"
    subprocess.run(["editcap", "-F", kind, str(before), str(after)], check=True)
    wanted = tsharks(after)
    assert wanted == ours(before)[1]
    for packed, pack in PACKINGS.items():
        path = tmp_path / f"after{packed or '.plain'}.{'pcapng' if kind == 'pcapng' else 'pcap'}{packed}"
        path.write_bytes(pack(after.read_bytes()))
        index, found = ours(path)
        assert found == wanted
        assert index.problem is None


def test_an_offloaded_frame_over_64_kib_is_whole_on_every_link(tmp_path: Path) -> None:
    frame = segment(1, bytes(70_000))
    content = section() + interface() + interface(113) + enhanced(frame, 1)
    content += enhanced(_cooked(frame[14:]), 2, number=1)
    (tmp_path / "a.pcapng").write_bytes(content)
    assert [row["payload"] for row in ours(tmp_path / "a.pcapng")[1]] == [70_000, 70_000]
