"""Header fields are what scapy and tshark say they are, and never come from bytes that were not captured."""

import struct
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.layers.inet import ICMP, IP, TCP, UDP, IPOption_NOP, IPOption_RR
from scapy.layers.inet6 import (
    IPv6,
    IPv6ExtHdrDestOpt,
    IPv6ExtHdrFragment,
    IPv6ExtHdrHopByHop,
    IPv6ExtHdrRouting,
)
from scapy.layers.l2 import ARP, Dot1AD, Dot1Q, Ether
from scapy.packet import Packet, Raw

from analysis.capture.pcap.fields import NOT_IP, read_fields
from analysis.capture.pcap.files.format import read_file_header
from analysis.capture.pcap.files.records import read_records
from analysis.capture.pcap.streams import format_address
from analysis.capture.pcap.walk import walk
from tests.analysis.capture.pcap.captures import (
    START_NS,
    Record,
    pcap_bytes,
    segment,
    snapped,
)

ETHER = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
IPV4 = IP(src="10.1.2.3", dst="192.168.250.251", id=0xBEEF)
IPV6 = IPv6(src="2001:db8::8000:1", dst="fe80::ffff:ffff:ffff:fffe")
TCP_SEGMENT = TCP(sport=65535, dport=7000, seq=0xFFFFFFF0, ack=0x80000001, flags="PA") / Raw(b"payload")
OPTIONS = [IPOption_RR(), IPOption_NOP()]
FRAMES: dict[str, Packet] = {
    "tcp": ETHER / IPV4 / TCP_SEGMENT,
    "tcp options": ETHER / IPV4 / TCP(sport=1, dport=2, options=[("MSS", 1460), ("WScale", 7)]) / b"xy",
    "ip options": ETHER / IP(src="1.2.3.4", dst="5.6.7.8", options=OPTIONS) / TCP_SEGMENT,
    "udp": ETHER / IPV4 / UDP(sport=53, dport=5353) / b"question",
    "icmp": ETHER / IPV4 / ICMP() / b"ping",
    "vlan": ETHER / Dot1Q(vlan=7) / IPV4 / TCP_SEGMENT,
    "stacked vlan": ETHER / Dot1AD(vlan=7) / Dot1Q(vlan=8) / Dot1Q() / IPV4 / UDP(sport=9) / b"q",
    "ipv6 tcp": ETHER / IPV6 / TCP_SEGMENT,
    "ipv6 udp": ETHER / Dot1Q() / IPV6 / UDP(sport=1000, dport=2000) / b"abc",
    "ipv6 extensions": ETHER / IPV6 / IPv6ExtHdrHopByHop() / IPv6ExtHdrRouting(addresses=["::1"])
    / IPv6ExtHdrDestOpt() / TCP_SEGMENT,
    "ipv6 first fragment": ETHER / IPV6 / IPv6ExtHdrFragment(offset=0, m=1) / TCP_SEGMENT,
    "ipv6 later fragment": ETHER / IPV6 / IPv6ExtHdrFragment(offset=100, nh=6) / Raw(b"rest of a segment"),
    "later fragment": ETHER / IP(frag=100, proto=6) / Raw(b"rest of a segment, twenty bytes or more"),
    "arp": ETHER / ARP(),
    "not ip": Ether(type=0x88B5) / Raw(b"experimental"),
}  # fmt: skip


def fields_of(frames: list[bytes] | list[Record], **how: bool | str) -> list[dict[str, int]]:
    records = [frame if isinstance(frame, Record) else Record(START_NS, frame) for frame in frames]
    content = pcap_bytes(records, **how)  # type: ignore[arg-type]
    form = read_file_header(np.frombuffer(content, np.uint8), "test")
    data = np.frombuffer(content, np.uint8)
    columns = read_fields(data, read_records(data, walk(data, 24, data.size, form)[0], form))
    return [{name: int(values[row]) for name, values in columns.items()} for row in range(len(records))]


def expected(packet: Packet) -> dict[str, int | str]:
    """Return the fields that scapy dissects."""
    packet = Ether(bytes(packet))
    layer = packet.getlayer(IP) or packet.getlayer(IPv6)
    if layer is None:
        return {"proto": NOT_IP, "sport": 0, "payload_length": 0, "src": "0.0.0.0"}
    want: dict[str, int | str] = {"src": layer.src, "dst": layer.dst}
    if isinstance(layer, IP):
        want |= {"proto": layer.proto, "ip_id": layer.id}
    port = packet.getlayer(TCP) or packet.getlayer(UDP)
    if port is not None:
        want |= {"sport": port.sport, "dport": port.dport, "payload_length": len(port.payload)}
        want |= {
            "payload_offset": len(packet) - len(port.payload),
            "proto": 6 if packet.haslayer(TCP) else 17,
        }
    if packet.haslayer(TCP):
        want |= {"seq": port.seq, "ack": port.ack, "flags": int(port.flags)}
    want["digest"] = zlib.crc32(bytes(packet[UDP].payload)) if packet.haslayer(UDP) else 0
    return want


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("name", FRAMES)
def test_fields_are_those_that_scapy_finds(name: str, order: str) -> None:
    packet = FRAMES[name]
    [found] = fields_of([bytes(packet)], order=order)
    wanted = expected(packet)
    assert found["length"] == found["wire_length"] == len(packet)
    named = found | {
        "src": format_address(found["src_hi"], found["src_lo"]),
        "dst": format_address(found["dst_hi"], found["dst_lo"]),
    }
    assert {key: named[key] for key in wanted} == wanted


@given(st.lists(st.sampled_from(sorted(FRAMES)), max_size=40))
@pytest.mark.slow
def test_packets_of_all_kinds_mixed_are_read_as_alone(names: list[str]) -> None:
    alone = {name: fields_of([bytes(packet)])[0] for name, packet in FRAMES.items()}
    together = fields_of([bytes(FRAMES[name]) for name in names])
    for found, name in zip(together, names, strict=True):
        assert found | {"offset": 0} == alone[name] | {"offset": 0}


def test_padding_is_no_payload() -> None:
    frame = segment(1, b"abc") + bytes(30)
    assert [found["payload_length"] for found in fields_of([frame, frame])] == [3, 3]


def test_an_offloaded_frame_with_ip_length_0_ends_with_the_frame() -> None:
    [found] = fields_of([segment(1, bytes(70_000))])
    assert found["payload_length"] == 70_000


def test_an_ip_length_beyond_the_frame_is_not_believed() -> None:
    frame = bytearray(segment(1, b"abc"))
    frame[16:18] = b"\xff\xff"
    [found] = fields_of([bytes(frame)])
    assert found["payload_length"] == 3


@given(snaplen=st.integers(0, 90))
@pytest.mark.parametrize("name", ["tcp", "vlan", "ipv6 extensions", "udp"])
def test_a_snapped_packet_gives_the_fields_that_were_captured_or_none(name: str, snaplen: int) -> None:
    frame = bytes(FRAMES[name])
    following = Record(START_NS, b"\xff" * 64)  # so that reading too far finds something
    [whole] = fields_of([frame])
    cut, _ = fields_of([snapped(Record(START_NS, frame), snaplen), following])
    assert cut["length"] == min(snaplen, len(frame))
    assert cut["wire_length"] == len(frame)
    for name_, value in cut.items():
        if name_ not in {"length", "digest", "payload_offset", "payload_length", "proto"}:
            assert value in {0, whole[name_]}
    transport = 40 if name == "tcp" else None
    if transport and snaplen >= 54:
        assert cut["payload_length"] == whole["payload_length"]


@given(st.lists(st.binary(max_size=120), min_size=1, max_size=30), st.sampled_from("<>"))
def test_noise_gives_fields_within_their_bounds(noise: list[bytes], order: str) -> None:
    ethernets = [
        bytes(12) + struct.pack(">H", (0x0800, 0x86DD, 0x8100)[n % 3]) + body for n, body in enumerate(noise)
    ]
    for found in fields_of(ethernets + noise, order=order):
        assert 0 <= found["sport"] < 1 << 16
        assert 0 <= found["seq"] < 1 << 32
        assert -1 <= found["proto"] < 256
        assert 0 <= found["payload_length"] <= found["wire_length"]
