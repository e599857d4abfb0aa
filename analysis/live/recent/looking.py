"""Messages of the last seconds of a run that goes on, as rows of TRANSFERS.

Both ends of each message are matched by TCP's sequence numbers, from the newest parts of the hosts' captures.
What the kernel and tcpdump still hold, about the last second, is not seen. A message that left just before is
not called lost, though nobody has seen it come; nor is one to where the stream could not be followed.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from analysis.capture.pcap.streams import HostCapture
from analysis.errors import AnalysisError
from analysis.jobs.matching import Key, Receivers, match
from analysis.live.recent.captured import newest
from analysis.schemas import LOST, MESSAGES, TRANSFERS, UNSEEN
from experiments.rundir import RunDirectory
from node.core.layout import Codec

GRACE_NS = 1_000_000_000  # after which a message that nobody saw come is called lost
TOGETHER_NS = 2_500_000_000
"""Captures of interfaces in use end within so long; all are shown until the first of them ends."""

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Look:
    """Rows of TRANSFERS by time, and until when captures were seen (CLOCK_REALTIME ns; None: nothing yet)."""

    rows: pa.Table
    seen_until_ns: int | None


def look(
    run: RunDirectory, plan: Json, codec: Codec, from_ns: int, hosts: Collection[str] | None = None
) -> Look:
    """What was sent or came since `from_ns`.

    plan: run.json's. hosts: one end at least is among them (all are, unless given); captures of others are
    read only where they had to do with these. Raises AnalysisError without captures.
    """
    addresses = {host["name"]: host["address"] for host in plan["hosts"]}
    names = {address: name for name, address in addresses.items()}
    captures = {capture["host"]: capture["file"] for capture in plan["captures"] if capture["host"]}
    if not captures:
        raise AnalysisError("there is nothing to look at: no host of this experiment is captured")
    tables: list[pa.Table] = [MESSAGES.empty_table()]
    seen: dict[str, int] = {}
    undecoded: set[Key] = set()

    def read(some: Collection[str]) -> set[str]:
        """Read these hosts' captures; whom they had to do with."""
        peers: set[str] = set()
        for name in some:
            path = run.captures / captures[name]
            host = HostCapture("", name, addresses[name], plan["parameters"]["port"])
            found = newest(path, host, codec, from_ns)
            tables.append(found.messages)
            undecoded.update(found.undecoded)
            if found.last_ns is not None:
                seen[name] = found.last_ns
            for end in ("src", "dst"):
                peers.update(names.get(each, "") for each in found.messages.column(end).unique().to_pylist())
        return peers

    first = [name for name in captures if hosts is None or name in hosts]
    peers = read(first)
    read([name for name in captures if name in peers and name not in first])
    messages = pa.concat_tables(tables)
    sides = [messages.filter(pc.equal(messages.column("direction"), side)) for side in ("out", "in")]
    if not messages.num_rows:
        return Look(TRANSFERS.empty_table(), None)
    until_ns = min(last_ns for last_ns in seen.values() if last_ns >= max(seen.values()) - TOGETHER_NS)
    receivers = Receivers(frozenset(seen), undecoded=frozenset(undecoded))
    rows = _patient(match(sides[0], sides[1], names, receivers), seen)
    times = rows.column("t_ns")
    wanted = pc.and_(pc.greater_equal(times, from_ns), pc.less_equal(times, until_ns))
    return Look(rows.filter(wanted).sort_by("t_ns"), until_ns)


def _patient(rows: pa.Table, seen: Mapping[str, int]) -> pa.Table:
    """What left less than GRACE_NS before its receiver's capture ends is not lost, but unseen so far."""
    hosts = pa.array(list(seen), pa.string())
    ends = pa.array(list(seen.values()), pa.int64())
    until = ends.take(pc.index_in(rows.column("receiver"), value_set=hosts).combine_chunks())
    late = pc.less(pc.subtract(until, rows.column("t_ns")), GRACE_NS)
    early = pc.and_(pc.equal(rows.column("fate"), LOST), pc.fill_null(late, fill_value=False))
    fate = pc.if_else(early, UNSEEN, rows.column("fate"))
    place = TRANSFERS.get_field_index("fate")
    return rows.set_column(place, TRANSFERS.field("fate"), fate.cast(TRANSFERS.field("fate").type))
