"""Background traffic, separate from the system's: its packets on each link, its figures, and its generators'
reports.

A packet is traffic if a traffic host is its source or destination; the receiver's port identifies the entry,
for acknowledgements, too. The system's costs exclude these packets; checks of links include them, since they
share the queue. Bytes include the headers of the segments in offloaded frames.

`arrived_bytes` is payload that crossed the last link of the path, each byte of TCP once; null where
routes may change. `sent_bytes`, `received_bytes`, `retransmissions` and `loss` (of datagrams) are the
generators' own figures.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from analysis.arrays import Ints, ints, looked_up, rows
from analysis.capture.pcap.fields import TCP, UDP
from analysis.timelines import schemas
from analysis.timelines.links.link_segments import KEY_COLUMNS, LinkSegments, segments
from analysis.timelines.links.periods import LinkDirection
from analysis.timelines.run_metadata import RunMetadata
from analysis.timelines.schemas import BIN_NS
from experiments.planned.plan import TRAFFIC_ROLE, TrafficPlan
from experiments.records.json_files import read_json
from experiments.records.rundir import RunDirectory
from topologies.errors import InputError

REPORT_BYTES_MAX = 64 << 20
NUMBER_MAX = 1 << 62
_SYSTEM, _NO_ENTRY = -1, -2
TELLING, SIZE = [0, 1, 2, 3, 4, 6], 6
"""Columns of a segment's key: addresses, ports, sequence number and size; and the index of the size."""


def system_packets(packets: pa.Table, metadata: RunMetadata) -> pa.Table:
    """Return the packets of a link (rows with `traversals.PACKET_COLUMNS`) without those of traffic hosts."""
    if not metadata.traffic:
        return packets
    return packets.filter(pa.array(_entries(packets, metadata) == _SYSTEM))


def carried_traffic(direction: LinkDirection, far: pa.Table, metadata: RunMetadata) -> pa.Table:
    """Return `schemas.TRAFFIC`: traffic of each entry in one direction of a link, per bin, from its far
    side.
    """
    if not metadata.traffic:
        return schemas.TRAFFIC.empty_table()
    entries = _entries(far, metadata)
    mine = far.filter(pa.array(entries >= 0))
    mtu_bytes = metadata.periods[direction][0].interface_mtu_bytes
    found = segments({name: ints(mine, name) for name in KEY_COLUMNS}, mtu_bytes)
    entry = entries[entries >= 0][found.row]
    bins = (ints(mine, "t_ns")[found.row] - metadata.zero_ns) // BIN_NS
    load = _load_bytes(mine, found, entry, metadata)
    parts = []
    for number, traffic in enumerate(metadata.traffic):
        its = entry == number
        there, place = np.unique(bins[its], return_inverse=True)
        sums = [
            np.bincount(place, values[its], len(there)).astype(np.int64)
            for values in (np.ones_like(load), found.wire_bytes, load)
        ]
        names = [pa.repeat(pa.scalar(name), len(there)) for name in (traffic.name, *map(str, direction))]
        parts.append(pa.table([*names, pa.array(there), *map(pa.array, sums)], schema=schemas.TRAFFIC))
    return pa.concat_tables(parts)


def _load_bytes(packets: pa.Table, found: LinkSegments, entry: Ints, metadata: RunMetadata) -> Ints:
    """Return, for each segment, its entry's payload towards the receiver; 0 for the generators' control
    traffic.

    A retransmitted TCP segment that arrived twice counts once.
    """
    protocol, payload, target = (
        ints(packets, name)[found.row] for name in ("proto", "payload_length", "dst_lo")
    )
    takers = _addresses(metadata, (each.target for each in metadata.traffic))
    wanted = np.array([TCP if each.protocol == "tcp" else UDP for each in metadata.traffic], np.int64)
    is_load = (protocol == wanted[entry]) & (target == takers[entry])
    _, first = np.unique(found.key[:, TELLING], axis=0, return_index=True)
    is_first = np.zeros(entry.size, np.bool_)
    is_first[first] = True
    size = np.where(protocol == TCP, found.key[:, SIZE] * is_first, payload)
    return np.where(is_load, size, 0)


def _entries(packets: pa.Table, metadata: RunMetadata) -> Ints:
    """Return the entry of each packet, _SYSTEM, or _NO_ENTRY for other packets of traffic hosts."""
    names = (name for name, host in metadata.hosts.items() if host.role == TRAFFIC_ROLE)
    hosts = _addresses(metadata, names)
    source, target = ints(packets, "src_lo"), ints(packets, "dst_lo")
    found = np.where(np.isin(source, hosts) | np.isin(target, hosts), _NO_ENTRY, _SYSTEM)
    ports = {burst.port: n for n, each in enumerate(metadata.traffic) for burst in each.bursts}
    senders = _addresses(metadata, (each.host for each in metadata.traffic))
    takers = _addresses(metadata, (each.target for each in metadata.traffic))
    for near, far, port in ((source, target, "dport"), (target, source, "sport")):
        entry = looked_up(ints(packets, port), ports)
        mine = (entry >= 0) & (near == senders[entry]) & (far == takers[entry])
        found = np.where(mine, entry, found)
    return found


def _addresses(metadata: RunMetadata, names: Iterable[str]) -> Ints:
    return np.array([int(ip_address(metadata.hosts[name].address)) for name in names], np.int64)


@dataclass(frozen=True, slots=True)
class BurstReport:
    """The generators' report of one burst. None: not reported."""

    sent_bytes: int | None = None
    received_bytes: int | None = None
    retransmissions: int | None = None
    lost: int | None = None
    datagrams: int | None = None
    problem: str = ""


def read_report(sender: Path, receiver: Path) -> BurstReport:
    """Return the report of a burst from both sides' files, which may be missing or truncated."""
    here, there = _content(sender), _content(receiver)
    received = _number(there, "end", "sum_received", "bytes")
    if received is None and not here.get("error"):
        received = _number(here, "end", "sum_received", "bytes")
    problem = here.get("error") or ("" if here.get("end") else "no report")
    return BurstReport(
        sent_bytes=_number(here, "end", "sum_sent", "bytes"),
        received_bytes=received,
        retransmissions=_number(here, "end", "sum_sent", "retransmits"),
        lost=_number(there, "end", "sum", "lost_packets"),
        datagrams=_number(there, "end", "sum", "packets"),
        problem=str(problem)[:200],
    )


def _content(path: Path) -> Mapping[str, Any]:
    try:
        if path.stat().st_size > REPORT_BYTES_MAX:
            return {"error": "its report is too large"}
        return read_json(path)
    except (OSError, InputError):
        return {}  # a note then states that the burst has no report


def _number(content: Any, *path: str) -> int | None:
    for part in path:
        content = content.get(part) if isinstance(content, Mapping) else None
    is_number = isinstance(content, int | float) and not isinstance(content, bool)
    return int(content) if is_number and 0 <= content < NUMBER_MAX else None


def read_reports(run: RunDirectory, metadata: RunMetadata) -> dict[str, list[BurstReport]]:
    """Return the reports of each entry's bursts, by name; only bursts planned to begin before the run
    ended.
    """
    return {
        each.name: [
            read_report(run.traffic_report(each.name, n), run.traffic_server_report(each.name, n))
            for n, burst in enumerate(each.bursts)
            if _seconds(burst.at_us, burst.length_s, metadata)
        ]
        for each in metadata.traffic
    }


def headline(
    reports: Mapping[str, Sequence[BurstReport]], crossed: pa.Table | None, metadata: RunMetadata
) -> dict[str, dict[str, Any]]:
    """Return `traffic` of summary.json, by name. crossed: rows of `schemas.TRAFFIC`; None: links not
    captured.
    """
    return {
        each.name: _headline(
            each, reports[each.name], None if crossed is None else rows(crossed, name=each.name), metadata
        )
        for each in metadata.traffic
    }


def _headline(
    traffic: TrafficPlan, reports: Sequence[BurstReport], crossed: pa.Table | None, metadata: RunMetadata
) -> dict[str, Any]:
    arrived = wan_bytes = None
    ends = metadata.hosts[traffic.host].region, metadata.hosts[traffic.target].region
    if crossed is not None and metadata.routes.get(ends) and metadata.rerouted is None:
        link, direction = metadata.link_of[metadata.routes[ends][-1]]
        arrived = int(ints(rows(crossed, link=link, direction=direction), "payload_bytes").sum())
        wan_bytes = int(ints(crossed, "bytes").sum())
    received = _sum(report.received_bytes for report in reports)
    came = received if arrived is None else arrived
    sending_s = sum(_seconds(burst.at_us, burst.length_s, metadata) for burst in traffic.bursts)
    lost, datagrams = (_sum(getattr(report, name) for report in reports) for name in ("lost", "datagrams"))
    return {
        "asked_bits_per_s": traffic.rate_bits_per_s,
        "achieved_bits_per_s": None if came is None or not sending_s else round(came * 8 / sending_s),
        "sent_bytes": _sum(report.sent_bytes for report in reports),
        "received_bytes": received,
        "arrived_bytes": arrived,
        "retransmissions": _sum(report.retransmissions for report in reports),
        "loss": round(lost / datagrams, 6) if lost is not None and datagrams else None,
        "wan_bytes": wan_bytes,
    }


def _seconds(at_us: int, length_s: int, metadata: RunMetadata) -> float:
    """Return how long a burst was to send before the run ended."""
    if metadata.stopped_ns is None:
        return float(length_s)
    return min(float(length_s), max(0.0, metadata.seconds(metadata.stopped_ns) - at_us / 1e6))


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def notes(reports: Mapping[str, Sequence[BurstReport]]) -> Iterator[str]:
    """Yield the generators' problems, a line for each entry."""
    for name, bursts in reports.items():
        problems = [report.problem for report in bursts if report.problem]
        if problems:
            often = f" ({len(problems)} of {len(bursts)} bursts)" if len(bursts) > 1 else ""
            yield f"traffic {name}: iperf3: {problems[0]}{often}"
