"""Names the clients that never received a stream again after the last change, and the last packet that each
received from the stream's last source.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from analysis.timelines.run_metadata import RunMetadata
from experiments.planned.plan import Plan
from topologies.group_membership import END_GROUP, FIRST_GROUP, IGMP
from topologies.routes import Hop

NAMED_MAX = 5
"""Largest number of clients that are named, each with one stream."""


@dataclass(frozen=True, slots=True)
class CapturedHost:
    """A host, and the name of its capture's file without suffix."""

    name: str
    capture: str


def captured_hosts(plan: Plan) -> dict[int, CapturedHost]:
    """Return the hosts of a run that were captured, by their numeric addresses."""
    captures = {each.host: each.file.removesuffix(".pcap") for each in plan.captures if each.host}
    return {
        int(ip_address(host.address)): CapturedHost(host.name, captures[host.name])
        for host in plan.hosts
        if host.name in captures
    }


def between_regions(rows: pa.Table, metadata: RunMetadata) -> frozenset[Hop]:
    """Return the owner and the client's region of each stalled stream. rows: `schemas.CONVERGENCE`."""
    ends = ((metadata.owner[row["stream"]], metadata.hosts[row["client"]].region) for row in _stalled(rows))
    return frozenset((owner, region) for owner, region in ends if owner != region)


def notes(
    rows: pa.Table,
    packets: Path,
    events: Path | None,
    hosts: Mapping[int, CapturedHost],
    metadata: RunMetadata,
) -> Iterator[str]:
    """Yield a note on each stalled client.

    rows: `schemas.CONVERGENCE`. packets: the table of packets. events: the folder of the hosts' events; None
    if packets show none. hosts: the captured ones, by numeric address.
    """
    stalled = _stalled(rows)
    for row in stalled[:NAMED_MAX]:
        client, stream = row["client"], metadata.stream_names.get(row["stream"], f"stream {row['stream']}")
        last_ns = row["last_event_ns"]
        since = "at all" if last_ns is None else f"after {metadata.seconds(last_ns):.2f} s"
        source = None if events is None else _last_source(events / f"{client}.parquet", row["stream"])
        packet = _last_packet(packets, client, source, hosts)
        seen = "" if packet is None else f"; {_packet_text(packet, source, metadata)}"
        yield f"stalled: {client} got no event of {stream} {since}{seen}"
    if len(stalled) > NAMED_MAX:
        more = len(stalled) - NAMED_MAX
        yield f"stalled: {more} more streams of clients (table convergence, flows_ns is null)"


def _stalled(rows: pa.Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = rows.filter(pc.is_null(rows.column("flows_ns"))).to_pylist()
    return found


def _packet_text(packet: tuple[int, str], source: str | None, metadata: RunMetadata) -> str:
    t_ns, host = packet
    whose = f"from {host}" if source else f"of all, from {host},"
    return f"the last packet {whose} reached it at {metadata.seconds(t_ns):.2f} s"


def _last_source(events: Path, stream: int) -> str | None:
    """Return the host that sent a client its last event of a stream; None if there was none."""
    if not events.is_file():
        return None
    mine = (pc.field("stream") == stream) & (pc.field("kind") == "arrived")
    came = pq.read_table(events, columns=["t_ns", "peer", "via"], filters=mine)
    if not came.num_rows:
        return None
    last = came.sort_by("t_ns").slice(came.num_rows - 1).to_pylist()[0]
    return str(last["via"] or last["peer"]) if last["via"] or last["peer"] else None


def _last_packet(
    packets: Path, client: str, source: str | None, hosts: Mapping[int, CapturedHost]
) -> tuple[int, str] | None:
    """Return when the client's last packet arrived from a host, or from any, and from which."""
    mine = next((address for address, host in hosts.items() if host.name == client), None)
    if mine is None or not packets.exists():
        return None
    target = pc.field("dst_lo")
    to_group = (target >= FIRST_GROUP) & (target < END_GROUP) & (pc.field("proto") != IGMP)
    to_mine = (target == mine) | (to_group & (pc.field("src_lo") != mine))
    wanted = (pc.field("capture") == hosts[mine].capture) & to_mine
    if source is not None:
        wanted &= pc.field("src_lo").isin([address for address, host in hosts.items() if host.name == source])
    came = pq.read_table(packets, columns=["t_ns", "src_lo"], filters=wanted)
    if not came.num_rows:
        return None
    last = came.take(pc.sort_indices(came, [("t_ns", "descending")])[:1]).to_pylist()[0]
    return last["t_ns"], hosts[last["src_lo"]].name if last["src_lo"] in hosts else "elsewhere"
