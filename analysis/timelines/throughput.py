"""Throughput in bins: per region and per stream as clients see it, per WAN link and direction as packets show
it.

Events of a region are those that arrived at its clients, divided by their number; of a stream, those that
arrived at any client, divided by the number of all; of a link, those that proxies at its two ends sent each
other. Bytes of a link are what arrived on the far side of its middle, on the wire. The steps are Spark
aggregations whose results (bins times names) are small; `table` fills the bins in which nothing happened with
0.
"""

from collections import defaultdict
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  (PySpark's own convention)

from analysis.timelines import schemas
from analysis.timelines.facts import Facts
from analysis.timelines.schemas import BIN_NS

Bin = tuple[str, str, str | None, int]
"""Scope, name, direction, and number of the bin since time 0."""


def arrivals(events: DataFrame, facts: Facts) -> DataFrame:
    """Arrived events and bytes per (role, region, peer's region, stream, bin)."""
    rows = [(host.name, host.region, host.role) for host in facts.hosts.values()]
    peers = events.sparkSession.createDataFrame(rows, "peer string, peer_region string, peer_role string")
    return (
        events.where("kind = 'arrived'")
        .join(F.broadcast(peers), "peer", "left")
        .groupBy("role", "region", "peer_region", "peer_role", "stream", _bin(facts).alias("bin"))
        .agg(F.sum("count").alias("events"), F.sum("bytes").alias("bytes"))
    )


def wire(crossing: DataFrame, facts: Facts) -> DataFrame:
    """Bytes on the wire per (link, direction, bin) from rows of `crossings.COLUMNS`."""
    return (
        crossing.where("far")
        .groupBy("link", "direction", _bin(facts).alias("bin"))
        .agg(F.sum("wire_length").cast("bigint").alias("bytes"))
    )


def table(arrived: pa.Table, carried: pa.Table | None, facts: Facts) -> pa.Table:
    """`schemas.THROUGHPUT` from the collected rows of `arrivals` and of `wire` (None: links were not
    captured).
    """
    events = _per_name(arrived, facts)
    wire_bytes = {}
    for row in carried.to_pylist() if carried is not None else ():
        wire_bytes["link", row["link"], row["direction"], row["bin"]] = row["bytes"]
    known = [key[3] for key in (*events, *wire_bytes)]
    rows = []
    for scope, name, direction in _names(facts, with_links=carried is not None):
        for number in range(min([0, *known]), max([-1, *known]) + 1):
            key = (scope, name, direction, number)
            count, size = events.get(key, (0.0, 0.0))
            rows.append(_row(key, count, wire_bytes.get(key, 0.0) if scope == "link" else size))
    return pa.Table.from_pylist(rows, schema=schemas.THROUGHPUT)


def _per_name(arrived: pa.Table, facts: Facts) -> dict[Bin, tuple[float, float]]:
    """Events and bytes of every name that an arrival counts for."""
    clients = [facts.hosts[name].region for name in facts.clients]
    found: dict[Bin, tuple[float, float]] = defaultdict(lambda: (0.0, 0.0))
    for row in arrived.to_pylist():
        shares: list[tuple[Bin, int]] = []
        if row["role"] == "client":
            shares.append((("region", row["region"], None, row["bin"]), clients.count(row["region"])))
            shares.append((("stream", f"s{row['stream']}", None, row["bin"]), len(clients)))
        elif row["peer_role"] == "proxy":
            way = facts.link_of.get((row["peer_region"], row["region"]))
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


def _bin(facts: Facts) -> Column:
    return F.floor((F.col("t_ns") - F.lit(facts.zero_ns)) / F.lit(BIN_NS)).cast("int")
