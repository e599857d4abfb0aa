"""Where the fuzzer begins: small good captures of each format, frames of each layer, messages of each type;
and every input that once made a target fail, in `found/TARGET/`.
"""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment, IPv6ExtHdrHopByHop
from scapy.layers.l2 import ARP, Dot1AD, Dot1Q, Ether
from scapy.packet import Raw

from analysis.history.history_schemas import RUNS
from analysis.history.store import rows_of
from node.core.message_layout import Codec
from node.protocols.sprinkler.messages import CODEC, Events, Publish, Subscribe
from tests.analysis.capture.pcap.captures import SYN, at_intervals, pcap_bytes, segment, snapped
from tests.analysis.history.records import make_record

FOUND = Path(__file__).with_name("found")


def seeds(target: str) -> list[bytes]:
    """Inputs for a target, in a fixed order."""
    made = list(_MADE[target]())
    return made + [path.read_bytes() for path in sorted((FOUND / target).glob("*"))]


def _histories() -> Iterator[bytes]:
    """Files of each table, compressed and plain, of this layout and of an older one."""
    record = make_record(problems=("no room",), reasons=("busy",), seed=1 << 63)
    for table, rows in rows_of(record, "../runs/a").items():
        older = rows.set_column(0, "schema", pa.array([1] * rows.num_rows, pa.int32()))
        for version in (rows, older.drop_columns(["allow_failure"]) if table == RUNS else older):
            for compression in ("none", "zstd"):
                sink = pa.BufferOutputStream()
                pq.write_table(version, sink, compression=compression)
                yield sink.getvalue().to_pybytes()


def _messages(codec: Codec) -> Iterator[bytes]:
    """One of each type, as short as can be."""
    for layout in codec.by_type.values():
        body = bytes(layout.head.size)
        yield (4 + len(body)).to_bytes(4, "big") + bytes((1, layout.type, 0, 0)) + body
        if layout.tail is not None:
            yield (4 + len(body) + 48).to_bytes(4, "big") + bytes((1, layout.type, 0, 0)) + body + bytes(48)
    for message in (
        Events(0, 0, 1, 9, 3, 5, 0, 0, bytes(15)),
        Publish(0, 0, 1, 9, 3, 5, 0, bytes(15)),
        Subscribe(1, 8),
    ):
        yield b"".join(bytes(part) for part in codec.encode(message))


def _conversation() -> list[bytes]:
    stream = b"".join(_messages(CODEC))
    cuts = range(0, len(stream), 90)
    frames = [segment(7, flags=SYN)] + [segment(8 + at, stream[at : at + 90]) for at in cuts]
    frames[3], frames[4] = frames[4], frames[3]
    return [*frames, frames[5], segment(8 + 300, stream[300:400])]


def _captures() -> Iterator[bytes]:
    records = at_intervals(_conversation())
    yield pcap_bytes(records)
    yield pcap_bytes(records[:4], order=">", nanoseconds=False)
    yield pcap_bytes([snapped(record, 90) for record in records])
    yield pcap_bytes(records)[:-7]
    yield b""
    yield from _pcapngs(_conversation())


def _pcapngs(frames: list[bytes]) -> Iterator[bytes]:
    """By draft-ietf-opsawg-pcapng, section 4: two sections, an unknown block, enhanced and simple packets."""
    for order in ("little", "big"):

        def number(value: int, width: int = 4, order: str = order) -> bytes:
            return value.to_bytes(width, order)  # type: ignore[arg-type]

        def block(kind: int, body: bytes) -> bytes:
            padded = body + bytes(-len(body) % 4)
            size = number(12 + len(padded))
            return number(kind) + size + padded + size

        section = block(0x0A0D0D0A, number(0x1A2B3C4D) + number(1, 2) + number(0, 2) + b"\xff" * 8)
        interface = block(
            1, number(1, 2) + number(0, 2) + number(0) + number(9, 2) + number(1, 2) + b"\t\0\0\0" + number(0)
        )
        packets = [
            block(6, number(0) + number(5) + number(at) + number(len(frame)) * 2 + frame)
            for at, frame in enumerate(frames[:6])
        ]
        whole = section + interface + b"".join(packets) + block(3, number(len(frames[0])) + frames[0])
        yield whole + block(0xBAD, b"what") + whole


def _frames() -> Iterator[bytes]:
    tcp = TCP(sport=7000, dport=9, seq=5) / Raw(b"payload")
    packets = [
        Ether() / IP() / tcp,
        Ether() / IP() / UDP() / b"q",
        Ether() / Dot1AD(vlan=1) / Dot1Q(vlan=2) / IP() / tcp,
        Ether() / IPv6() / IPv6ExtHdrHopByHop() / IPv6ExtHdrDestOpt() / tcp,
        Ether() / IPv6() / IPv6ExtHdrFragment(offset=0, m=1, nh=6) / tcp,
        Ether() / IP(flags="MF") / tcp,
        Ether() / IP(frag=3, proto=6) / Raw(bytes(30)),
        Ether() / ARP(),
        Ether() / IP() / ICMP(),
    ]
    frames = [bytes(packet) for packet in packets]
    together = b"".join(bytes((len(frame),)) + frame for frame in frames)
    for link_type in range(10):
        yield bytes((link_type,)) + together
        cut = [frame[14 : 14 + 60] for frame in frames]
        yield bytes((link_type,)) + b"".join(bytes((len(frame),)) + frame for frame in cut)


def _segments() -> Iterator[bytes]:
    in_order = b"".join(bytes((at, 8, 1, 0)) for at in range(30))
    yield in_order
    yield in_order[::-1]
    yield in_order + bytes((5, 60, 1, 3)) + in_order[40:80] + bytes((0, 0, 255, 0)) + in_order[:12]
    yield in_order[:40] + in_order[60:] + bytes((9, 63, 0, 2))


def _streams() -> Iterator[bytes]:
    for message in _messages(CODEC):
        yield b"\x07" + message
    yield b"\x40" + b"".join(_messages(CODEC))


_MADE = {
    "index": _captures,
    "capture": _captures,
    "dissect": _frames,
    "reassemble": _segments,
    "decode": _streams,
}
_MADE["history"] = _histories
