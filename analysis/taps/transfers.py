"""The table of transfers between two taps of one path: each packet once, with its times at both taps.

Both captures are read side by side. A packet waits for its match for at most WAIT_NS, and at most
WAITING_MAX packets of each tap wait. A packet that only the first tap on its way captured is lost if the
other tap captured packets until it would have arrived, by the longest delay so far. It is unseen if the other
tap did not, if its contents were not unique, or if only the second tap captured it.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from analysis.arrays import Bools, Ints, looked_up
from analysis.capture.pcap.fields import TCP, UDP
from analysis.capture.pcap.reassemble import ACK, FIN, RST, SYN
from analysis.capture.time_range import EVER, TimeRange
from analysis.schemas import ARRIVED, LOST, TRANSFERS, UNSEEN
from analysis.sql.functions import ip
from analysis.taps.crossing import COLUMNS, PACKET, Crossing, Packets, matches, packets_of
from analysis.taps.opening import Tap
from analysis.timelines.progress import Progress

WAIT_NS: Final = 10 * 10**9
WAITING_MAX: Final = 400_000
READ_ROWS: Final = 65_536
FLOWS_MAX: Final = 200_000
"""Directions whose bytes are counted at once; beyond it counting begins again."""
TYPES: Final = ("RST", "SYN-ACK", "SYN", "FIN", "DATA", "ACK", "UDP", "IP")
"""Types of packets; IP is any other protocol."""


def transfers(crossing: Crossing, times: TimeRange = EVER) -> Iterator[pa.Table]:
    """Yield rows of TRANSFERS for the packets of one path, about in order of time."""
    pair = _Pair(crossing, times)
    while pair.read():
        yield pair.settle()
    yield pair.settle()


class _Pair:
    """Both taps of a path while they are read."""

    def __init__(self, crossing: Crossing, times: TimeRange) -> None:
        self._crossing, self._times = crossing, times
        wider = times.widened(WAIT_NS)
        self._near, self._far = _Side(crossing.near, wider), _Side(crossing.far, wider)
        self._longest_ns = 0  # one-way delay so far

    def read(self) -> bool:
        """Read on at the tap that is behind; return whether either has more."""
        sides = [side for side in (self._near, self._far) if not side.ended]
        if sides:
            min(sides, key=lambda side: side.until_ns).read()
        return not (self._near.ended and self._far.ended)

    def settle(self) -> pa.Table:
        """Return the transfers that are known now."""
        near, far = self._near.waiting, self._far.waiting
        first, second, unclear, unclear_far = matches(near["hash"], far["hash"])
        is_left, is_left_far = np.ones(near.size, np.bool_), np.ones(far.size, np.bool_)
        is_left[first], is_left_far[second] = False, False
        found = [self._matched(near[first], far[second])]
        for side, other, left, vague in (
            (self._near, self._far, is_left, unclear),
            (self._far, self._near, is_left_far, unclear_far),
        ):
            until_ns = min(self._near.until_ns, self._far.until_ns) - WAIT_NS
            over = left & (side.waiting["t_ns"] <= until_ns)
            excess = np.flatnonzero(left & ~over)[:-WAITING_MAX]
            over[excess] = True
            if side.ended and other.ended:
                over = left
            found.append(self._alone(side, other, side.waiting[over], vague[over]))
            side.waiting = side.waiting[left & ~over]
        rows = pa.concat_tables(found).sort_by("t_ns")
        return rows.filter(pa.array(self._times.within(rows.column("t_ns").to_numpy())))

    def _matched(self, near: Packets, far: Packets) -> pa.Table:
        known = looked_up(near["pair"], self._crossing.ahead)
        ahead = np.where(known < 0, near["t_ns"] <= far["t_ns"], known == 1)
        sent = np.where(ahead, near["t_ns"], far["t_ns"])
        arrived = np.where(ahead, far["t_ns"], near["t_ns"])
        self._longest_ns = max(self._longest_ns, int((arrived - sent).max(initial=0)))
        one = np.where(ahead, near, far)
        return self._table(one, ahead, sent, arrived, np.full(near.size, _ARRIVED))

    def _alone(self, side: "_Side", other: "_Side", packets: Packets, vague: Bools) -> pa.Table:
        """Return the transfers of packets that only one tap captured, if their addresses cross the path."""
        known = looked_up(packets["pair"], self._crossing.ahead)
        packets, vague, known = packets[known >= 0], vague[known >= 0], known[known >= 0]
        ahead = known == 1
        first_here = ahead == (side is self._near)
        reach = other.tap.reach
        assert reach is not None  # crossings have packets
        watched = (packets["t_ns"] >= reach[0]) & (packets["t_ns"] <= reach[1] - self._longest_ns)
        fate = np.where(first_here & watched & ~vague, _LOST, _UNSEEN)
        sent = np.where(first_here, packets["t_ns"], _NEVER)
        arrived = np.where(first_here, _NEVER, packets["t_ns"])
        return self._table(packets, ahead, sent, arrived, fate)

    def _table(self, packets: Packets, ahead: Bools, sent: Ints, arrived: Ints, fate: Ints) -> pa.Table:
        names = pa.array([self._crossing.far.name, self._crossing.near.name])
        sent_ns, arrived_ns = (pa.array(times, mask=times == _NEVER) for times in (sent, arrived))
        rows = packets.size
        columns = {
            "t_ns": pa.array(np.where(sent == _NEVER, arrived, sent)),
            "sender": names.take(pa.array(ahead.astype(np.int64))),
            "receiver": names.take(pa.array((~ahead).astype(np.int64))),
            "src": ip(pa.array(packets["src_hi"]), pa.array(packets["src_lo"])),
            "sport": pa.array(packets["sport"].astype(np.int32)),
            "dst": ip(pa.array(packets["dst_hi"]), pa.array(packets["dst_lo"])),
            "dport": pa.array(packets["dport"].astype(np.int32)),
            "connection": pa.array(packets["connection"].astype(np.int32)),
            "stream_offset": pa.array(packets["place"]),
            "length": pa.array(packets["wire"].astype(np.int32)),
            "t_sent_ns": sent_ns,
            "t_left_ns": sent_ns,
            "t_arrived_ns": arrived_ns,
            "t_complete_ns": arrived_ns,
            "fate": pa.array([ARRIVED, LOST, UNSEEN]).take(pa.array(fate)),
            "type": packet_types(packets["flags"], packets["size"], packets["proto"]),
            "payload_length": pa.array(packets["size"].astype(np.int32)),
            "retransmitted": pa.array(packets["again"] != 0),
        }
        return pa.table(
            [columns.get(field.name, pa.nulls(rows, field.type)) for field in TRANSFERS], schema=TRANSFERS
        )


_ARRIVED, _LOST, _UNSEEN = 0, 1, 2
_NEVER: Final = np.iinfo(np.int64).min


def packet_types(flags: Ints, size: Ints, protocol: Ints) -> pa.Array:
    """Return the type of each packet. size: of its payload."""
    is_tcp, is_syn, acknowledges = protocol == TCP, flags & SYN != 0, flags & ACK != 0
    conditions = [
        is_tcp & (flags & RST != 0),
        is_tcp & is_syn & acknowledges,
        is_tcp & is_syn,
        is_tcp & (flags & FIN != 0),
        is_tcp & (size > 0),
        is_tcp,
        protocol == UDP,
    ]
    return pa.array(TYPES).take(
        pa.array(np.select(conditions, list(range(len(conditions))), len(conditions)))
    )


class _Side:
    """One tap: its packets that wait for their match."""

    def __init__(self, tap: Tap, times: TimeRange) -> None:
        self.tap = tap
        self.waiting: Packets = np.zeros(0, PACKET)
        self.until_ns = -(1 << 62)  # how far it was read
        self.ended = False
        self._source = tap.packets(times, COLUMNS)
        self._places = _Places()

    def read(self) -> None:
        """Read some more packets."""
        found, rows = [self.waiting], 0
        while rows < READ_ROWS and not self.ended:
            columns = next(self._source, None)
            if columns is None:
                self.ended = True
                self.until_ns = 1 << 62
                break
            packets = packets_of(columns)
            self._places.note(packets)
            self.until_ns = max(self.until_ns, int(columns["t_ns"].max(initial=self.until_ns)))
            found.append(packets)
            rows += packets.size
        self.waiting = np.concatenate(found)


class _Places:
    """The places of the bytes of TCP segments in their directions."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._flows: dict[int, int] = {}
        self._syns: dict[int, tuple[int, int]] = {}  # of a flow: its SYN's number, and how many were before
        self._next = 0
        self._progress = Progress()

    def note(self, packets: Packets) -> None:
        """Note each segment's place in its connection, and whether its data was seen before."""
        rows = np.flatnonzero((packets["proto"] == TCP) & (packets["flags"] & RST == 0))
        if not rows.size:
            return
        if len(self._flows) > FLOWS_MAX:
            self._begin()
        here = packets[rows]
        keys, which = np.unique(here["flow"], return_inverse=True)
        number = np.array([self._numbered(key) for key in keys.tolist()], np.int64)[which]
        connection = np.array([self._syns.get(key, (0, 0))[1] for key in keys.tolist()], np.int64)[which]
        is_syn = here["flags"] & SYN != 0
        for row in np.flatnonzero(is_syn).tolist():
            key, seq = int(here["flow"][row]), int(here["seq"][row])
            known, before = self._syns.get(key, (seq, 0))
            if known != seq:
                before += 1
                del self._flows[key]
                later = np.flatnonzero(here["flow"][row:] == here["flow"][row]) + row
                number[later], connection[later] = self._numbered(key), before
            self._syns[key] = seq, before
        taken = here["size"] + is_syn + (here["flags"] & FIN != 0)
        further, place = self._progress.take(number, here["seq"] + taken, here["seq"] + is_syn)
        packets["again"][rows] = ~further & (here["size"] > 0)
        packets["place"][rows] = np.maximum(place - taken + is_syn, 0)
        packets["connection"][rows] = connection

    def _numbered(self, key: int) -> int:
        if key not in self._flows:
            self._flows[key] = self._next
            self._next += 1
        return self._flows[key]
