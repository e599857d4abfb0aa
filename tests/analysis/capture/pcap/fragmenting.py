"""IP packets cut into fragments, as Ethernet frames."""

from scapy.layers.inet import IP, fragment
from scapy.layers.inet6 import IPv6, IPv6ExtHdrFragment, IPv6ExtHdrHopByHop, fragment6
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Packet

ETHER = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")


def ipv4(content: Packet, number: int, size: int) -> list[bytes]:
    """Return the fragments of an IPv4 packet; `number` identifies it."""
    packet = IP(src="10.0.0.1", dst="10.0.0.2", id=number) / content
    parts: list[IP] = fragment(packet, fragsize=size)  # type: ignore[no-untyped-call]
    return [bytes(ETHER / part) for part in parts]


def ipv6(content: Packet, number: int, size: int) -> list[bytes]:
    """Return the fragments of an IPv6 packet behind an extension header and a VLAN tag."""
    headers = IPv6(src="2001:db8::1", dst="2001:db8::2") / IPv6ExtHdrHopByHop()
    headers /= IPv6ExtHdrFragment(id=number)
    parts: list[IPv6] = fragment6(headers / content, len(headers) + size)  # type: ignore[no-untyped-call]
    return [bytes(ETHER / Dot1Q(vlan=3, type=0x86DD) / part) for part in parts]
