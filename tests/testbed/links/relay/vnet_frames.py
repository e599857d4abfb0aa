"""Offloaded frames as a kernel passes them to a packet socket, built by scapy: the reference for tests."""

import struct
from dataclasses import dataclass, replace

from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

NEEDS_CHECKSUM = 1
GSO_TYPES = {("tcp", 4): 1, ("tcp", 6): 4, ("udp", 4): 5, ("udp", 6): 5}


@dataclass(frozen=True)
class Sent:
    """A sender's frame, to be cut into segments of `segment` bytes of payload."""

    payload: bytes
    segment: int = 1448
    transport: str = "tcp"
    version: int = 4
    sequence: int = 1000
    identification: int = 7
    flags: str = "PA"
    options: tuple[tuple[str, tuple[int, int]], ...] = (("Timestamp", (1, 2)),)

    def part(self, first: int, end: int) -> "Sent":
        """Return the frame for segments `first` to `end`, as the kernel's own segmentation makes it."""
        last = end * self.segment >= len(self.payload)
        flags = self.flags if last else self.flags.replace("P", "").replace("F", "")
        return replace(
            self,
            payload=self.payload[first * self.segment : end * self.segment],
            sequence=(self.sequence + first * self.segment) % (1 << 32),
            identification=(self.identification + first) % (1 << 16),
            flags=flags if first == 0 else flags.replace("C", ""),
        )

    def frame(self) -> bytes:
        """Return vnet header and Ethernet frame, with a partial checksum."""
        link = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
        network: Packet = IPv6(src="fd00::1", dst="fd00::2")
        if self.version == 4:
            network = IP(src="10.0.0.1", dst="10.0.0.2", id=self.identification, flags="DF")
        header: Packet = UDP(sport=1, dport=2, chksum=0)
        if self.transport == "tcp":
            options = list(self.options)
            header = TCP(sport=1, dport=2, seq=self.sequence, flags=self.flags, options=options, chksum=0)
        data = bytearray(bytes(link / network / header / Raw(self.payload)))
        start = 14 + len(bytes(network))
        field = 16 if self.transport == "tcp" else 6
        struct.pack_into("!H", data, start + field, self._pseudo_header_sum(len(data) - start))
        gso = len(self.payload) > self.segment
        gso_type = GSO_TYPES[self.transport, self.version] if gso else 0
        headers = len(data) - len(self.payload)
        vnet = (NEEDS_CHECKSUM, gso_type, headers, self.segment if gso else 0, start, field)
        return struct.pack("=BBHHHH", *vnet) + bytes(data)

    def _pseudo_header_sum(self, length: int) -> int:
        """Return the pseudo header's sum (RFC 9293, 3.1 and RFC 8200, 8.1), folded but not complemented."""
        addresses = bytes([10, 0, 0, 1, 10, 0, 0, 2])
        if self.version == 6:
            addresses = bytes.fromhex("fd00" + "00" * 13 + "01" + "fd00" + "00" * 13 + "02")
        protocol = 6 if self.transport == "tcp" else 17
        total = sum(struct.unpack(f"!{len(addresses) // 2}H", addresses)) + protocol + length
        while total >> 16:
            total = (total & 0xFFFF) + (total >> 16)
        return total


def small(size: int = 1000) -> bytes:
    """Return a frame of `size` bytes, Ethernet header included, without offloading."""
    return bytes(10) + b"\x02" * size
