"""Explains waits by TCP: a loss that it repaired first, and connections that ended.

During a wait, TCP may repair a loss of earlier bytes of the connection: a fault dropped their first try, and
new data leaves only after a later try got through. The tries of the same bytes are counted at the sender.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.dataset as ds

from analysis.capture.pcap.fields import DIRECTION
from analysis.capture.pcap.files.compressed import capture_name
from analysis.capture.pcap.reassemble import FIN, RST
from analysis.capture.pcap.streams import halves
from analysis.inspect.following.hops import EventHop
from analysis.inspect.packets.retransmissions import SeenBytes
from analysis.inspect.packets.wire import direction_of, read_syns, relative
from analysis.schemas import PACKETS
from analysis.timelines.links.periods import period_at
from analysis.timelines.run_metadata import RunMetadata
from experiments.records.rundir import RunDirectory

Row = Mapping[str, Any]
TRIES_BEFORE_NS = 60_000_000_000
"""Time before a wait in which the first try of its bytes is looked for."""


@dataclass(frozen=True, slots=True)
class TcpTry:
    """A segment as its sender or receiver saw it; bytes are relative to the first of the message."""

    at_sender: bool
    t_ns: int
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of a connection: `host` sent the first FIN or RST."""

    t_ns: int
    host: str
    how: str


@dataclass(frozen=True, slots=True)
class TcpRepair:
    """The retransmission that ended a wait: the `nth` try of bytes that were first sent at `first_ns`."""

    first_ns: int
    t_ns: int
    nth: int


def repair_within(tries: Iterable[TcpTry], since_ns: int, until_ns: int, transit_ns: int) -> TcpRepair | None:
    """Return the first retransmission after `since_ns`, and not after `until_ns`, that got through.

    tries: the connection's segments by time. transit_ns: shortest time from sender to receiver. If no arrival
    was captured, it is the last retransmission.
    """
    seen, again = SeenBytes(), list[tuple[TcpTry, TcpRepair]]()
    for one in tries:
        if one.at_sender:
            first_ns, nth = seen.see(one.first, one.end, one.t_ns)
            if nth > 1 and since_ns < one.t_ns <= until_ns:
                again.append((one, TcpRepair(first_ns, one.t_ns, nth)))
            continue
        through = [
            repair
            for sent, repair in again
            if sent.first < one.end and one.first < sent.end and sent.t_ns <= one.t_ns - transit_ns
        ]
        if through:
            return through[-1]
    return again[-1][1] if again else None


def fault_at(sender: str, receiver: str, t_ns: int, metadata: RunMetadata) -> str | None:
    """Return the fault that dropped packets between two hosts at this time, as "cut r2-r3".

    Returns None if the links between their regions were up when the packet would have crossed them.
    """
    ends = [metadata.hosts[name] for name in (sender, receiver) if name in metadata.hosts]
    hop = tuple(host.region for host in ends)
    if len(hop) < 2:
        return None
    crossed_ns = t_ns + 1_000 * (ends[0].lan_delay_us[0] + metadata.delay_us((hop[0], hop[1]), t_ns))
    route = metadata.directions((hop[0], hop[1]), t_ns)
    down = [each for each in route if not period_at(metadata.periods[each], crossed_ns).up]
    hops = [crossed for crossed, its_direction in metadata.link_of.items() if its_direction in down]
    began = [
        fault
        for fault in metadata.applied_faults
        if not fault.mends and any(fault.hops.get(each, crossed_ns + 1) <= crossed_ns for each in hops)
    ]
    return f"{began[-1].kind} {began[-1].target}" if began else None


class TcpHistory:
    """The connections that carried, or should have carried, some messages of a run."""

    def __init__(self, run: RunDirectory, metadata: RunMetadata) -> None:
        self._metadata = metadata
        self._packets = ds.dataset(run.table("packets"), PACKETS, format="parquet")
        self._openings = read_syns(run)
        self._hosts = {capture_name(Path(each.file)): each.host for each in run.read_run().listed_captures}

    def repair_of(self, hop: EventHop) -> TcpRepair | None:
        """Return the retransmission that ended a hop's wait or got its message through; None if none did."""
        copy, until_ns = hop.copy, hop.arriving_ns
        since_ns = copy.sent_ns if hop.had_ns is None else hop.had_ns
        opened, begin = self._openings.opened(copy.row), self._openings.first_byte(copy.row)
        if opened is None or begin is None or until_ns is None or since_ns is None:
            return None
        times = (pc.field("t_ns") >= max(opened[0], since_ns - TRIES_BEFORE_NS)) & (
            pc.field("t_ns") <= copy.arrived_ns
        )
        wanted = (pc.field("payload_length") > 0) & _is_between(direction_of(copy.row)) & times
        rows = self._packets.to_table(["capture", "t_ns", "seq", "payload_length"], filter=wanted)
        tries = (
            TcpTry(host == copy.sender, row["t_ns"], first, first + row["payload_length"])
            for row in rows.sort_by("t_ns").to_pylist()
            if (host := self._hosts.get(row["capture"])) in {copy.sender, copy.receiver}
            for first in [relative(row["seq"], begin)]
        )
        return repair_within(tries, since_ns, until_ns, hop.delay_ns - hop.jitter_ns)

    def ending(self, hosts: tuple[str, str], since_ns: int, row: Row | None = None) -> Ending | None:
        """Return how a connection of two hosts ended first after a time. row: its transfer; None: any one."""
        address = {host: self._metadata.hosts[host].address for host in hosts if host in self._metadata.hosts}
        if len(address) < 2:
            return None
        if row is None:
            near, far = (halves(address[host]) for host in hosts)
            there, back = _is_between((*near, *far)), _is_between((*far, *near))
        else:
            way = direction_of(row)
            there, back = _is_between(way), _is_between((*way[3:], *way[:3]))
        ends = pc.bit_wise_and(pc.field("flags"), FIN | RST) != 0
        ends &= (there | back) & (pc.field("t_ns") >= since_ns)
        rows = self._packets.to_table(["t_ns", "flags", "src_hi", "src_lo"], filter=ends)
        for first in rows.sort_by("t_ns").slice(0, 1).to_pylist():
            sender = hosts[(first["src_hi"], first["src_lo"]) != halves(address[hosts[0]])]
            return Ending(first["t_ns"], sender, "RST" if first["flags"] & RST else "FIN")
        return None


def _is_between(ends: Sequence[int]) -> ds.Expression:
    """Return the condition on packets of a direction, with or without its ports."""
    names = DIRECTION if len(ends) == len(DIRECTION) else [name for name in DIRECTION if "port" not in name]
    conditions = [pc.field(name) == value for name, value in zip(names, ends, strict=True)]
    return reduce(and_, conditions)
