"""Made-up captures of any size, fast: whole runs of Sprinkler traffic, written as arrays of fixed-size
rounds.

A capture is a sequence of equal rounds. In each round every flow sends one message in one segment and gets an
acknowledgement, so a round has a fixed layout and a capture is one structured array: millions of packets take
seconds. The messages are made by the nodes' codec; only their sequence numbers are written in afterwards.
"""

import struct
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, combinations, repeat
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from experiments.planned.plan import HostPlan, LinkPlan, Plan, ProcessPlan, RegionPlan, StreamPlan
from experiments.records.observations import CaptureRecord
from experiments.records.run_record import Outcome, RunPhase, RunRecord, Times, write_record
from experiments.records.rundir import RunDirectory
from node.core.deliveries import RECORD_FIELDS, RecordKind, encode_file_header
from node.core.framing import HEADER_BYTES
from node.protocols.sprinkler.messages import CODEC, Events, Publish, Published
from tests.run_json import SMALL
from topologies.link_parameters import LinkParameters

PORT = 7000
START_NS = 1_700_000_000_000_000_000
ROUND_NS = 5_000_000  # a batch every 5 ms
_HEADERS_BYTES = 14 + 20 + 20
_NUMBERED = {Events: ("first_seq",), Publish: ("first_request",), Published: ("first_request", "first_seq")}

Message = Events | Publish | Published


@dataclass(frozen=True, slots=True)
class Flow:
    """One direction of one connection: `message` in every round, with its sequence number going up."""

    src: str
    sport: int
    dst: str
    dport: int
    message: Message
    acknowledged: bool = True  # each message by a segment of its own


def events(stream: int, count: int, event_bytes: int) -> Events:
    """Return a batch of events."""
    return Events(0, 0, stream, 1, count, event_bytes, 0, 0, bytes(count * event_bytes))


def write_capture(path: Path, flows: Sequence[Flow], rounds: int) -> int:
    """Write a nanosecond capture of these flows, connection set-up first. Returns its number of packets."""
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262_144, 1))
        _handshakes(flows).tofile(file)
        for first in range(0, rounds, _CHUNK_ROUNDS):
            _rounds(flows, first, min(rounds, first + _CHUNK_ROUNDS)).tofile(file)
    return len(flows) + sum(1 + flow.acknowledged for flow in flows) * rounds


_CHUNK_ROUNDS = 2_000


def _handshakes(flows: Sequence[Flow]) -> npt.NDArray[np.uint8]:
    parts = []
    for number, flow in enumerate(flows):
        packet = np.zeros((1, 16 + _HEADERS_BYTES), np.uint8)
        times = np.array([START_NS - ROUND_NS + number])
        _fill(packet, flow, times, seq=np.array([0xFFFFFFFF]), ack=np.array([0]), flags=2, payload=0)
        parts.append(packet.reshape(-1))
    return np.concatenate(parts)


def _rounds(flows: Sequence[Flow], first: int, last: int) -> npt.NDArray[np.uint8]:
    numbers = np.arange(first, last)
    columns = []
    for place, flow in enumerate(flows):
        whole = b"".join(bytes(part) for part in CODEC.encode(flow.message))
        times = START_NS + numbers * ROUND_NS + place * (ROUND_NS // len(flows))
        data = np.zeros((numbers.size, 16 + _HEADERS_BYTES + len(whole)), np.uint8)
        _fill(data, flow, times, seq=numbers * len(whole), ack=numbers, flags=0x18, payload=len(whole))
        body = data[:, 16 + _HEADERS_BYTES :]
        body[:] = np.frombuffer(whole, np.uint8)
        for name in _NUMBERED[type(flow.message)]:
            at = HEADER_BYTES + CODEC.by_type[whole[5]].offset(name)
            _put(body, at, ">u8", numbers * flow.message.count + 1)
        columns.append(data)
        if not flow.acknowledged:
            continue
        ack = np.zeros((numbers.size, 16 + _HEADERS_BYTES), np.uint8)
        back = Flow(flow.dst, flow.dport, flow.src, flow.sport, flow.message)
        _fill(
            ack, back, times + 50_000, seq=numbers * 0, ack=(numbers + 1) * len(whole), flags=0x10, payload=0
        )
        columns.append(ack)
    return np.concatenate(columns, axis=1).reshape(-1)


def _fill(
    packets: npt.NDArray[np.uint8],
    flow: Flow,
    times: npt.NDArray[np.int64],
    *,
    seq: npt.NDArray[np.int64],
    ack: npt.NDArray[np.int64],
    flags: int,
    payload: int,
) -> None:
    """Write record, Ethernet, IPv4 and TCP headers."""
    length = _HEADERS_BYTES + payload
    for at, value in ((0, times // 10**9), (4, times % 10**9), (8, length), (12, length)):
        _put(packets, at, "<u4", value)
    ip = 16 + 14
    fields: list[tuple[int, str, Any]] = [
        (28, ">u2", 0x0800), (ip, "u1", 0x45), (ip + 2, ">u2", length - 14), (ip + 4, ">u2", seq & 0xFFFF),
        (ip + 8, "u1", 64), (ip + 9, "u1", 6),
        (ip + 12, ">u4", _number(flow.src)), (ip + 16, ">u4", _number(flow.dst)),
        (ip + 20, ">u2", flow.sport), (ip + 22, ">u2", flow.dport), (ip + 24, ">u4", seq & 0xFFFFFFFF),
        (ip + 28, ">u4", ack & 0xFFFFFFFF), (ip + 32, "u1", 0x50), (ip + 33, "u1", flags),
    ]  # fmt: skip
    for at, kind, value in fields:
        _put(packets, at, kind, value)


def _put(packets: npt.NDArray[np.uint8], at: int, kind: str, value: Any) -> None:
    column = np.empty((packets.shape[0], 1), kind)
    column[:, 0] = value
    packets[:, at : at + column.itemsize] = column.view(np.uint8)


def _number(address: str) -> int:
    return int.from_bytes(bytes(int(part) for part in address.split(".")), "big")


@dataclass(frozen=True, slots=True)
class Made:
    """The content and flows of a run's traffic between this many regions."""

    regions: int
    batch: int
    event_bytes: int

    @property
    def links(self) -> list[tuple[int, int]]:
        """Both ends of each."""
        return list(combinations(range(self.regions), 2))

    def events(self, stream: int) -> Events:
        """Return a batch of events."""
        return events(stream, self.batch, self.event_bytes)

    def between(self, source: int, target: int) -> Flow:
        """Return the flow from one region's proxy to another's."""
        return Flow(f"10.0.{source}.2", PORT, f"10.0.{target}.2", 42000 + source, self.events(source))

    def hosts(self, region: int) -> dict[str, list[Flow]]:
        """Return a region's hosts, and the flows that each of them sees."""
        proxy, driver = f"10.0.{region}.2", f"10.0.{region}.3"
        size = self.batch * self.event_bytes
        publish = Publish(0, 0, region, 1, self.batch, self.event_bytes, 0, bytes(size))
        published = [
            Flow(driver, 40000, proxy, PORT, publish),
            Flow(proxy, PORT, driver, 40000, Published(region, 1, 1, self.batch)),
        ]
        delivered = {
            client: [
                Flow(proxy, PORT, f"10.0.{region}.{4 + client}", 41000 + stream, self.events(stream))
                for stream in range(self.regions)
            ]
            for client in range(2)
        }
        others = [other for other in range(self.regions) if other != region]
        over_links = [self.between(*ends) for other in others for ends in ((region, other), (other, region))]
        return {
            f"r{region}-proxy-0": [*published, *delivered[0], *delivered[1], *over_links],
            f"r{region}-driver-0": published,
            f"r{region}-client-0": delivered[0],
            f"r{region}-client-1": delivered[1],
        }


ADDRESSES = {"proxy-0": 2, "driver-0": 3, "client-0": 4, "client-1": 5}


def write_run(path: Path, rounds: int, *, event_bytes: int = 10, regions: int = 4, batch: int = 100) -> int:
    """Write the directory of a whole run as the main job leaves it: run.json, captures, what the nodes wrote.

    Each region has a proxy, a driver and two clients; every host is captured, and both sides of each WAN
    link. batch: events in a message. Returns the number of packets: about 250 a round with 4 regions.
    """
    for folder in ("captures", "analysis", "deliveries"):
        (path / folder).mkdir(parents=True)
    made = Made(regions, batch, event_bytes)
    hosts = {name: flows for region in range(regions) for name, flows in made.hosts(region).items()}
    captures = [
        _captured(path, f"{name}-eth0.pcap", flows, rounds, host=name) for name, flows in hosts.items()
    ]
    for one, other in made.links:
        both = [made.between(one, other), made.between(other, one)]
        link = f"r{one}-r{other}"
        captures += [
            _captured(path, f"{link}@r{side}.pcap", both, rounds, link=link, side=f"r{side}")
            for side in (one, other)
        ]
    for host in hosts:
        write_records(RunDirectory(path).host_deliveries(host), host, rounds, made)
    ended_ns = START_NS + rounds * ROUND_NS
    record = RunRecord(
        _plan(made, hosts),
        run=path.name,
        experiment={"name": "made"},
        phase=RunPhase.COLLECTED,
        outcome=Outcome.COMPLETED,
        times=Times(
            started_ns=START_NS - 2 * ROUND_NS,
            zero_ns=START_NS - ROUND_NS,
            stopped_ns=ended_ns,
            drained_ns=ended_ns + ROUND_NS,
            ended_ns=ended_ns + ROUND_NS,
        ),
        captures=tuple(captures),
    )
    write_record(path / "run.json", record)
    return sum(each.packets or 0 for each in captures)


def _captured(path: Path, name: str, flows: Sequence[Flow], rounds: int, **where: str) -> CaptureRecord:
    file = f"captures/{name}"
    return CaptureRecord(file, packets=write_capture(path / file, flows, rounds), kernel_drops=0, **where)


def _plan(made: Made, names: Iterable[str]) -> Plan:
    hosts = []
    for name in names:
        region, place = name.split("-", 1)
        role, index = place.split("-")
        address = f"10.0.{region[1:]}.{ADDRESSES[place]}"
        hosts.append(HostPlan(name, region, role, int(index), address, f"lan-{name}"))
    return replace(
        SMALL,
        parameters={"port": PORT},
        workload={"event_size_bytes": made.event_bytes},
        hosts=tuple(hosts),
        regions=tuple(RegionPlan(f"r{n}", f"10.0.{n}.0/24", f"r{n}-proxy-0") for n in range(made.regions)),
        links=tuple(
            LinkPlan(f"r{one}-r{other}", "wan", f"r{one}", f"r{other}", LinkParameters(), LinkParameters())
            for one, other in made.links
        ),
        processes=tuple(
            ProcessPlan(
                f"{host.region}/{host.role}-{host.index}", host.name, host.region, host.role, host.index, 1
            )
            for host in hosts
        ),
        streams=tuple(StreamPlan(n, f"r{n}", f"r{n}", (f"r{n}",)) for n in range(made.regions)),
    )


def write_records(path: Path, host: str, rounds: int, made: Made) -> None:
    """Write what a driver or a client of such a run writes down; nothing of a proxy."""
    region, role, _ = host.split("-")
    streams = {"driver": [int(region[1:])], "client": list(range(made.regions))}.get(role, [])
    kind = RecordKind.PUBLISHED if role == "driver" else RecordKind.DELIVERED
    payload = bytes(made.batch * made.event_bytes)
    running = np.fromiter(accumulate(repeat(payload, rounds), crc32_on, initial=0), np.uint32, rounds + 1)[1:]
    found = np.zeros((rounds, len(streams)), np.dtype(list(RECORD_FIELDS)))
    numbers = np.arange(rounds)[:, None]
    found["stream"], found["kind"], found["batch_crc"] = streams, kind, zlib.crc32(payload)
    found["count"] = found["covered"] = made.batch
    found["first_seq"] = numbers * made.batch + 1
    found["time_ns"] = START_NS + numbers * ROUND_NS + ROUND_NS - 1
    found["running_crc"] = running[:, None]
    session = np.zeros(1, found.dtype)
    session["kind"], session["time_ns"] = RecordKind.SESSION, START_NS - ROUND_NS
    with path.open("wb") as file:
        file.write(encode_file_header())
        session.tofile(file)
        found.tofile(file)


def crc32_on(running: int, payload: bytes) -> int:
    """Extend a CRC-32 by this payload."""
    return zlib.crc32(payload, running)
