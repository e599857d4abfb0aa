"""One direction of a link, emulated in virtual time by the relay's code, and the captures at both of its
sides.
"""

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from heapq import heappop
from random import Random

import numpy as np
import pyarrow as pa

from analysis.capture.pcap.fields import checksum_state
from analysis.timelines.links.fidelity import judge
from analysis.timelines.links.link_behaviour import Behaviour, measure
from analysis.timelines.links.link_segments import link_side
from analysis.timelines.links.periods import NO_TRACE, Period
from analysis.timelines.links.traversals import PACKET_COLUMNS
from testbed.capturing.icmp import internet_checksum
from testbed.links.relay.link_direction import DelayQueue, LinkDirection
from tests.testbed.links.relay.vnet_frames import Sent
from topologies.link_parameters import LinkParameters
from topologies.link_trace import LinkTrace

MS = 1_000_000
S = 1_000 * MS
SEGMENT, HEADERS = 1448, {"tcp": 66, "udp": 42}
IP = 10 + 14
IP_CHECKSUM = IP + 10
IP_ID, SEQUENCE, VNET = 10 + 14 + 4, 10 + 14 + 20 + 4, 10
END_NS = 3_600 * S


@dataclass(frozen=True)
class Change:
    """New parameters of a link at a time."""

    at_ns: int
    parameters: LinkParameters
    blackhole: bool = False


@dataclass(frozen=True)
class Captured:
    """Both sides' packets."""

    near: pa.Table
    far: pa.Table
    link_direction: LinkDirection
    trace: LinkTrace = NO_TRACE
    zero_ns: int | None = None

    def measured(self, changes: Sequence[Change]) -> list[Behaviour]:
        """Return the measured behaviour for the periods of these changes, the first of them at time 0."""
        near, far = link_side(self.near, 1500), link_side(self.far, 1500)
        return measure(near, far, periods_of(changes, self.trace, self.zero_ns), (0, END_NS))

    def verdicts(self, changes: Sequence[Change]) -> list[tuple[str, str]]:
        """Return the state of each period, and the reason or ""."""
        periods = periods_of(changes, self.trace, self.zero_ns)
        judged = [judge(*each) for each in zip(periods, self.measured(changes), strict=True)]
        return [(each.state, each.reason or "") for each in judged]


def periods_of(
    changes: Sequence[Change], trace: LinkTrace | None = None, zero_ns: int | None = None
) -> list[Period]:
    """Return the periods of these changes for the analysis."""
    ends = [change.at_ns for change in changes[1:]] + [None]
    return [
        Period(
            **{each.name: getattr(change.parameters, each.name) for each in fields(LinkParameters)},
            start_ns=change.at_ns if number else None,
            end_ns=end_ns,
            state="blackhole" if change.blackhole else "up",
            trace=trace or NO_TRACE,
            zero_ns=zero_ns,
        )
        for number, (change, end_ns) in enumerate(zip(changes, ends, strict=True))
    ]


def emulate(
    changes: Sequence[Change],
    arrivals: Sequence[tuple[int, int]],
    seed: int = 1,
    trace: LinkTrace | None = None,
    zero_ns: int | None = None,
    bundled: int = 0,
) -> Captured:
    """arrivals: when each frame comes, in order, and how many bytes of payload it has: more than a segment's
    is an offloaded frame, 0 a pure acknowledgement. trace: what the link follows from `zero_ns` on. bundled:
    the frames are UDP datagrams that their sender handed to the kernel in bundles of this size. As Linux does
    it, a bundle takes one IP identification, and its datagrams count on from there: those of two bundles
    overlap.
    """
    transport = "udp" if bundled else "tcp"
    delay_queue = DelayQueue()
    link_direction = LinkDirection(0, changes[0].parameters, Random(seed), delay_queue, trace)
    if zero_ns is not None:
        link_direction.begin_trace(zero_ns, 0)
    near: list[tuple[int, bytes]] = []
    far: list[tuple[int, bytes]] = []

    def send_until(now_ns: int) -> None:
        while delay_queue.heap and delay_queue.heap[0][0] <= now_ns:
            release_ns, _, _, frame = heappop(delay_queue.heap)
            delay_queue.queued_bytes -= len(frame)
            far.append((release_ns, frame))

    templates: dict[int, bytes] = {}
    coming = list(changes[1:])
    sequence = 0
    for number, (t_ns, payload) in enumerate(arrivals):
        while coming and coming[0].at_ns <= t_ns:
            change = coming.pop(0)
            send_until(change.at_ns)
            link_direction.change(change.parameters, change.at_ns, blackhole=change.blackhole)
        send_until(t_ns)
        if payload not in templates:
            templates[payload] = Sent(bytes(payload), transport=transport).frame()
        frame = bytearray(templates[payload])
        ip_id = number // bundled + number % bundled if bundled else number * 64
        struct.pack_into("!H", frame, IP_ID, ip_id % (1 << 16))
        struct.pack_into("!H", frame, IP_CHECKSUM, 0)
        struct.pack_into("!H", frame, IP_CHECKSUM, internet_checksum(frame[IP : IP + 20]))
        if bundled:
            struct.pack_into("!I", frame, VNET + HEADERS["udp"], number)
        else:
            struct.pack_into("!I", frame, SEQUENCE, sequence % (1 << 32))
        sequence += payload + 1
        near.append((t_ns, bytes(frame)))
        link_direction.admit(bytes(frame), t_ns)
    send_until(1 << 62)
    near_packets, far_packets = (_packets(frames, transport) for frames in (near, far))
    return Captured(near_packets, far_packets, link_direction, trace or NO_TRACE, zero_ns)


def _packets(frames: Sequence[tuple[int, bytes]], transport: str) -> pa.Table:
    """Return the frames as rows that the analysis reads."""
    columns = {name: np.zeros(len(frames), np.int64) for name in PACKET_COLUMNS}
    columns["t_ns"] = np.array([t_ns for t_ns, _ in frames], np.int64)
    columns["wire_length"] = np.array([len(frame) - VNET for _, frame in frames], np.int64)
    headers = HEADERS[transport]
    columns["payload_length"] = columns["wire_length"] - headers
    columns["payload_offset"] += headers
    if transport == "tcp":
        columns["proto"] += 6
        sequences = [struct.unpack_from("!I", frame, SEQUENCE)[0] for _, frame in frames]
        columns["seq"] = np.array(sequences, np.int64)
    else:
        columns["proto"] += 17
        columns["digest"] = np.array([zlib.crc32(frame[VNET + headers :]) for _, frame in frames], np.int64)
    columns["checksum"] = np.array([checksum_state(frame[VNET + 14 :]) for _, frame in frames], np.int64)
    columns["ip_id"] = np.array([struct.unpack_from("!H", frame, IP_ID)[0] for _, frame in frames], np.int64)
    return pa.table(columns)
