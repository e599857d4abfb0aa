"""Checks that counts from packets and from the nodes' own records agree if the captures are complete."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from analysis.arrays import rows
from analysis.timelines import schemas
from analysis.timelines.delivery.sequence_intervals import batches, common, digest, runs_by_host, total, union
from analysis.timelines.run_metadata import RunMetadata
from experiments.declared import Trait
from experiments.planned.plan import GATEWAY_ROLE, TRAFFIC_ROLE
from experiments.records.run_record import RunRecord
from node.core.deliveries import RecordKind

PUBLISHED = ""
"""Stands for the host in the row of `COVERAGE` with everything published on a stream."""
DISAGREEMENTS_MAX = 10


@dataclass(frozen=True, slots=True)
class Agreement:
    """Result of the comparison.

    held: whether the counts agree; None if nothing could be compared. `left_out`: hosts that were not
    compared, and why.
    """

    held: bool | None = None
    compared: int = 0  # (client, stream) pairs and streams
    disagreements: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def coverage(stream: int, events: pa.Table, got: pa.Table, metadata: RunMetadata) -> pa.Table:
    """Return `schemas.COVERAGE` from the events of one stream: per client, and for everything published.

    got: the clients' records of the stream. If subscribers also forward other subscribers' events, only
    events in their own records count in their packets. A publisher's delivery to itself appears in no packet,
    so its records of its own stream count.
    """
    arrived = rows(events, kind="arrived", role=metadata.declared.having(Trait.SUBSCRIBER))
    runs = runs_by_host(arrived, metadata.clients)
    if metadata.by_host:
        events_got = got.filter(pc.not_equal(got.column("kind"), int(RecordKind.SESSION)))
        recorded = runs_by_host(events_got, metadata.clients)
        own = metadata.publishing_hosts(stream)
        runs = {
            host: recorded[host] if host in own else common(have, recorded[host])
            for host, have in runs.items()
        }
    else:
        runs[PUBLISHED] = union(batches(rows(events, kind="published")))
    everything = metadata.declared.contract.audience == "all"
    return pa.Table.from_pylist(
        [
            {"host": host, "stream": stream, "events": total(have), "digest": digest(have)}
            for host, have in runs.items()
            if everything or len(have[0])
        ],
        schema=schemas.COVERAGE,
    )


def compare(
    packets: pa.Table,
    deliveries: pa.Table,
    metadata: RunMetadata,
    unfit: Mapping[str, str],
    reset: Collection[str] = (),
) -> Agreement:
    """Compare rows of `COVERAGE`, from packets, with rows of `DELIVERIES`, from the nodes' records.

    unfit: hosts whose captures are incomplete, and why. reset: from `reset_hosts`; their packets may show
    more.
    """
    seen = {(row["host"], row["stream"]): (row["events"], row["digest"]) for row in packets.to_pylist()}
    recorded = {}
    for row in deliveries.to_pylist():
        recorded[row["client"], row["stream"]] = (row["covered"], row["digest"])
        if not metadata.by_host:
            recorded[PUBLISHED, row["stream"]] = (row["published"], row["published_digest"])
    problems, compared = [], 0
    for key in sorted(set(seen) | set(recorded)):
        host, stream = key
        if host == PUBLISHED and key not in recorded:
            continue  # no client follows the stream
        concerned = _publishing(metadata, stream) if host == PUBLISHED else {host}
        if concerned.intersection(unfit):
            continue
        compared += 1
        from_packets, from_records = seen.get(key, (0, 0)), recorded.get(key, (0, 0))
        writers = {name for name in concerned if host != PUBLISHED or metadata.has(name, Trait.PUBLISHER)}
        may_be_unread = not metadata.whole or bool(writers.intersection(reset))
        if not _agree(from_packets, from_records, may_be_unread):
            problems.append(_disagreement(key, from_packets, from_records))
    left_out = [f"{host}: {reason}" for host, reason in sorted(unfit.items())]
    return Agreement(not problems if compared else None, compared, problems[:DISAGREEMENTS_MAX], left_out)


def damaged_hosts(record: RunRecord, decoding: pa.Table, captures: pa.Table) -> dict[str, str]:
    """Return the hosts with incomplete captures, and why. decoding, captures: tables of analysis.schemas.

    Bytes missing from a complete capture never reached the host: after a cut, a broken connection may send
    remaining data once the link is back, after permanently lost bytes. How programs split events into
    messages is unknown, and only clients' deliveries are checked, so undecodable events in the packets of
    other programs do not count as damage.
    """
    declared = record.plan.declared
    malformed: Counter[str] = Counter()
    for row in decoding.to_pylist():
        malformed[row["host"]] += row["malformed"]
    clients = {
        process.host
        for process in record.plan.processes
        if declared.has(process.role, Trait.SUBSCRIBER) or declared.has(process.role, Trait.PUBLISHER)
    }
    found = {
        host: f"its capture holds messages that could not be decoded ({count})"
        for host, count in malformed.items()
        if count and (host in clients or not declared.shows_events)
    }
    broken = {row["capture"]: row["problem"] for row in captures.to_pylist() if row["problem"]}
    for capture in record.listed_captures:
        stem = capture.name.removesuffix(".pcap")
        if capture.host and stem in broken:
            found[capture.host] = f"its capture is damaged: {broken[stem]}"
    return found


def reset_hosts(decoding: pa.Table) -> frozenset[str]:
    """Return the hosts at which either end reset a connection. decoding: table of analysis.schemas.

    A program may not have read everything that its kernel received (RFC 9293 3.10.7.4). If it writes first,
    it learns of the reset before it reads.
    """
    reset = decoding.filter(pc.field("reset") & (pc.field("bytes") > 0))
    return frozenset(reset.column("host").to_pylist())


def unfit_hosts(record: RunRecord, metadata: RunMetadata, damaged: Mapping[str, str]) -> dict[str, str]:
    """Return the hosts whose packets and records cannot be compared, and why. damaged: from
    `damaged_hosts`.
    """
    captures = [capture for capture in record.listed_captures if capture.host]
    without_drops = {capture.host for capture in captures if capture.kernel_drops == 0}
    nodes = {name for name, host in metadata.hosts.items() if host.role not in {GATEWAY_ROLE, TRAFFIC_ROLE}}
    return {
        **dict.fromkeys(nodes - without_drops, "its capture dropped packets, or did not report drops"),
        **dict.fromkeys(nodes - {capture.host for capture in captures}, "it was not captured"),
        **dict.fromkeys(metadata.disturbed, "its process did not run from beginning to end"),
        **damaged,
    }


def _publishing(metadata: RunMetadata, stream: int) -> set[str]:
    """Return the proxies and drivers whose captures must be complete to know what a stream published."""
    if stream not in metadata.owner:
        return set()
    servers = metadata.of_region(metadata.owner[stream], Trait.SERVER)
    return {*metadata.publishing_hosts(stream), *servers}


def _agree(packets: tuple[int, int], records: tuple[int, int], may_be_unread: bool) -> bool:
    if packets == records or (packets[0] == records[0] == 0):
        return True
    return may_be_unread and packets[0] > records[0]


def _disagreement(key: tuple[str, int], packets: tuple[int, int], records: tuple[int, int]) -> str:
    who = f"{key[0]} got" if key[0] else "were published"
    how = "but not the same ones" if packets[0] == records[0] else ""
    return f"stream s{key[1]}: {packets[0]} events {who} by packets, {records[0]} by records {how}".rstrip()
