"""An incident as two captures: a connection over a path with a black hole from 2 s to 5 s, seen at both ends.

Site a sends a request each 50 ms to site b, which answers. The path takes 10 ms each way. In the black hole
the request is sent again after 0.2 s, 0.6 s, 1.4 s and 3 s. Another connection is refused. Site b's clock is
OFFSET_NS ahead.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

BEGIN_NS = 1_700_000_000 * 10**9
OFFSET_NS = 250_000_000
DELAY_NS, STEP_NS = 10_000_000, 50_000_000
HOLE = (2_000_000_000, 5_000_000_000)
A, B = bytes([10, 1, 0, 2]), bytes([10, 2, 0, 2])
CLIENT, SERVER, REFUSED = 40_000, 7000, 7999
FIN, SYN, RST, ACK = 1, 2, 4, 16
REQUEST, ANSWER = 100, 20


@dataclass
class Incident:
    """Records of both captures, as (time, bytes)."""

    offset_ns: int = OFFSET_NS
    at_a: list[tuple[int, bytes]] = field(default_factory=list)
    at_b: list[tuple[int, bytes]] = field(default_factory=list)
    numbers: dict[bytes, int] = field(default_factory=dict)

    def send(
        self,
        t_ns: int,
        source: bytes,
        ports: tuple[int, int],
        tcp: tuple[int, int, int],
        payload: int | bytes = 0,
    ) -> None:
        """Send a packet at a time since the beginning.

        tcp: sequence number, acknowledgement, flags. payload: the bytes, or the number of zeros.
        """
        self.numbers[source] = self.numbers.get(source, 0) + 1
        packet = frame(source, B if source == A else A, ports, tcp, bytes(payload), self.numbers[source])
        near, far = (self.at_a, self.at_b) if source == A else (self.at_b, self.at_a)
        near.append((t_ns + (0 if source == A else self.offset_ns), packet))
        if not HOLE[0] <= t_ns < HOLE[1]:
            far.append((t_ns + DELAY_NS + (self.offset_ns if source == A else 0), packet))

    def write(self, folder: Path) -> tuple[Path, Path]:
        """Write site-a.pcap and site-b.pcap."""
        paths = folder / "site-a.pcap", folder / "site-b.pcap"
        for path, records in zip(paths, (self.at_a, self.at_b), strict=True):
            path.write_bytes(pcap(sorted(records, key=lambda each: each[0])))
        return paths


def incident(offset_ns: int = OFFSET_NS, server: int = SERVER, request: bytes = bytes(REQUEST)) -> Incident:
    """Return the incident. server: its port. request: what site a sends."""
    made = Incident(offset_ns)
    there, back = (CLIENT, server), (server, CLIENT)
    made.send(0, A, there, (1000, 0, SYN))
    made.send(DELAY_NS, B, back, (5000, 1001, SYN | ACK))
    made.send(2 * DELAY_NS, A, there, (1001, 5001, ACK))
    seq, ack = 1001, 5001
    for t_ns in _requests():
        made.send(t_ns, A, there, (seq, ack, ACK), request)
        if t_ns == HOLE[0]:
            for after_ms in (200, 600, 1400, 3000):
                made.send(t_ns + after_ms * 1_000_000, A, there, (seq, ack, ACK), request)
        seq += len(request)
        came_ns = (HOLE[1] if t_ns == HOLE[0] else t_ns) + DELAY_NS
        made.send(came_ns, B, back, (ack, seq, ACK), ANSWER)
        ack += ANSWER
        made.send(came_ns + DELAY_NS, A, there, (seq, ack, ACK))
    made.send(8_000_000_000, A, there, (seq, ack, FIN | ACK))
    made.send(8_000_000_000 + DELAY_NS, B, back, (ack, seq + 1, FIN | ACK))
    made.send(8_500_000_000, A, (CLIENT + 1, REFUSED), (1, 0, SYN))
    made.send(8_500_000_000 + DELAY_NS, B, (REFUSED, CLIENT + 1), (0, 2, RST | ACK))
    return made


def _requests() -> Iterator[int]:
    yield from range(STEP_NS, HOLE[0] + 1, STEP_NS)
    yield from range(HOLE[1] + STEP_NS, 8_000_000_000, STEP_NS)


def frame(
    source: bytes,
    target: bytes,
    ports: tuple[int, int],
    tcp: tuple[int, int, int],
    payload: bytes,
    number: int,
) -> bytes:
    """Return an Ethernet frame of a TCP segment."""
    seq, ack, flags = tcp
    segment = struct.pack(">HHIIBBHHH", *ports, seq, ack, 0x50, flags, 1000, 0, 0) + payload
    head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(segment), number, 0, 64, 6, 0) + source + target
    return bytes(12) + b"\x08\x00" + head + segment


def pcap(records: list[tuple[int, bytes]], link_type: int = 1) -> bytes:
    """Return a capture in nanoseconds. Times are since BEGIN_NS."""
    parts = [struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262_144, link_type)]
    for t_ns, packet in records:
        seconds, fraction = divmod(BEGIN_NS + t_ns, 10**9)
        parts.append(struct.pack("<IIII", seconds, fraction, len(packet), len(packet)) + packet)
    return b"".join(parts)
