"""Throughput in bins: per region and per stream as clients see it, per WAN link and direction as packets show
it.

Events of a region are those that arrived at its clients, from wherever, divided by their number; of a stream,
those that arrived at any client, divided by the number of all; of a link, those that proxies at its two ends
sent each other. Bytes of a link are what arrived on the far side of its middle, on the wire. Each host and
each link is summed by itself; `table` puts the sums (bins times names) together, from time 0 on: what goes
before is connecting and probing.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analysis.timelines import schemas
from analysis.timelines.arrays import Ints, codes, ints, rows
from analysis.timelines.epochs import layout
from analysis.timelines.facts import Facts
from analysis.timelines.groups import shifted
from analysis.timelines.periods import Way
from analysis.timelines.pieces import repeats
from analysis.timelines.schemas import BIN_NS
from node.core.deliveries import RecordKind

Bin = tuple[str, str, str | None, int]
"""Scope, name, direction, and number of the bin since time 0."""


def arrivals(events: pa.Table, facts: Facts) -> pa.Table:
    """`schemas.ARRIVALS`: arrived events and bytes per host, peer, stream and bin, as they first came.

    events: rows of `schemas.EVENTS`, each host's in order of time. Neighbours may send a client what it has
    from another one: that counts once.
    """
    arrived = rows(events, kind="arrived")
    arrived = layout([arrived]).laid_out(arrived)
    hosts = pc.unique(arrived.column("host")).to_pylist()
    place = codes(arrived.column("host"), hosts) + len(hosts) * ints(arrived, "stream")
    batches = shifted(place, ints(arrived, "first_seq"), ints(arrived, "count"))
    at_client = pc.equal(arrived.column("role"), "client").to_numpy()
    new = np.minimum(ints(arrived, "events"), batches.count - np.where(at_client, repeats(batches), 0))
    binned = arrived.append_column("bin", pa.array(_bins(arrived, facts))).append_column("new", pa.array(new))
    by_bin = binned.group_by(["host", "peer", "stream", "bin"], use_threads=False)  # as they came
    sums = by_bin.aggregate([("new", "sum"), ("bytes", "sum")])
    return pa.table(
        [sums.column(name) for name in ("host", "peer", "stream", "bin", "new_sum", "bytes_sum")],
        schema=schemas.ARRIVALS,
    )


def arrivals_of_records(records: pa.Table, facts: Facts) -> pa.Table:
    """`schemas.ARRIVALS` of clients' rows of `schemas.RECORDS`: events, not tombstones."""
    kinds = pa.array([int(RecordKind.DELIVERED), int(RecordKind.SPARSE)])
    got = records.filter(pc.is_in(records.column("kind"), value_set=kinds.cast(pa.int32())))
    binned = got.append_column("bin", pa.array(_bins(got, facts)))
    sums = binned.group_by(["host", "stream", "bin"], use_threads=False).aggregate([("count", "sum")])
    events = ints(sums, "count_sum")
    size = pa.array(events * facts.event_bytes) if facts.event_bytes else pa.nulls(len(events), pa.int64())
    peer = pa.nulls(len(events), pa.string())
    host, stream, number = (sums.column(name) for name in ("host", "stream", "bin"))
    return pa.table([host, peer, stream, number, pa.array(events), size], schema=schemas.ARRIVALS)


def wire(way: Way, far: pa.Table, facts: Facts) -> pa.Table:
    """`schemas.WIRE`: bytes of one direction of a link per bin, from what its far side saw."""
    bins, index = np.unique(_bins(far, facts), return_inverse=True)
    size = np.bincount(index, ints(far, "wire_length"), minlength=len(bins)).astype(np.int64)
    link, direction = (pa.repeat(pa.scalar(part), len(bins)) for part in way)
    return pa.table([link, direction, pa.array(bins), pa.array(size)], schema=schemas.WIRE)


def table(arrived: pa.Table, carried: pa.Table | None, facts: Facts) -> pa.Table:
    """`schemas.THROUGHPUT` from all rows of `arrivals` and of `wire` (None: links were not captured)."""
    events = _per_name(arrived, facts)
    wire_bytes = {}
    for row in carried.to_pylist() if carried is not None else ():
        wire_bytes["link", row["link"], row["direction"], row["bin"]] = row["bytes"]
    last = max((key[3] for key in (*events, *wire_bytes)), default=-1)
    found = []
    for scope, name, direction in _names(facts, with_links=carried is not None):
        for number in range(last + 1):
            key = (scope, name, direction, number)
            count, size = events.get(key, (0.0, 0.0))
            found.append(_row(key, count, wire_bytes.get(key, 0.0) if scope == "link" else size))
    return pa.Table.from_pylist(found, schema=schemas.THROUGHPUT)


def _per_name(arrived: pa.Table, facts: Facts) -> dict[Bin, tuple[float, float]]:
    """Events and bytes of every name that an arrival counts for."""
    clients = Counter(facts.hosts[name].region for name in facts.clients)
    everybody = clients.total()
    found: dict[Bin, tuple[float, float]] = defaultdict(lambda: (0.0, 0.0))
    for row in arrived.to_pylist():
        host, peer = facts.hosts[row["host"]], facts.hosts.get(row["peer"] or "")
        shares: list[tuple[Bin, int]] = []
        if host.role == "client":
            shares.append((("region", host.region, None, row["bin"]), clients[host.region]))
            shares.append((("stream", f"s{row['stream']}", None, row["bin"]), everybody))
        elif peer is not None and peer.role == "proxy":
            way = facts.link_of.get((peer.region, host.region))
            shares += [(("link", *way, row["bin"]), 1)] if way else []
        for key, among in shares:
            events, size = found[key]
            found[key] = (events + row["events"] / among, size + (row["bytes"] or 0) / among)
    return dict(found)


def _names(facts: Facts, *, with_links: bool) -> Iterator[tuple[str, str, str | None]]:
    for region in dict.fromkeys(host.region for host in facts.hosts.values()):
        yield "region", region, None
    for stream in facts.owner:
        yield "stream", f"s{stream}", None
    if with_links:
        for link, direction in facts.periods:
            yield "link", link, direction


def _row(key: Bin, events: float, size: float) -> dict[str, object]:
    scope, name, direction, number = key
    bin_s = BIN_NS / 1e9
    return {
        "scope": scope,
        "name": name,
        "direction": direction,
        "start_s": number * BIN_NS / 1e9,
        "bin_s": bin_s,
        "events_per_s": events / bin_s,
        "bytes_per_s": size / bin_s,
    }


def _bins(table: pa.Table, facts: Facts) -> Ints:
    return (ints(table, "t_ns") - facts.zero_ns) // BIN_NS
