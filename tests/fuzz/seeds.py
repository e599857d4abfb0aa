"""The fuzzer's seeds: small valid captures of each format, frames of each layer, messages of each type, and
other untrusted files; and every input that once made a target fail, in `found/TARGET/`.
"""

import io
import json
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment, IPv6ExtHdrHopByHop
from scapy.layers.l2 import ARP, Dot1AD, Dot1Q, Ether
from scapy.packet import Raw

from analysis.history.history_schemas import RUNS
from analysis.history.store import rows_of
from experiments.archives.packing import COUNT
from experiments.campaigns.campaign import RunState
from experiments.campaigns.sweepdir import runs
from experiments.records.run_record import RunRecord, record_text
from experiments.records.validated_json import to_json
from node.core.deliveries import DeliveryRecord, RecordKind, encode_file_header, encode_record
from node.core.message_layout import Codec
from node.protocols.sprinkler.messages import CODEC, Events, Publish, Subscribe
from tests.analysis.capture.pcap.captures import START_NS, SYN, at_intervals, pcap_bytes, segment, snapped
from tests.analysis.history.records import make_record
from tests.campaigns import sweep_record
from tests.run_json import SMALL, little_run

FOUND = Path(__file__).with_name("found")


def seeds(target: str) -> list[bytes]:
    """Return the inputs for a target, in a fixed order."""
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


def _run_records() -> Iterator[bytes]:
    yield record_text(RunRecord(SMALL), indent=None).encode()
    yield record_text(little_run(), indent=None).encode()


def _summaries() -> Iterator[bytes]:
    content = {
        "schema": 1,
        "run": "a-run",
        "verdict": "failed",
        "fidelity": {
            "valid": True,
            "reasons": ["why"],
            "notes": ["recovery.cut: switch_s: why"],
            "cpu_max": 0.4,
        },
        "events": {"published": 100, "delivered": 99, "lost": 1},
        "throughput": {"events_per_s": 10.5},
        "latency": {"p50_ms": 48.2, "p99_ms": None, "error_ms": 0.1},
        "faults": [{"name": "cut", "kind": "cut", "target": "r0-r1", "requested_s": 0.5, "applied_s": 0.51}],
        "recovery": {"cut": {"switch_s": 1.2, "catch_up_s": 2.0, "backlog_events": 10, "lost": 0}},
        "convergence": {"last_change_s": 0.5, "connected": True, "stalled": 0, "full_s": 0.2},
        "agreement": {"held": True, "compared": 1, "disagreements": [], "left_out": []},
        "measures": {"queue": {"length": {"count": 3, "mean": 1.5}}},
        "problems": ["a problem"],
        "expectations": [{"text": "events.lost == 0", "value": 1, "held": False, "unproven": ["link r0-r1"]}],
    }
    yield json.dumps(content).encode()


def _sweeps() -> Iterator[bytes]:
    swept = {"roles.driver": [1, 2]}
    points = [
        replace(run, state=RunState.DONE, verdict="passed", duration_s=4.2) for run in runs(swept, 1, 7)
    ]
    experiment = {"name": "tiny", "sweep": swept, "expect_sweep": ["max(events.lost) == 0"]}
    yield json.dumps(to_json(sweep_record(*points, experiment=experiment))).encode()
    yield (Path(__file__).parents[1] / "experiments" / "campaigns" / "written" / "sweep.json").read_bytes()


def _archives() -> Iterator[bytes]:
    name = "20260314T020000Z-small-0a1b2c"
    files = {"run.json": b"{}", "logs/r0.jsonl": b'{"t_ns": 1}\n', "captures/a.pcap": bytes(99)}
    stream = io.BytesIO()
    with tarfile.open(
        fileobj=stream, mode="w", format=tarfile.PAX_FORMAT, pax_headers={COUNT: str(len(files))}
    ) as tar:
        for path, content in files.items():
            member = tarfile.TarInfo(f"{name}/{path}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    yield b"\0" + stream.getvalue()
    yield b"\1" + zstandard.compress(stream.getvalue())


def _records_of_deliveries() -> Iterator[bytes]:
    records = [
        DeliveryRecord(0, 0, 0, START_NS, 0, 0, RecordKind.SESSION, 0),
        *(DeliveryRecord(1, 5, 1 + 5 * n, START_NS + n, n, n, kind, 5) for n, kind in enumerate(RecordKind)),
    ]
    whole = encode_file_header() + b"".join(map(encode_record, records))
    yield whole
    yield whole[:-7]
    yield b""


def _inventories() -> Iterator[bytes]:
    yield b"""inventory: lab
user: cutset
key: ~/.ssh/id_ed25519
folder: /var/tmp/cutset
lease: 60s
shipping: {when: end, rate: 200mbit, disk: 50GB}
machines:
  - {name: h0, control: 192.168.56.10, experiment: 10.10.1.10, serves: [r0], takes: 4}
  - {name: h1, control: h1.example, links: {r0-r1: 10.10.2.11}, port: 2222}
"""


_MADE = {
    "run": _run_records,
    "summary": _summaries,
    "sweep": _sweeps,
    "archive": _archives,
    "deliveries": _records_of_deliveries,
    "inventory": _inventories,
    "index": _captures,
    "capture": _captures,
    "wireshark": lambda: iter((b"a", b"b")),
    "dissect": _frames,
    "reassemble": _segments,
    "decode": _streams,
}
_MADE["history"] = _histories
