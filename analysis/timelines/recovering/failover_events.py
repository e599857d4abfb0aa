"""Servers' reactions to a fault: resubscribing to a stream, losing or regaining a peer, and changing
replicas.

Subscriptions are read from the packets of the server that sent them. Events that no packet shows (a peer
considered silent) are in the nodes' logs. Only the kinds of records named by the system's `Reading` are read,
and only from servers and coordinators; there are few of both.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analysis.arrays import rows
from analysis.messages.label import address_text, parse_key
from analysis.schemas import KEY_COLUMN
from analysis.timelines import schemas
from analysis.timelines.delivery.stream_paths import SourceHistory
from analysis.timelines.log_records import log_records
from analysis.timelines.recovering.passing import own_and_forwarded
from analysis.timelines.recovering.run_faults import RunFault
from analysis.timelines.run_metadata import RunMetadata
from experiments.declared import Trait
from experiments.records.rundir import RunDirectory
from node.core.declaration import Reading
from topologies.routes import Hop

WRITERS = (Trait.SERVER, Trait.COORDINATOR)
ACTS_MAX = 100_000
"""Largest number of events of one kind in a run; a system that subscribes more often is measured by its first
ones.
"""


class FailoverKind(Enum):
    """Kinds of failover events, independent of a system's names for them
    (`node.core.declaration.Reading`).
    """

    REROUTED = auto()  # requested a stream again: seen in packets
    MOVED = auto()  # reported a new source of a stream
    NOTICED = auto()  # gave a peer up, or received from it again
    RELAYED = auto()  # started or stopped sending to a peer through another host
    CONFIGURED = auto()  # decided the set of replicas
    REPLICAS = auto()  # another change of replicas


REPLICAS = (FailoverKind.CONFIGURED, FailoverKind.REPLICAS)


@dataclass(frozen=True, slots=True)
class FailoverEvent:
    """An action of a region's server, or of its coordinator, during a failover; `FailoverKind` is its kind.

    `peer` is the other region, `stream` the one concerned, if any; host and peer_host are the hosts of the
    processes. A configuration has its number, its chain from head to tail, and the joining process.
    """

    t_ns: int
    what: FailoverKind
    region: str
    peer: str | None
    stream: int | None
    number: int | None = None
    chain: tuple[str, ...] = ()
    joining: str | None = None
    host: str = ""
    peer_host: str | None = None
    relays: tuple[str, ...] = ()  # forwarders of RELAYED, starting with the next hop


def subscriptions(messages: pa.Table, metadata: RunMetadata) -> pa.Table:
    """Return `schemas.SUBSCRIPTIONS`: one server's requests, from its rows of `analysis.schemas.MESSAGES`."""
    sent = rows(messages, direction="out", type=metadata.reading.rerouted)
    sent = own_and_forwarded(sent, metadata)[0].slice(0, ACTS_MAX)
    stream = pc.coalesce(sent.column("stream"), _by_key(sent.column(KEY_COLUMN), metadata))
    columns = [sent.column("host"), sent.column("dst"), stream, sent.column("t_first_ns")]
    return pa.table(columns, schema=schemas.SUBSCRIPTIONS)


def _by_key(keys: pa.ChunkedArray, metadata: RunMetadata) -> pa.Array:
    """Return the streams that keys belong to."""
    coded = pc.dictionary_encode(keys.combine_chunks())
    streams = [metadata.stream_at.get(key) for key in coded.dictionary.to_pylist()]
    return pa.array(streams, pa.int32()).take(coded.indices)


def from_subscriptions(asked: pa.Table, metadata: RunMetadata) -> list[FailoverEvent]:
    """Return failover events from all rows of `subscriptions`."""
    region_at = {host.address: host.region for host in metadata.hosts.values()}
    return [
        FailoverEvent(
            row["t_ns"],
            FailoverKind.REROUTED,
            metadata.hosts[row["host"]].region,
            region_at.get(row["dst"]),
            row["stream"],
            host=row["host"],
            peer_host=metadata.host_at.get(row["dst"]),
        )
        for row in asked.to_pylist()
    ]


def from_logs(run: RunDirectory, metadata: RunMetadata) -> list[FailoverEvent]:
    """Return failover events from servers' and coordinators' logs, sorted by time. A missing log has none."""
    whats = _logged(metadata.reading)
    if not whats:
        return []
    hosts = [host for trait in WRITERS for host in metadata.having(trait)]
    found = [
        _act(record, whats[record["event"]], host, metadata)
        for host in hosts
        for record in log_records(run.log(host), tuple(whats))
    ]
    return sorted(found[:ACTS_MAX], key=lambda act: act.t_ns)


def sources(
    failover_events: Iterable[FailoverEvent], metadata: RunMetadata
) -> dict[int, dict[str, SourceHistory]]:
    """Return each stream's source per region, or per host (`RunMetadata.by_host`), as servers reported it."""
    acts = list(failover_events)
    rows: dict[int, dict[str, list[tuple[int, str]]]] = {}
    for act in acts:
        if act.what is FailoverKind.MOVED and act.stream is not None and act.peer is not None:
            place, source = (act.host, act.peer_host) if metadata.by_host else (act.region, act.peer)
            rows.setdefault(act.stream, {}).setdefault(place, []).append((act.t_ns, str(source)))
    if metadata.by_host:
        for stream, by_host in rows.items():
            _add_first(by_host, metadata.publishing_hosts(stream))
    if metadata.reading.relayed:
        relays = [act for act in acts if act.what is FailoverKind.RELAYED]
        rows = {
            stream: {host: _with_relays(host, parents, relays) for host, parents in by_host.items()}
            for stream, by_host in rows.items()
        }
    return {
        stream: {
            region: SourceHistory(
                np.array([t for t, _ in switches], np.int64), tuple(peer for _, peer in switches)
            )
            for region, switches in by_region.items()
        }
        for stream, by_region in rows.items()
    }


def _add_first(by_host: dict[str, list[tuple[int, str]]], publishers: Collection[str]) -> None:
    """Add the publisher as the source of each host that is a source and reported none itself."""
    named = {source for switches in by_host.values() for _, source in switches}
    if publishers:
        by_host |= {host: [(0, min(publishers))] for host in sorted(named - by_host.keys() - set(publishers))}


def _with_relays(
    host: str, parents: list[tuple[int, str]], relays: Sequence[FailoverEvent]
) -> list[tuple[int, str]]:
    """Return a host's sources with the relays in between: "relay parent", the nearest first."""
    changes: list[tuple[int, str, FailoverEvent | None]] = [(t_ns, parent, None) for t_ns, parent in parents]
    changes += [(act.t_ns, act.host, act) for act in relays if act.peer_host == host]
    found: list[tuple[int, str]] = []
    parent, through = "", dict[str, tuple[str, ...]]()
    for t_ns, name, act in sorted(changes, key=lambda change: change[0]):
        if act is None:
            parent = name
        else:
            through[name] = act.relays[::-1]
        if parent:
            found.append((t_ns, " ".join((*through.get(parent, ()), parent))))
    return found


def reactions_to_fault(
    failover_events: Iterable[FailoverEvent],
    fault: RunFault,
    end_ns: int,
    stream: int,
    region: str,
    *,
    struck: frozenset[str],
    routes: Mapping[Hop, tuple[Hop, ...]],
    hosts: Collection[str] | None = None,
) -> list[FailoverEvent]:
    """Return the reactions to this fault for this stream and region: after it and before `end_ns` (the next
    fault).

    Actions of the region's own proxy count if they concern the stream, or the connection to a region behind a
    link that the fault changed, or to one with a struck replica. Actions within a region with a struck
    replica, about its chain or a lost replica, count for all regions. hosts: the hosts on the path to a
    client, if paths lead from host to host; then their actions about the stream, or about each other, count.
    """
    mine = [act for act in failover_events if fault.t_ns <= act.t_ns < end_ns]
    if hosts is not None:
        return [
            act
            for act in mine
            if act.host in hosts and (act.stream == stream or (act.stream is None and act.peer_host in hosts))
        ]
    peers = peers_behind(fault, region, routes) | struck

    def concerns(act: FailoverEvent) -> bool:
        if act.region in struck and (act.what in REPLICAS or (act.stream is None and act.peer == act.region)):
            return True
        return act.region == region and (
            act.stream == stream if act.stream is not None else act.what not in REPLICAS and act.peer in peers
        )

    return [act for act in mine if concerns(act)]


def peers_behind(fault: RunFault, region: str, routes: Mapping[Hop, tuple[Hop, ...]]) -> set[str]:
    """Return the regions to or from which a region's packets cross a link that the fault changed."""
    traversal = [pair for pair, hops in routes.items() if region in pair and set(hops) & set(fault.hops)]
    return {b if a == region else a for a, b in traversal}


def chains(failover_events: Iterable[FailoverEvent], metadata: RunMetadata) -> pa.Table:
    """Return `schemas.CHAINS`: every configuration that a region's service decided, sorted by time."""
    rows_of = [
        {
            "region": act.region,
            "at_s": metadata.seconds(act.t_ns),
            "number": act.number,
            "chain": list(act.chain),
            "joining": act.joining,
        }
        for act in failover_events
        if act.what is FailoverKind.CONFIGURED and act.number is not None
    ]
    return pa.Table.from_pylist(rows_of, schema=schemas.CHAINS)


def _logged(reading: Reading) -> dict[str, FailoverKind]:
    """Return the kind of each log event that is read."""
    return {
        **dict.fromkeys(reading.noticed, FailoverKind.NOTICED),
        **dict.fromkeys(reading.relayed, FailoverKind.RELAYED),
        **dict.fromkeys(reading.membership, FailoverKind.REPLICAS),
        **dict.fromkeys(reading.membership[:1], FailoverKind.CONFIGURED),
        **({reading.moved: FailoverKind.MOVED} if reading.moved else {}),
    }


def _act(record: Mapping[str, Any], what: FailoverKind, host: str, metadata: RunMetadata) -> FailoverEvent:
    chain = record.get("chain")
    peer = metadata.hosts.get(_named(record.get("to") or record.get("peer"), metadata))
    return FailoverEvent(
        t_ns=metadata.clocks.clock_of_host(host).at(record["t_ns"]),
        what=what,
        region=metadata.hosts[host].region,
        peer=peer.region if peer else None,
        stream=_stream(record, metadata),
        number=record.get("number"),
        chain=tuple(map(str, chain)) if isinstance(chain, list) else (),
        joining=record.get("joining"),
        host=host,
        peer_host=peer.name if peer else None,
        relays=tuple(_relays(record, metadata)),
    )


def _relays(record: Mapping[str, Any], metadata: RunMetadata) -> Iterator[str]:
    """Yield the forwarders that a log names: the first one, and those after it."""
    further = record.get("further")
    for each in (record.get("relay"), *(further if isinstance(further, list) else ())):
        if name := _named(each, metadata):
            yield name


def _named(peer: Any, metadata: RunMetadata) -> str:
    """Return the host that a log identifies by its process's name or, if nodes know no names, by its
    address.
    """
    if isinstance(peer, int):
        return metadata.host_at.get(address_text(peer), "")
    return metadata.host_of.get(str(peer), "")


def _stream(record: Mapping[str, Any], metadata: RunMetadata) -> int | None:
    """Return the stream that a record is about, by its number or its topic's key."""
    topic = record.get("topic")
    if isinstance(topic, str) and metadata.stream_at:
        return metadata.stream_at.get(parse_key(topic))
    return record.get("stream")
