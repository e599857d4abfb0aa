"""What is said of a packet in a capture for Wireshark: which process sent it to which, and by which ports.

Addresses are the plan's, so this is known of any packet, whatever protocol it is of. An address that is no
process's is named by its host, a gateway say, or stands as it is.
"""

from collections.abc import Sequence
from functools import lru_cache

from analysis.capture.pcap.streams import format_address
from analysis.inspect.packets.pcapng_writer import comment_option
from analysis.timelines.run_metadata import RunMetadata

KNOWN_MAX = 1 << 16
"""Pairs of ports whose comment is kept."""


class PacketComments:
    """Comments of packets of one run."""

    def __init__(self, metadata: RunMetadata) -> None:
        process_at = {host: process for process, host in metadata.host_of.items()}
        self._names = {host.address: process_at.get(host.name, host.name) for host in metadata.hosts.values()}
        self.of = lru_cache(KNOWN_MAX)(self._of)

    def _of(self, direction: Sequence[int]) -> bytes:
        """As a packet's options; none where neither end is known. direction: as PACKETS has it."""
        text = self.text(direction)
        return comment_option(text) if text else b""

    def text(self, direction: Sequence[int]) -> str:
        """In words; "" where neither end is known."""
        src_hi, src_lo, sport, dst_hi, dst_lo, dport = direction
        source, target = format_address(src_hi, src_lo), format_address(dst_hi, dst_lo)
        if source not in self._names and target not in self._names:
            return ""
        return f"{self._end(source, sport)} -> {self._end(target, dport)}"

    def _end(self, address: str, port: int) -> str:
        name = self._names.get(address, address)
        return f"{name} port {port}" if port else name
