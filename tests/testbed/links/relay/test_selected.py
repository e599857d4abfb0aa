"""Frames that a fault selects, and the link directions that carry them and all others."""

from random import Random

import pytest
from scapy.layers.inet import ICMP, IP, TCP, UDP, fragment
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Packet, Raw

from testbed.links.relay.ingress import Ingress
from testbed.links.relay.link_direction import DelayQueue, LinkDirection
from testbed.links.relay.selected import selector
from topologies.link_parameters import LinkParameters

SERVER, OTHER, THIRD = "10.2.0.2", "10.3.0.2", "10.0.0.2"


def frame(packet: Packet) -> bytes:
    """Return the packet as a packet socket gives it, with an empty vnet header."""
    return bytes(10) + bytes(Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / packet)


def tcp(source: str, target: str, sport: int = 40_000, dport: int = 7_000) -> Packet:
    return IP(src=source, dst=target) / TCP(sport=sport, dport=dport) / Raw(b"x" * 100)


@pytest.mark.parametrize(
    ("address", "port", "packet", "is_selected"),
    [
        (SERVER, None, tcp(SERVER, OTHER), True),
        (SERVER, None, tcp(OTHER, SERVER), True),
        (SERVER, None, tcp(OTHER, THIRD), False),
        (SERVER, None, IP(src=OTHER, dst=SERVER) / ICMP(), True),
        (SERVER, None, ARP(psrc=SERVER, pdst=OTHER), False),
        (None, 7_000, tcp(OTHER, THIRD), True),
        (None, 7_000, tcp(OTHER, THIRD, sport=7_000, dport=9), True),
        (None, 7_000, IP(src=OTHER, dst=THIRD) / UDP(sport=9, dport=7_000), True),
        (None, 7_000, tcp(OTHER, THIRD, dport=7_001), False),
        (None, 0x1010, IP(src="16.16.16.16", dst=THIRD) / ICMP(), False),
        (SERVER, 7_000, tcp(SERVER, OTHER), True),
        (SERVER, 7_000, tcp(SERVER, OTHER, dport=7_001), False),
        (SERVER, 7_000, tcp(THIRD, OTHER), False),
    ],
)
def test_packets_are_selected_by_either_end(address, port, packet, is_selected):
    assert selector(address, port)(frame(packet)) is is_selected


def test_options_of_ip_move_the_ports_and_later_fragments_have_none():
    matches = selector(None, 7_000)
    with_options = IP(src=OTHER, dst=THIRD, options=[b"\x01\x01\x01\x01"]) / UDP(sport=9, dport=7_000)
    assert matches(frame(with_options))
    datagram = IP(src=OTHER, dst=THIRD) / UDP(sport=7_000, dport=9) / Raw(b"\x1b\x58" * 1_000)
    first, later = fragment(datagram, fragsize=1_400)
    assert (matches(frame(first)), matches(frame(later))) == (True, False)


def test_truncated_frames_are_selected_only_by_their_present_headers():
    whole = frame(tcp(SERVER, OTHER))
    for size in range(len(whole)):
        selector(SERVER, 7_000)(whole[:size])
    assert not selector(SERVER, None)(whole[:40])


def test_each_frame_crosses_by_the_parameters_of_its_own_first_selection():
    queue = DelayQueue()
    ingress = Ingress(
        "a-b", "forward", None, LinkDirection(3, LinkParameters(1_000), Random(1), queue), queue
    )
    slow, lossy = LinkParameters(50_000), LinkParameters(1_000, loss=1.0)
    ingress.select(SERVER, None).change(slow, 0, blackhole=False)
    ingress.select(None, 7_000).change(lossy, 0, blackhole=False)
    for packet in (tcp(SERVER, OTHER), tcp(OTHER, THIRD), tcp(OTHER, THIRD, dport=7_001)):
        ingress.pending.append((0, frame(packet)))
        queue.queued_bytes += len(frame(packet))
    ingress.admit(1 << 20)
    assert [release_ns for release_ns, *_ in sorted(queue.heap)] == [1_000_000, 50_000_000]
    assert [each.frames for each in ingress.link_directions] == [1, 1, 0]
    assert [each.dropped_loss for each in ingress.link_directions] == [0, 0, 1]
    assert ingress.select(SERVER, None) is ingress.link_directions[1]
