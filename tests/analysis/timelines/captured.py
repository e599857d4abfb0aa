"""A simulated world as a run directory: captures with real messages, records of deliveries, run.json.

Hosts' captures hold the messages that the analysis needs: those that arrive at clients, are published at
proxies, or are exchanged between proxies. Links' captures hold the packets between proxies on both sides of
the emulator.
"""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from experiments.records.rundir import RunDirectory
from node.core.deliveries import DeliveryRecord, RecordKind, encode_file_header, encode_record
from node.protocols.sprinkler.messages import CODEC, Events, Publish, Published, Subscribe
from tests.analysis.capture.pcap.captures import SYN, Record, segment, write_pcap
from tests.analysis.timelines.world import (
    BATCH,
    CUT,
    EVENT_BYTES,
    LAN,
    MS,
    RESTORED,
    WAN,
    ZERO,
    World,
    payload,
)

PORT = 7000
START_SEQ = 1000
SUBSCRIBED = [
    ("r3-proxy-0", "r1-proxy-0", 2, CUT + 900 * MS),
    ("r2-proxy-0", "r1-proxy-0", 3, CUT + 950 * MS),
    ("r3-proxy-0", "r2-proxy-0", 2, RESTORED + 450 * MS),
    ("r2-proxy-0", "r3-proxy-0", 3, RESTORED + 450 * MS),
]
"""The subscriptions of the world's proxies: from, to, stream, time since time 0."""


class Wire:
    """Collects packets by capture, and counts each direction's bytes."""

    def __init__(self, run: dict[str, Any]) -> None:
        self.addresses = {host["name"]: host["address"] for host in run["plan"]["hosts"]}
        self.links = {frozenset((link["a"], link["b"])): link["name"] for link in run["plan"]["links"]}
        self.records: dict[str, list[Record]] = defaultdict(list)
        self.sent: dict[tuple[str, str], int] = {}

    def carry(
        self, sender: str, taker: str, message: Any, arrives_ns: int, *, seen_by: tuple[str, ...]
    ) -> None:
        """Add a message in one segment with this arrival time to the captures of hosts and of its link."""
        ends = [(self.addresses[host], PORT if "proxy" in host else 40_000) for host in (sender, taker)]
        data = b"".join(CODEC.encode(message))
        if (sender, taker) not in self.sent:
            self.sent[sender, taker] = START_SEQ + 1
            opening = segment(START_SEQ, src=ends[0], dst=ends[1], flags=SYN)
            self._see(sender, taker, opening, arrives_ns, seen_by)
        frame = segment(self.sent[sender, taker], data, src=ends[0], dst=ends[1])
        self.sent[sender, taker] += len(data)
        self._see(sender, taker, frame, arrives_ns, seen_by)

    def _see(self, sender: str, taker: str, frame: bytes, arrives_ns: int, seen_by: tuple[str, ...]) -> None:
        here, there = sender.split("-", maxsplit=1)[0], taker.split("-", maxsplit=1)[0]
        wan = WAN.get((here, there), WAN.get((there, here), 0)) * MS
        times = {sender: arrives_ns - wan - 2 * LAN, taker: arrives_ns}
        for host in seen_by:
            self.records[f"{host}-eth0"].append(Record(times[host], frame))
        if wan:
            link = self.links[frozenset((here, there))]
            self.records[f"{link}@{here}"].append(Record(arrives_ns - LAN - wan, frame))
            self.records[f"{link}@{there}"].append(Record(arrives_ns - LAN, frame))


def write_run(
    path: Path, world: World, run: dict[str, Any], subscribed: list[tuple[str, str, int, int]]
) -> RunDirectory:
    """Make the directory. subscribed: (proxy, proxy, stream, when it arrives), sent besides the events."""
    directory = RunDirectory(path)
    for folder in (path, directory.captures, directory.logs, directory.deliveries):
        folder.mkdir(parents=True)
    directory.run_json.write_text(json.dumps(run))
    if run["plan"]["captures"]:
        wire = Wire(run)
        for t_ns, _, act in sorted(_acts(world, subscribed), key=lambda each: each[:2]):
            wire.carry(*act[:3], t_ns, seen_by=act[3])
        for capture in run["plan"]["captures"]:
            stem = capture["file"].removesuffix(".pcap")
            records = sorted(wire.records[stem], key=lambda record: record.t_ns)
            write_pcap(directory.capture(capture["file"]), records)
    _write_records(directory, world)
    return directory


def _acts(
    world: World, subscribed: list[tuple[str, str, int, int]]
) -> list[tuple[int, int, tuple[Any, ...]]]:
    """Yield (arrival time, order, (sender, receiver, message, hosts that capture it))."""
    found: list[tuple[int, int, tuple[Any, ...]]] = []
    for number, row in enumerate(world.events):
        stream, first_seq, t_ns = row["stream"], row["first_seq"], row["t_ns"]
        data = payload(stream, first_seq)
        if row["kind"] == "published":
            ask = Publish(0, 0, stream, first_seq, BATCH, EVENT_BYTES, 0, data)
            answer = Published(stream, first_seq, first_seq, BATCH)
            found.append((t_ns, number, (row["peer"], row["host"], ask, (row["host"],))))
            found.append((t_ns + 2 * LAN, number, (row["host"], row["peer"], answer, (row["host"],))))
        elif row["kind"] == "arrived":
            batch = Events(0, 0, stream, first_seq, BATCH, EVENT_BYTES, 0, 0, data)
            seen_by = (row["peer"], row["host"]) if row["role"] == "proxy" else (row["host"],)
            found.append((t_ns, number, (row["peer"], row["host"], batch, seen_by)))
    for sender, taker, stream, t_ns in subscribed:
        found.append((ZERO + t_ns, -1, (sender, taker, Subscribe(stream, 0), (sender, taker))))
    return found


def _write_records(directory: RunDirectory, world: World) -> None:
    files: dict[str, list[bytes]] = {}
    for row in world.records:
        if row["host"] not in files:
            start = DeliveryRecord(0, 0, 0, ZERO, 0, 0, RecordKind.SESSION, 0)
            files[row["host"]] = [encode_file_header(), encode_record(start)]
        record = DeliveryRecord(
            row["stream"], row["count"], row["first_seq"], row["t_ns"], row["batch_crc"], row["running_crc"],
            RecordKind(row["kind"]), row["count"],
        )  # fmt: skip
        files[row["host"]].append(encode_record(record))
    for host, parts in files.items():
        directory.host_deliveries(host).write_bytes(b"".join(parts))
