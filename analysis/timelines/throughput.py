"""Throughput in bins: per region and per stream at clients, per WAN link and direction from packets.

Events of a region are those that arrived at its clients, from any source, divided by the number of clients.
Events of a stream are those that arrived at any client, divided by the number of clients that are to get it
in that bin (`expected`). Events of a link are those that proxies at its two ends sent each other. Bytes of a
link are those that arrived on the far side of its emulator, on the wire, without background traffic
(`traffic`). Each host and each link is summed separately; `table` combines the sums (bins times names) from
time 0, before which nodes connect and probe, to the end of the run: later times (`run_window`) have no bin.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analysis.arrays import Bools, Floats, Ints, codes, ints, looked_up, rows
from analysis.timelines import schemas
from analysis.timelines.delivery.epochs import epoch_layout
from analysis.timelines.delivery.sequence_intervals import in_group_spans, repeats
from analysis.timelines.links.periods import LinkDirection
from analysis.timelines.run_metadata import RunMetadata
from analysis.timelines.schemas import BIN_NS
from experiments.declared import Trait
from node.core.deliveries import RecordKind

Name = tuple[str, str, str | None]
"""Scope, name and direction of a timeline."""


def arrivals(events: pa.Table, metadata: RunMetadata) -> pa.Table:
    """Return `schemas.ARRIVALS`: first arrivals of events, with bytes, by region, source, stream and bin.

    events: rows of `schemas.EVENTS`, each host's sorted by time. If several neighbours send a client the same
    event, it counts once.
    """
    arrived = rows(events, kind="arrived")
    arrived = epoch_layout([arrived]).laid_out(arrived)
    hosts = pc.unique(arrived.column("host")).to_pylist()
    place = codes(arrived.column("host"), hosts) + len(hosts) * ints(arrived, "stream")
    batches = in_group_spans(place, ints(arrived, "first_seq"), ints(arrived, "count"))
    subscribers = pa.array(metadata.declared.having(Trait.SUBSCRIBER), pa.string())
    at_client = pc.is_in(arrived.column("role"), value_set=subscribers).to_numpy()
    new = np.minimum(ints(arrived, "events"), batches.count - np.where(at_client, repeats(batches), 0))
    size = pc.fill_null(arrived.column("bytes"), 0)
    return binned(arrived, metadata, new, size=size, peer=arrived.column("peer"), at_client=at_client)


def arrivals_of_records(records: pa.Table, metadata: RunMetadata) -> pa.Table:
    """Return `schemas.ARRIVALS` of clients' rows of `schemas.RECORDS`: events, not tombstones."""
    got = rows(records, kind=(RecordKind.DELIVERED, RecordKind.SPARSE))
    events = ints(got, "count")
    size = (
        pa.array(events * metadata.event_bytes) if metadata.event_bytes else pa.nulls(len(events), pa.int64())
    )
    return binned(got, metadata, events, size=size)


def binned(
    arrived: pa.Table,
    metadata: RunMetadata,
    events: Ints,
    *,
    size: pa.Array | None = None,
    peer: pa.ChunkedArray | None = None,
    at_client: Bools | None = None,
) -> pa.Table:
    """Return `schemas.ARRIVALS`: rows with a host, a stream and a time, summed by region and bin.

    events: that arrived with each row for the first time. size: their bytes, if known. peer: the host that
    sent them, if known. at_client: which rows are clients'; None: all.
    """
    nowhere = pa.nulls(len(events), pa.string())
    rows = pa.table(
        {
            "region": _regions(arrived.column("host"), metadata),
            "source": nowhere if peer is None else _regions(peer, metadata, Trait.SERVER),
            "at_client": np.ones(len(events), bool) if at_client is None else at_client,
            "stream": arrived.column("stream"),
            "bin": _bins(arrived, metadata),
            "events": events,
            "bytes": pa.nulls(len(events), pa.int64()) if size is None else size,
        }
    )
    sums = rows.group_by(_PLACES, use_threads=False).aggregate([("events", "sum"), ("bytes", "sum")])
    return pa.table([sums.column(name) for name in (*_PLACES, "events_sum", "bytes_sum")], schemas.ARRIVALS)


_PLACES = ["region", "source", "at_client", "stream", "bin"]


def _regions(hosts: pa.ChunkedArray, metadata: RunMetadata, *traits: Trait) -> pa.Array:
    """Return the region of each host; null if it is not a host of the run, or has none of these traits."""
    named = hosts.combine_chunks().dictionary_encode()
    known = [
        metadata.hosts[name].region
        if name in metadata.hosts and (not traits or metadata.has(name, *traits))
        else None
        for name in named.dictionary.to_pylist()
    ]
    return pa.array(known, pa.string()).take(named.indices)


def wire(traversed: LinkDirection, far: pa.Table, metadata: RunMetadata) -> pa.Table:
    """Return `schemas.WIRE`: the system's bytes per bin in one direction of a link, from its far side."""
    bins, index = np.unique(_bins(far, metadata), return_inverse=True)
    size = np.bincount(index, ints(far, "wire_length"), minlength=len(bins)).astype(np.int64)
    link, direction = (pa.repeat(pa.scalar(part), len(bins)) for part in traversed)
    return pa.table([link, direction, pa.array(bins), pa.array(size)], schema=schemas.WIRE)


def table(
    arrived: pa.Table,
    carried: pa.Table | None,
    metadata: RunMetadata,
    followed: pa.Table | None = None,
    traffic: pa.Table | None = None,
) -> pa.Table:
    """Return `schemas.THROUGHPUT` from all rows of `arrivals` and of `wire` (None: links were not captured).

    traffic: rows of `schemas.TRAFFIC`, if the run has any. followed: rows of `schemas.FOLLOWED`; None: all
    clients are to get all streams. The last bin is the last one within the run with any arrivals.
    """
    names = list(_names(metadata, with_links=carried is not None))
    number_of = {name: number for number, name in enumerate(names)}
    shares = _shares(arrived, metadata, number_of)
    wires = _wires(carried, number_of) if carried is not None else _Shares.nothing()
    others = _wires(traffic, number_of) if traffic is not None else _Shares.nothing()
    bins = 1 + max(each.last(metadata) for each in (shares, wires, others))
    events, size = shares.summed(len(names), range(bins))
    for part in (events, size):
        _divide_streams(part, names, followed, metadata)
    on_wire, _ = wires.summed(len(names), range(bins))
    is_link = np.array([name[0] == "link" for name in names], bool)
    size[is_link] = on_wire[is_link]
    of_others, _ = others.summed(len(names), range(bins))
    unknown = np.repeat(~is_link | (traffic is None), bins)
    bin_s, starts_ns = BIN_NS / 1e9, np.arange(bins) * BIN_NS
    places = np.repeat(np.arange(len(names)), bins)
    return pa.table(
        [
            *(pa.array(column, pa.string()).take(pa.array(places)) for column in _columns(names)),
            pa.array(np.tile(starts_ns / 1e9, len(names))),
            pa.array(np.full(len(places), bin_s)),
            pa.array(events.ravel() / bin_s),
            pa.array(size.ravel() / bin_s),
            pa.array(of_others.ravel() / bin_s, mask=unknown),
        ],
        schema=schemas.THROUGHPUT,
    )


def region_rates(arrived: pa.Table, metadata: RunMetadata, bins: range) -> dict[str, Floats]:
    """Return the events a second at one client of each region in some bins, from rows of
    `schemas.ARRIVALS`.
    """
    regions = _region_names(metadata)
    shares = _shares(arrived, metadata, {("region", name, None): at for at, name in enumerate(regions)})
    events, _ = shares.summed(len(regions), bins)
    return dict(zip(regions, events / (BIN_NS / 1e9), strict=True))


@dataclass(frozen=True, slots=True)
class _Shares:
    """Contributions to the sum of a name (by its number) in a bin, which may have many."""

    name: Ints
    number: Ints  # of the bin
    events: Floats
    bytes: Floats

    @classmethod
    def nothing(cls) -> Self:
        nothing = np.zeros(0, np.int64)
        return cls(nothing, nothing, nothing.astype(float), nothing.astype(float))

    def last(self, metadata: RunMetadata) -> int:
        """Return the last bin within the run, or -1."""
        within = metadata.window.holds(metadata.zero_ns + self.number * BIN_NS)
        return int(self.number[within].max(initial=-1))

    def summed(self, names: int, bins: range) -> tuple[Floats, Floats]:
        """Return the sums of events and bytes: a row for each name, a column for each bin."""
        within = (self.number >= bins.start) & (self.number < bins.stop) & (self.name >= 0)
        cells = self.name[within] * len(bins) + self.number[within] - bins.start
        events, size = (
            np.bincount(cells, part[within], names * len(bins)).astype(float).reshape(names, len(bins))
            for part in (self.events, self.bytes)
        )
        return events, size


def _shares(arrived: pa.Table, metadata: RunMetadata, number_of: Mapping[Name, int]) -> _Shares:
    """Return the contributions of rows of `schemas.ARRIVALS`.

    An arrival at a client counts for its region and for the stream, one at a proxy from another region's
    proxy for the link between the two.
    """
    regions = [name for scope, name, _ in number_of if scope == "region"]
    here, there = (codes(arrived.column(column), regions) for column in ("region", "source"))
    of_region = [metadata.hosts[name].region for name in metadata.clients]
    clients = np.bincount([regions.index(name) for name in of_region], minlength=len(regions))
    at_client = arrived.column("at_client").to_numpy()
    stream = looked_up(
        ints(arrived, "stream"), {s: number_of.get(("stream", f"s{s}", None), -1) for s in metadata.owner}
    )
    links = {
        regions.index(a) * len(regions) + regions.index(b): number_of["link", *direction]
        for (a, b), direction in metadata.direct.items()
        if ("link", *direction) in number_of
    }
    link = np.where(there >= 0, looked_up(there * len(regions) + here, links), -1)
    first, second = np.where(at_client, here, link), np.where(at_client, stream, -1)
    among = np.where(at_client, clients[here], 1)
    number, events = ints(arrived, "bin"), ints(arrived, "events").astype(float)
    size = pc.fill_null(arrived.column("bytes"), 0).to_numpy().astype(float)
    return _Shares(
        np.concatenate((first, second)),
        np.concatenate((number, number)),
        np.concatenate((events / among, events)),
        np.concatenate((size / among, size)),
    )


def _divide_streams(
    found: Floats, names: Sequence[Name], followed: pa.Table | None, metadata: RunMetadata
) -> None:
    """Divide the sums of streams (rows of `found`, by bin) by the clients that are to get them at the
    time.
    """
    rows_of = np.array([number for number, name in enumerate(names) if name[0] == "stream"], np.int64)
    if followed is None:
        found[rows_of] /= max(1, len(metadata.clients))
        return
    bins = found.shape[1]
    place = looked_up(ints(followed, "stream"), {s: at for at, s in enumerate(metadata.owner)})
    change = np.zeros((len(rows_of), bins + 1), np.int64)
    first, end = (np.clip(ints(followed, name), -1, bins) for name in ("first_bin", "last_bin"))
    np.add.at(change, (place, np.maximum(first, 0)), ints(followed, "clients"))
    np.add.at(change, (place, np.minimum(end + 1, bins)), -ints(followed, "clients"))
    found[rows_of] /= np.maximum(1, np.cumsum(change, axis=1)[:, :bins])


def _wires(carried: pa.Table, number_of: Mapping[Name, int]) -> _Shares:
    """Return the contributions of rows of `schemas.WIRE`: bytes, also in place of events."""
    directions = zip(*(carried.column(name).to_pylist() for name in ("link", "direction")), strict=True)
    name = np.array([number_of.get(("link", *direction), -1) for direction in directions], np.int64)
    size = ints(carried, "bytes").astype(float)
    return _Shares(name, ints(carried, "bin"), size, size)


def _columns(names: Sequence[Name]) -> list[list[str | None]]:
    return [[name[part] for name in names] for part in range(3)]


def _names(metadata: RunMetadata, *, with_links: bool) -> Iterator[Name]:
    for region in _region_names(metadata):
        yield "region", region, None
    for stream in metadata.owner:
        yield "stream", f"s{stream}", None
    if with_links:
        for link, direction in metadata.periods:
            yield "link", link, direction


def _region_names(metadata: RunMetadata) -> list[str]:
    return list(dict.fromkeys(host.region for host in metadata.hosts.values()))


def _bins(table: pa.Table, metadata: RunMetadata) -> Ints:
    return (ints(table, "t_ns") - metadata.zero_ns) // BIN_NS
