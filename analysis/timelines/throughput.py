"""Throughput in bins: per region and per stream as clients see it, per WAN link and direction as packets show
it.

Events of a region are those that arrived at its clients, from wherever, divided by their number; of a stream,
those that arrived at any client, divided by the number of all; of a link, those that proxies at its two ends
sent each other. Bytes of a link are what arrived on the far side of its emulator, on the wire. Each host and
each link is summed by itself; `table` puts the sums (bins times names) together, from time 0 on: what goes
before is connecting and probing, and until the run ended: what is dated later (`run_window`) has no bin.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analysis.timelines import schemas
from analysis.timelines.arrays import Floats, Ints, codes, ints, rows
from analysis.timelines.epochs import layout
from analysis.timelines.facts import Facts
from analysis.timelines.periods import Way
from analysis.timelines.pieces import repeats, shifted
from analysis.timelines.schemas import BIN_NS
from experiments.declared import Trait
from node.core.deliveries import RecordKind

Name = tuple[str, str, str | None]
"""Scope, name and direction of a timeline."""


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
    subscribers = pa.array(facts.declared.having(Trait.SUBSCRIBER), pa.string())
    at_client = pc.is_in(arrived.column("role"), value_set=subscribers).to_numpy()
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
    """`schemas.THROUGHPUT` from all rows of `arrivals` and of `wire` (None: links were not captured).

    The last bin is the last one within the run that anything came in.
    """
    names = list(_names(facts, with_links=carried is not None))
    number_of = {name: number for number, name in enumerate(names)}
    shares = _shares(arrived, facts, number_of)
    wires = _wires(carried, number_of) if carried is not None else _Shares.nothing()
    bins = 1 + max(shares.last(facts), wires.last(facts))
    events, size = shares.summed(len(names), bins)
    on_wire, _ = wires.summed(len(names), bins)
    is_link = np.array([name[0] == "link" for name in names], bool)
    size[is_link] = on_wire[is_link]
    bin_s, starts_ns = BIN_NS / 1e9, np.arange(bins) * BIN_NS
    places = np.repeat(np.arange(len(names)), bins)
    return pa.table(
        [
            *(pa.array(column, pa.string()).take(pa.array(places)) for column in _columns(names)),
            pa.array(np.tile(starts_ns / 1e9, len(names))),
            pa.array(np.full(len(places), bin_s)),
            pa.array(events.ravel() / bin_s),
            pa.array(size.ravel() / bin_s),
        ],
        schema=schemas.THROUGHPUT,
    )


@dataclass(frozen=True, slots=True)
class _Shares:
    """What counts for a name (by its number) in a bin: parts of sums, of which a name may have many."""

    name: Ints
    number: Ints  # of the bin
    events: Floats
    bytes: Floats

    @classmethod
    def nothing(cls) -> Self:
        nothing = np.zeros(0, np.int64)
        return cls(nothing, nothing, nothing.astype(float), nothing.astype(float))

    def last(self, facts: Facts) -> int:
        """The last bin within the run, or -1."""
        within = facts.window.holds(facts.zero_ns + self.number * BIN_NS)
        return int(self.number[within].max(initial=-1))

    def summed(self, names: int, bins: int) -> tuple[Floats, Floats]:
        """Sums of events and bytes: a row for each name, a column for each bin."""
        within = (self.number >= 0) & (self.number < bins) & (self.name >= 0)
        cells = self.name[within] * bins + self.number[within]
        events, size = (
            np.bincount(cells, part[within], names * bins).astype(float).reshape(names, bins)
            for part in (self.events, self.bytes)
        )
        return events, size


def _shares(arrived: pa.Table, facts: Facts, number_of: Mapping[Name, int]) -> _Shares:
    """What each row of `schemas.ARRIVALS` counts for: a client's for its region and for the stream, what
    came to a proxy from another region's for the link between the two.
    """
    hosts = list(facts.hosts.values())
    here, there = (codes(arrived.column(column), list(facts.hosts)) for column in ("host", "peer"))
    # The last place of each array stands for no host at all.
    subscribes, serves = (
        np.array([*(facts.has(host, trait) for host in hosts), False])
        for trait in (Trait.SUBSCRIBER, Trait.SERVER)
    )
    region = np.array([*(number_of["region", host.region, None] for host in hosts), -1])
    clients = np.bincount(region[subscribes], minlength=len(number_of))
    at_client = subscribes[here]
    streams = ints(arrived, "stream")
    stream = _looked_up(streams, {s: number_of["stream", f"s{s}", None] for s in facts.owner})
    hop = region[there] * len(number_of) + region[here]
    links = {
        number_of["region", a, None] * len(number_of) + number_of["region", b, None]: number_of["link", *way]
        for (a, b), way in facts.link_of.items()
        if ("link", *way) in number_of
    }
    link = np.where(serves[there], _looked_up(hop, links), -1)
    first, second = np.where(at_client, region[here], link), np.where(at_client, stream, -1)
    among_first = np.where(at_client, clients[region[here]], 1)
    among_second = max(1, int(clients.sum()))
    number, events = ints(arrived, "bin"), ints(arrived, "events").astype(float)
    size = pc.fill_null(arrived.column("bytes"), 0).to_numpy().astype(float)
    return _Shares(
        np.concatenate((first, second)),
        np.concatenate((number, number)),
        np.concatenate((events / among_first, events / among_second)),
        np.concatenate((size / among_first, size / among_second)),
    )


def _wires(carried: pa.Table, number_of: Mapping[Name, int]) -> _Shares:
    """What each row of `schemas.WIRE` counts for: bytes alone, in place of events."""
    ways = zip(*(carried.column(name).to_pylist() for name in ("link", "direction")), strict=True)
    name = np.array([number_of.get(("link", *way), -1) for way in ways], np.int64)
    size = ints(carried, "bytes").astype(float)
    return _Shares(name, ints(carried, "bin"), size, size)


def _looked_up(keys: Ints, values: Mapping[int, int]) -> Ints:
    """The value of each key, or -1."""
    distinct, places = np.unique(keys, return_inverse=True)
    found: Ints = np.array([values.get(int(key), -1) for key in distinct], np.int64)[places]
    return found


def _columns(names: Sequence[Name]) -> list[list[str | None]]:
    return [[name[part] for name in names] for part in range(3)]


def _names(facts: Facts, *, with_links: bool) -> Iterator[Name]:
    for region in dict.fromkeys(host.region for host in facts.hosts.values()):
        yield "region", region, None
    for stream in facts.owner:
        yield "stream", f"s{stream}", None
    if with_links:
        for link, direction in facts.periods:
            yield "link", link, direction


def _bins(table: pa.Table, facts: Facts) -> Ints:
    return (ints(table, "t_ns") - facts.zero_ns) // BIN_NS
