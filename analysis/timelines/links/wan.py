"""Costs of a run on the links between regions: messages, bytes, and copies of an event on the same link.

The stress of a link is the number of messages that crossed it in one direction. A system that sends an event
to a region once crosses each link with one copy of it; a tree of hosts crosses it once per tree edge there.
Messages are counted on arrival at the next host, whether for that host or to be forwarded; datagrams to a
multicast group, which cross a link once, at each of its members.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analysis.arrays import Ints, codes, ints, rows
from analysis.timelines import schemas
from analysis.timelines.delivery.sequence_intervals import Batches, incidences, total, union, untimed
from analysis.timelines.links.periods import LinkDirection
from analysis.timelines.run_metadata import Host, RunMetadata

CROSSED = ("arrived", "passed", "published")


def messages_over_links(messages: pa.Table, host: Host, metadata: RunMetadata) -> pa.Table:
    """Return `schemas.WAN_MESSAGES`: messages that arrived at one host over links."""
    came = rows(messages, direction="in")
    region_at = {each.address: each.region for each in metadata.hosts.values()}
    found: dict[LinkDirection, list[int]] = {}
    for sources in came.group_by("src").aggregate([([], "count_all"), ("length", "sum")]).to_pylist():
        for link in _links(region_at.get(sources["src"]), host.region, metadata):
            count, size = found.setdefault(link, [0, 0])
            found[link] = [count + sources["count_all"], size + sources["length_sum"]]
    listed = [(*link, *numbers) for link, numbers in found.items()]
    return _table(listed, schemas.WAN_MESSAGES)


def copies_over_links(events: pa.Table, metadata: RunMetadata) -> pa.Table:
    """Return `schemas.WAN_COPIES`: how often events of one stream crossed links, from `schemas.EVENTS`."""
    kinds = CROSSED[:2] if metadata.by_host else CROSSED  # by host, published events are also arrivals
    crossed = rows(events, kind=kinds)
    hosts = list(metadata.hosts)
    regions = [*(each.region for each in metadata.hosts.values()), None]
    here, there = (
        codes(column, hosts)
        for column in (crossed.column("host"), pc.coalesce(crossed.column("via"), crossed.column("peer")))
    )
    by_link: dict[LinkDirection, list[Ints]] = {}
    pairs, place = np.unique(np.stack((there, here)), axis=1, return_inverse=True)
    for number, (sender, taker) in enumerate(pairs.T.tolist()):
        for link in _links(regions[sender], regions[taker], metadata):
            by_link.setdefault(link, []).append(np.flatnonzero(place.ravel() == number))
    first_seq, count, stream = (ints(crossed, name) for name in ("first_seq", "count", "stream"))
    found = []
    for link, places in by_link.items():
        mine = np.concatenate(places)
        batches = untimed(first_seq[mine], count[mine])
        runs = (int(stream[mine[0]]), int(count[mine].sum()), total(union(batches)), most_copies(batches))
        found.append((*link, *runs))
    return _table(found, schemas.WAN_COPIES)


def most_copies(batches: Batches) -> int:
    """Return the largest number of batches with the same sequence number."""
    edges = np.unique(np.concatenate((batches.first_seq, batches.end_seq)))
    pieces, _ = incidences(edges, batches)
    return int(np.bincount(pieces).max(initial=0))


def table(messages: pa.Table, copies: pa.Table) -> pa.Table:
    """Return `schemas.WAN`: a row per direction of a link that messages crossed, from all rows of both
    tables.
    """
    key = ["link", "direction"]
    sent = messages.group_by(key).aggregate([("messages", "sum"), ("bytes", "sum")])
    held = copies.group_by(key).aggregate([("copies", "sum"), ("distinct", "sum"), ("most", "max")])
    both = sent.join(held, key, join_type="left outer").sort_by([(name, "ascending") for name in key])
    names = [name if name in key else name.rpartition("_")[0] for name in both.column_names]
    both = both.rename_columns(names)
    columns = [pc.fill_null(both.column(field.name), 0) if field.name not in key else both.column(field.name)
               for field in schemas.WAN]  # fmt: skip
    return pa.table(columns, schema=schemas.WAN)


def headline(crossed: pa.Table, on_wire: pa.Table | None) -> dict[str, Any]:
    """Return the figures of summary.json. on_wire: rows of `schemas.WIRE`; None: links were not captured."""
    if not crossed.num_rows:
        return dict.fromkeys(("messages", "bytes", "stress_max", "copies_mean", "copies_max"))
    sums = {name: int(ints(crossed, name).sum()) for name in ("messages", "copies", "distinct")}
    return {
        "messages": sums["messages"],
        "bytes": None if on_wire is None else int(ints(on_wire, "bytes").sum()),
        "stress_max": int(ints(crossed, "messages").max()),
        "copies_mean": round(sums["copies"] / sums["distinct"], 3) if sums["distinct"] else None,
        "copies_max": int(ints(crossed, "most").max()) or None,
    }


def _links(sender: str | None, taker: str | None, metadata: RunMetadata) -> Iterator[LinkDirection]:
    """Yield the directions of links that packets between two regions cross."""
    if sender is not None and taker is not None and sender != taker:
        for hop in metadata.routes.get((sender, taker), ()):
            yield metadata.link_of[hop]


def _table(listed: list[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in listed], schema)
