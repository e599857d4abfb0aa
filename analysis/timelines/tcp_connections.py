"""TCP connections between hosts of different regions: who opened each, how and when it ended, and when data
arrived or was only retransmitted. From packets of the hosts' captures, at both ends.

This shows how a system of programs reacted to a cut: its messages cannot be decoded, but its connections can.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import ip_address

import numpy as np
import pyarrow as pa

from analysis.capture.pcap.reassemble import ACK, FIN, RST, SYN
from analysis.capture.pcap.segments import TCP
from analysis.timelines.arrays import Bools, Ints, codes, ints
from analysis.timelines.progress import Progress
from experiments.planned.plan import Plan

PACKET_COLUMNS = (
    "capture", "t_ns", "src_lo", "dst_lo", "sport", "dport", "proto", "seq", "flags", "payload_length",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class TcpDirection:
    """One direction of a connection; CLOCK_REALTIME ns, ascending.

    sent_ns: segments with data as they left their host. repeated: which of them had only retransmitted data.
    arrived_ns: segments with data as they arrived at the other host.
    """

    sent_ns: Ints
    repeated: Bools
    arrived_ns: Ints


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of a connection: `host` sent the first FIN or RST."""

    t_ns: int
    host: str
    how: str


@dataclass(frozen=True, slots=True)
class TcpConnection:
    """One connection.

    client: the host that opened it; if that was not captured, the one with the higher port. tries_ns: SYNs as
    they left. answered_ns: when the SYN-ACK arrived; None if none arrived, or before the captures.
    """

    client: str
    server: str
    port: int
    tries_ns: tuple[int, ...] = ()
    answered_ns: int | None = None
    ending: Ending | None = None
    ways: tuple[TcpDirection, ...] = ()  # from the client, and to it

    @property
    def begun_ns(self) -> int | None:
        """The time of the first attempt; None if the connection is older than the captures."""
        return self.tries_ns[0] if self.tries_ns else None

    def stands_at(self, t_ns: int) -> bool:
        """Return whether it was open at a time."""
        began = not self.tries_ns if self.answered_ns is None else self.answered_ns <= t_ns
        return began and (self.ending is None or self.ending.t_ns > t_ns)

    def first_arrival_ns(self, after_ns: int) -> int | None:
        """Return when data first arrived, in either direction, after a time."""
        found = [_first(way.arrived_ns, after_ns) for way in self.ways]
        return min((each for each in found if each is not None), default=None)

    def repeats_ns(self, from_ns: int, to_ns: int) -> Ints:
        """Return when either host retransmitted segments within a time span."""
        found = [way.sent_ns[way.repeated] for way in self.ways]
        times: Ints = np.sort(np.concatenate([np.zeros(0, np.int64), *found]))
        return times[(times >= from_ns) & (times < to_ns)]


@dataclass(frozen=True, slots=True)
class CapturedHost:
    """A host with its region, and the name of its capture's file without suffix."""

    name: str
    region: str
    capture: str


def captured_hosts(plan: Plan) -> dict[int, CapturedHost]:
    """Return the hosts of a run that were captured, by their numeric addresses."""
    captures = {each.host: each.file.removesuffix(".pcap") for each in plan.captures if each.host}
    return {
        int(ip_address(host.address)): CapturedHost(host.name, host.region, captures[host.name])
        for host in plan.hosts
        if host.name in captures
    }


def tcp_connections(packets: pa.Table, hosts: Mapping[int, CapturedHost]) -> list[TcpConnection]:
    """Return all connections between hosts of different regions, sorted by their beginnings.

    packets: rows with PACKET_COLUMNS, times by one clock. hosts: by numeric address.
    """
    found = list(_connections(packets, hosts))
    return sorted(found, key=lambda each: (each.begun_ns or 0, each.client, each.server))


def _connections(packets: pa.Table, hosts: Mapping[int, CapturedHost]) -> Iterator[TcpConnection]:
    columns = {name: ints(packets, name) for name in PACKET_COLUMNS if name != "capture"}
    names = packets.column("capture").unique().to_pylist()
    place = {name: number for number, name in enumerate(names)}
    capture = codes(packets.column("capture"), names)
    addresses = np.array(sorted(hosts), np.int64)
    captured = [hosts[each] for each in addresses.tolist()]
    regions = sorted({each.region for each in captured})
    region = np.array([regions.index(each.region) for each in captured], np.int64)
    own = np.array([place.get(each.capture, -1) for each in captured], np.int64)
    source, is_source = _index(addresses, columns["src_lo"])
    target, is_target = _index(addresses, columns["dst_lo"])
    wanted = (columns["proto"] == TCP) & is_source & is_target
    wanted &= region[source] != region[target]
    at_source, at_target = capture == own[source], capture == own[target]
    rows = np.flatnonzero(wanted & (at_source | at_target))
    if not rows.size:
        return
    rows = rows[np.argsort(columns["t_ns"][rows], kind="stable")]
    ends = np.stack(
        (source[rows] << 16 | columns["sport"][rows], target[rows] << 16 | columns["dport"][rows])
    )
    pairs, group = np.unique(np.sort(ends, axis=0), axis=1, return_inverse=True)
    order = np.argsort(group.ravel(), kind="stable")
    bounds = np.searchsorted(group.ravel()[order], np.arange(pairs.shape[1] + 1))
    for number in range(pairs.shape[1]):
        mine = rows[order[bounds[number] : bounds[number + 1]]]
        low = int(pairs[0, number])
        here = {name: values[mine] for name, values in columns.items()}
        here["is_low"] = ((source[mine] << 16) | here["sport"]) == low
        here["left"] = at_source[mine]
        ends_of = [(int(each) >> 16, int(each) & 0xFFFF) for each in pairs[:, number]]
        at = [(captured[index].name, port) for index, port in ends_of]
        yield from _split(here, at)


def _index(addresses: Ints, wanted: Ints) -> tuple[Ints, Bools]:
    place = np.clip(np.searchsorted(addresses, wanted), 0, max(addresses.size - 1, 0))
    return place, addresses[place] == wanted


def _split(here: dict[str, Ints], at: list[tuple[str, int]]) -> Iterator[TcpConnection]:
    """Yield the successive connections of one pair of ports: each new SYN begins another one."""
    opening = (here["flags"] & SYN != 0) & (here["flags"] & ACK == 0) & (here["left"] != 0)
    numbers: set[tuple[bool, int]] = set()
    connection = np.zeros(here["t_ns"].size, np.int64)
    starts = []
    for row in np.flatnonzero(opening).tolist():
        key = bool(here["is_low"][row]), int(here["seq"][row])
        if key not in numbers:
            numbers.add(key)
            starts.append(row)
    if starts and starts[0] > 0:
        starts.insert(0, 0)
    for first in starts:
        connection[first:] += 1
    for number in np.unique(connection).tolist():
        rows = np.flatnonzero(connection == number)
        yield _one({name: values[rows] for name, values in here.items()}, at)


def _one(here: dict[str, Ints], at: list[tuple[str, int]]) -> TcpConnection:
    flags, t_ns, left = here["flags"], here["t_ns"], here["left"] != 0
    is_low = here["is_low"] != 0
    opening = (flags & SYN != 0) & (flags & ACK == 0)
    answering = (flags & SYN != 0) & (flags & ACK != 0)
    if opening.any():
        is_clients = is_low == bool(is_low[np.flatnonzero(opening)[0]])
    elif answering.any():
        is_clients = is_low != bool(is_low[np.flatnonzero(answering)[0]])
    else:
        is_clients = is_low == (at[0][1] > at[1][1])
    client, server = (at[0], at[1]) if bool(is_low[0]) == bool(is_clients[0]) else (at[1], at[0])
    answers = t_ns[answering & ~left]
    endings = [_ending(here, is_clients, client[0]), _ending(here, ~is_clients, server[0])]
    known = sorted((each for each in endings if each is not None), key=lambda each: each.t_ns)
    return TcpConnection(
        client=client[0],
        server=server[0],
        port=server[1],
        tries_ns=tuple(t_ns[opening & left].tolist()),
        answered_ns=int(answers[0]) if answers.size else None,
        ending=known[0] if known else None,
        ways=(_way(here, is_clients), _way(here, ~is_clients)),
    )


def _ending(here: dict[str, Ints], mine: Bools, host: str) -> Ending | None:
    rows = np.flatnonzero(mine & (here["left"] != 0) & (here["flags"] & (FIN | RST) != 0))
    if not rows.size:
        return None
    first = int(rows[0])
    return Ending(int(here["t_ns"][first]), host, "RST" if here["flags"][first] & RST else "FIN")


def _way(here: dict[str, Ints], mine: Bools) -> TcpDirection:
    data = mine & (here["payload_length"] > 0)
    sent = np.flatnonzero(data & (here["left"] != 0))
    arrived = np.flatnonzero(data & (here["left"] == 0))
    begin, size = here["seq"][sent], here["payload_length"][sent]
    is_new, _ = Progress().take(np.zeros_like(sent), begin + size, begin)
    return TcpDirection(here["t_ns"][sent], ~is_new, here["t_ns"][arrived])


def _first(times: Ints, after_ns: int) -> int | None:
    place = int(np.searchsorted(times, after_ns))
    return int(times[place]) if place < times.size else None
