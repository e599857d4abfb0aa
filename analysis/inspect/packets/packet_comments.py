"""Packet comments for Wireshark: the sending and the receiving process, with their ports.

Addresses come from the plan, so any packet has a comment, whatever its protocol. If an address belongs to no
process, its host is named, for example a gateway, or the address is shown.
"""

from collections.abc import Sequence
from functools import lru_cache

from analysis.capture.pcap.streams import format_address
from analysis.inspect.packets.pcapng_writer import comment_option
from analysis.timelines.run_metadata import RunMetadata

KNOWN_MAX = 1 << 16
"""Limit of cached comments, one per pair of endpoints."""


class PacketComments:
    """The packet comments of one run."""

    def __init__(self, metadata: RunMetadata) -> None:
        process_at = {host: process for process, host in metadata.host_of.items()}
        self._names = {host.address: process_at.get(host.name, host.name) for host in metadata.hosts.values()}
        self.options_of = lru_cache(KNOWN_MAX)(self._options)

    def _options(self, direction: Sequence[int]) -> bytes:
        """Return the comment as packet options; empty if neither end is known. direction: as in PACKETS."""
        text = self.text(direction)
        return comment_option(text) if text else b""

    def text(self, direction: Sequence[int]) -> str:
        """Return the comment as text; "" if neither end is known."""
        src_hi, src_lo, sport, dst_hi, dst_lo, dport = direction
        source, target = format_address(src_hi, src_lo), format_address(dst_hi, dst_lo)
        if source not in self._names and target not in self._names:
            return ""
        return f"{self._end(source, sport)} -> {self._end(target, dport)}"

    def _end(self, address: str, port: int) -> str:
        name = self._names.get(address, address)
        return f"{name} port {port}" if port else name
