"""TCP on connections across a link that failed and was restored: the last transmission before the
restoration, the first one after it, and when data arrived again. From the captures on both sides of the link.

After an outage most systems wait only for TCP: each retransmission doubles the wait for the next one
(RFC 6298, 5.5), so data may be retransmitted only long after the link is back.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from analysis.arrays import NEVER, Bools, Ints, ints
from analysis.capture.pcap.fields import TCP
from analysis.capture.pcap.reassemble import ACK, FIN, RST, SYN
from analysis.timelines import schemas
from analysis.timelines.links.periods import LinkDirection, Period
from analysis.timelines.run_metadata import RunMetadata

CONNECTIONS_MAX = 10_000
"""Largest number of connections that are measured per outage."""
AT_ONCE_S = 0.5
"""A link restored this close to the last change counts as restored by it."""


@dataclass(frozen=True, slots=True)
class LinkOutage:
    """A time in which a link did not carry packets in some directions, as indices of its directions."""

    begin_ns: int
    end_ns: int
    failed: frozenset[int]


def link_outages(directions: Sequence[Sequence[Period]]) -> list[LinkOutage]:
    """Return the outages of a link; overlapping ones are one. An outage that lasts to the end is left out.

    directions: the periods of each.
    """
    down = sorted(
        (period.start_ns, NEVER if period.end_ns is None else period.end_ns, number)
        for number, periods in enumerate(directions)
        for period in periods
        if not period.up and period.start_ns is not None
    )
    found: list[LinkOutage] = []
    for begin_ns, end_ns, number in down:
        if found and begin_ns <= found[-1].end_ns:
            last = found.pop()
            joined = LinkOutage(last.begin_ns, max(end_ns, last.end_ns), last.failed | {number})
            found.append(joined)
        else:
            found.append(LinkOutage(begin_ns, end_ns, frozenset({number})))
    return [outage for outage in found if outage.end_ns != NEVER]


def measure(
    directions: Sequence[LinkDirection],
    near: Sequence[pa.Table],
    far: Sequence[pa.Table],
    metadata: RunMetadata,
) -> pa.Table:
    """Return `schemas.TCP_OUTAGES` of one link. near, far: each direction's packets on either side."""
    outages = link_outages([metadata.periods[direction] for direction in directions])
    if not outages:
        return schemas.TCP_OUTAGES.empty_table()
    seen = _LinkPackets(near, far)
    found: list[dict[str, object]] = []
    for number, outage in enumerate(outages):
        until_ns = outages[number + 1].begin_ns if number + 1 < len(outages) else NEVER
        found += _rows(seen, outage, until_ns, metadata)
    common = {"link": directions[0][0]}
    return pa.Table.from_pylist([common | row for row in found], schema=schemas.TCP_OUTAGES)


class _LinkPackets:
    """The TCP packets on both sides of a link, by time, and the connection of each.

    direction: index of the direction of each. has_entered: on the near side, otherwise on the far one. An end
    is an address and a port: address << 16 | port. ends: the two ends of each connection, the lower one
    first.
    """

    def __init__(self, near: Sequence[pa.Table], far: Sequence[pa.Table]) -> None:
        packets = pa.concat_tables((*near, *far))
        numbers = [*range(len(near)), *range(len(far))]
        direction = np.repeat(numbers, [table.num_rows for table in (*near, *far)])
        order = np.argsort(ints(packets, "t_ns"), kind="stable")
        order = order[ints(packets, "proto")[order] == TCP]
        columns = {name: ints(packets, name)[order] for name in
                   ("t_ns", "src_lo", "dst_lo", "sport", "dport", "flags", "payload_length")}  # fmt: skip
        self.has_entered = order < sum(table.num_rows for table in near)
        self.direction = direction[order]
        self.t_ns, self.flags = columns["t_ns"], columns["flags"]
        self.source = columns["src_lo"] << 16 | columns["sport"]
        target = columns["dst_lo"] << 16 | columns["dport"]
        low, at_low = np.unique(np.minimum(self.source, target), return_inverse=True)
        high, at_high = np.unique(np.maximum(self.source, target), return_inverse=True)
        pairs, self.connection = np.unique(at_low * len(high) + at_high, return_inverse=True)
        self.ends = np.stack((low[pairs // max(len(high), 1)], high[pairs % max(len(high), 1)]))
        self.is_from_low = self.source < target
        self.is_opening = (self.flags & SYN != 0) & (self.flags & ACK == 0)
        self.is_trial = (self.flags & (SYN | FIN) != 0) | (columns["payload_length"] > 0)
        self.is_ending = self.flags & (FIN | RST) != 0

    def within(self, begin_ns: int, end_ns: int, wanted: Bools) -> Ints:
        """Return the rows of wanted packets of a time span."""
        first, end = np.searchsorted(self.t_ns, (begin_ns, end_ns)).tolist()
        found: Ints = first + np.flatnonzero(wanted[first:end])
        return found

    def first(self, rows: Ints) -> Ints:
        """Return the first of these rows of each connection, -1 if it has none."""
        found = np.full(self.ends.shape[1], -1, np.int64)
        found[self.connection[rows[::-1]]] = rows[::-1]
        return found

    def last(self, rows: Ints) -> Ints:
        """Return the last of these rows of each connection, -1 if it has none."""
        found = np.full(self.ends.shape[1], -1, np.int64)
        found[self.connection[rows]] = rows
        return found

    def ended(self, before_ns: int) -> Bools:
        """Return which connections were reset, or closed by both ends, and not opened again before a time."""
        opened = self.last(self.within(0, before_ns, self.has_entered & self.is_opening))

        def since(wanted: Bools) -> Bools:
            return self.last(self.within(0, before_ns, self.has_entered & wanted)) > opened

        is_fin = self.flags & FIN != 0
        is_closed = since(is_fin & self.is_from_low) & since(is_fin & ~self.is_from_low)
        return since(self.flags & RST != 0) | is_closed

    def counts(self, rows: Ints) -> Ints:
        """Return how many of these rows each connection has."""
        return np.bincount(self.connection[rows], minlength=self.ends.shape[1])


def _rows(
    seen: _LinkPackets, outage: LinkOutage, until_ns: int, metadata: RunMetadata
) -> Iterator[dict[str, object]]:
    """Yield a row for each connection that sent while the link was down, or was open when it failed, and for
    the first new one of their hosts.
    """
    begin_ns, end_ns = outage.begin_ns, outage.end_ns
    entered = seen.has_entered
    trial = seen.is_trial & np.isin(seen.direction, list(outage.failed))
    ended = seen.ended(begin_ns)
    stood = (seen.counts(seen.within(0, begin_ns, entered)) > 0) & ~ended
    trials = seen.within(begin_ns, end_ns, entered & trial)
    tries, last = seen.counts(trials), seen.last(trials)
    following = seen.first(seen.within(end_ns, until_ns, entered & trial))
    through = seen.first(seen.within(end_ns, until_ns, ~entered & trial))
    ending = seen.first(seen.within(begin_ns, until_ns, entered & seen.is_ending))
    opening = seen.first(seen.within(0, until_ns, entered & seen.is_opening))
    known = np.flatnonzero(stood | (tries > 0))[:CONNECTIONS_MAX]
    new = _first_new(seen, known, seen.within(end_ns, until_ns, entered & seen.is_opening))

    def seconds(row: int) -> float | None:
        return None if row < 0 else metadata.seconds(int(seen.t_ns[row]))

    for number in np.union1d(known, new).tolist():
        low, high = seen.ends[:, number].tolist()
        client = (
            int(seen.source[opening[number]])
            if opening[number] >= 0
            else max(low, high, key=lambda end: end & 0xFFFF)
        )
        server, end = low if client == high else high, int(ending[number])
        yield {
            "from_s": metadata.seconds(begin_ns),
            "to_s": metadata.seconds(end_ns),
            "client": _host(client, metadata),
            "server": _host(server, metadata),
            "port": server & 0xFFFF,
            "open": bool(stood[number]),
            "tries": int(tries[number]),
            "last_try_s": seconds(int(last[number])),
            "next_try_s": seconds(int(following[number])),
            "through_s": seconds(int(through[number])),
            "ended_s": seconds(end),
            "ended_by": None if end < 0 else _host(int(seen.source[end]), metadata),
            "ended_how": None if end < 0 else "RST" if seen.flags[end] & RST else "FIN",
        }


def _first_new(seen: _LinkPackets, known: Ints, openings: Ints) -> Ints:
    """Return the first connection that each pair of hosts with known connections opened in these rows."""
    hosts = [tuple(pair) for pair in (seen.ends >> 16).T.tolist()]
    wanted = {hosts[number] for number in known.tolist()}
    found: dict[tuple[int, ...], int] = {}
    for number in seen.connection[openings].tolist():
        if hosts[number] in wanted:
            found.setdefault(hosts[number], number)
    return np.array(list(found.values()), np.int64)


def _host(end: int, metadata: RunMetadata) -> str:
    address = end >> 16
    text = ".".join(str(address >> shift & 0xFF) for shift in (24, 16, 8, 0))
    return metadata.host_at.get(text, text)


def retry_s(outages: pa.Table, last_change_s: float) -> float | None:
    """Return how long after the last change TCP retransmitted between hosts that had sent during the outage.

    The first transmission of the slowest pair of hosts counts, over old or new connections. None if no outage
    ended with the last change, no hosts sent during it, or some never retransmitted. outages:
    `schemas.TCP_OUTAGES`.
    """
    tried: dict[frozenset[str], bool] = {}
    next_s: dict[frozenset[str], float] = {}
    for row in outages.to_pylist():
        if abs(row["to_s"] - last_change_s) > AT_ONCE_S:
            continue
        pair = frozenset((row["client"], row["server"]))
        tried[pair] = tried.get(pair, False) or row["tries"] > 0
        if row["next_try_s"] is not None:
            since_s = row["next_try_s"] - row["to_s"]
            next_s[pair] = min(since_s, next_s.get(pair, since_s))
    found = [next_s.get(pair) for pair, has_tried in tried.items() if has_tried]
    known = [since_s for since_s in found if since_s is not None]
    return round(max(known), 6) if known and len(known) == len(found) else None
