"""Reassembly of UDP datagrams that IP cut into fragments, as their receiver does it.

Fragments belong to the same datagram if addresses, protocol and identification agree (RFC 791, section 3.2;
RFC 8200, section 4.5). They may arrive in any order. A datagram is complete when its fragments join without a
gap to the length in its UDP header; a receiver discards any other (RFC 1122, section 3.3.2), as well as one
whose fragments overlap (RFC 5722).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from analysis.arrays import Bytes
from analysis.capture.pcap.fields import ONES, UDP, sum_state
from analysis.capture.pcap.fragments import DATAGRAMS_MAX, TOGETHER_NS

UDP_HEADER_BYTES = 8
_CHECKSUM_AT = 6  # in UDP's header
_WORD = (1 << 64) - 1  # halves of addresses are signed
ABANDONED_MAX = 100_000
Direction = tuple[int, ...]
"""The values of `analysis.capture.pcap.fields.DIRECTION`; ports are 0 if the first fragment is missing."""


@dataclass(frozen=True, slots=True)
class UdpFragment:
    """A captured fragment, by reference. offset: of its payload in the datagram's. whole_bytes: the length of
    the whole datagram's payload, from the first fragment.
    """

    t_ns: int
    direction: Direction
    datagram: int  # identification
    offset: int
    length: int
    at: int  # offset of its payload in the file
    captured: int  # bytes within the snap length
    whole_bytes: int | None = None


@dataclass(slots=True)
class UdpDatagram:
    """The fragments of a datagram, by offset."""

    direction: Direction
    first_ns: int
    complete_ns: int
    whole_bytes: int | None = None
    received_bytes: int = 0
    fragments: dict[int, UdpFragment] = field(default_factory=dict)

    def add(self, fragment: UdpFragment) -> None:
        """Add a fragment; ignore a duplicate."""
        if fragment.offset in self.fragments:
            return
        self.fragments[fragment.offset] = fragment
        self.received_bytes += fragment.length
        self.first_ns = min(self.first_ns, fragment.t_ns)
        self.complete_ns = max(self.complete_ns, fragment.t_ns)
        if fragment.offset == 0:
            self.direction, self.whole_bytes = fragment.direction, fragment.whole_bytes

    @property
    def is_complete(self) -> bool:
        """Whether the fragments are the whole datagram, without gaps or overlaps."""
        return self.received_bytes == self.whole_bytes and not any(self.missing())

    def content(self, data: Bytes) -> bytes:
        """Return the payload, up to the first byte that was not captured. data: the capture."""
        parts = []
        for offset in sorted(self.fragments):
            fragment = self.fragments[offset]
            parts.append(data[fragment.at : fragment.at + fragment.captured].tobytes())
            if fragment.captured < fragment.length:
                break
        return b"".join(parts)

    def is_damaged(self, data: Bytes) -> bool:
        """Return whether its checksum is wrong (RFC 768), so that its receiver discards it.

        data: the capture. False if it was not captured whole, or has no checksum.
        """
        first, content = self.fragments.get(0), self.content(data)
        if first is None or len(content) != self.whole_bytes:
            return False
        segment = data[first.at - UDP_HEADER_BYTES : first.at].tobytes() + content
        checksum = int.from_bytes(segment[_CHECKSUM_AT:UDP_HEADER_BYTES])
        src_hi, src_lo, _, dst_hi, dst_lo, _ = (each & _WORD for each in self.direction)
        pseudo = (src_hi + src_lo + dst_hi + dst_lo + UDP + len(segment)) % ONES
        return checksum != 0 and sum_state(segment, checksum, pseudo) < 0

    def missing(self) -> Iterator[tuple[int, int]]:
        """Yield offset and length of each gap, as far as the datagram's length is known."""
        end = 0
        for offset in sorted(self.fragments):
            if offset > end:
                yield end, offset - end
            end = max(end, offset + self.fragments[offset].length)
        if self.whole_bytes is not None and end < self.whole_bytes:
            yield end, self.whole_bytes - end


class IncompleteDatagrams:
    """The incomplete datagrams of one capture. At most DATAGRAMS_MAX wait, each for at most TOGETHER_NS; the
    first ABANDONED_MAX that remain incomplete are kept.
    """

    def __init__(self) -> None:
        self._waiting: dict[tuple[int, ...], UdpDatagram] = {}
        self._abandoned: list[UdpDatagram] = []

    def add(self, fragment: UdpFragment) -> UdpDatagram | None:
        """Add a fragment; return its datagram if it is now complete."""
        src_hi, src_lo, _, dst_hi, dst_lo, _ = fragment.direction
        key = (src_hi, src_lo, dst_hi, dst_lo, fragment.datagram)
        datagram = self._waiting.get(key)
        if datagram is None or fragment.t_ns - datagram.first_ns > TOGETHER_NS:
            self._abandon(key)
            if len(self._waiting) == DATAGRAMS_MAX:
                self._abandon(next(iter(self._waiting)))
            datagram = UdpDatagram(fragment.direction, fragment.t_ns, fragment.t_ns)
            self._waiting[key] = datagram
        datagram.add(fragment)
        return self._waiting.pop(key) if datagram.is_complete else None

    def abandoned(self) -> list[UdpDatagram]:
        """Return the datagrams that remained incomplete, after the last fragment."""
        for key in tuple(self._waiting):
            self._abandon(key)
        return self._abandoned

    def _abandon(self, key: tuple[int, ...]) -> None:
        datagram = self._waiting.pop(key, None)
        if datagram is not None and len(self._abandoned) < ABANDONED_MAX:
            self._abandoned.append(datagram)
