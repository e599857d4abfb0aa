"""The path of a stream to a host at any time, if subscribers forward events themselves.

Then a region has no single source: two of its hosts may be at different places of a tree. A host's source is
the host that sent it its last new event, including the forwarders in between. Repeated events (replayed,
replicated) show no source. Paths lead from host to host back to the publisher, and are reported as the
regions they cross, as other paths are.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import pairwise

import numpy as np
import pyarrow as pa

from analysis.arrays import codes, ints, rows
from analysis.timelines.delivery.stream_paths import SourceHistory, changes
from analysis.timelines.run_metadata import RunMetadata
from topologies.routes import Hop

BETWEEN_MAX = 8
HOSTS_MAX = 64  # on a path; a longer path is a loop


def host_sources(events: pa.Table, metadata: RunMetadata) -> dict[str, SourceHistory]:
    """Return each host's sources of one stream, as forwarders and sender, nearest first; from
    `schemas.EVENTS`.
    """
    arrived = rows(events, kind="arrived")
    hosts = list(metadata.hosts)
    host, t_ns = codes(arrived.column("host"), hosts), ints(arrived, "t_ns")
    end = ints(arrived, "first_seq") + ints(arrived, "count")
    passed = _passed(events)
    by = [
        " ".join((*_between(via, peer, seq, passed), peer or "")).strip()
        for via, peer, seq in zip(
            *(arrived.column(name).to_pylist() for name in ("via", "peer", "first_seq")), strict=True
        )
    ]
    names, order = np.array([*by, ""], object)[:-1], np.lexsort((t_ns, host))
    found = {}
    for mine in np.split(order, np.flatnonzero(np.diff(host[order])) + 1) if len(order) else ():
        reach = np.maximum.accumulate(end[mine])
        new = mine[np.append(True, reach[1:] > reach[:-1])]
        new = new[names[new] != ""]
        found[hosts[host[mine[0]]]] = changes(t_ns[new], names[new])
    return found


Passed = Mapping[tuple[str, int], list[str]]
"""The previous hosts of a forwarded event, by forwarder and first sequence number."""


def _passed(events: pa.Table) -> Passed:
    found: dict[tuple[str, int], list[str]] = {}
    table = rows(events, kind="passed")
    for host, peer, seq in zip(
        *(table.column(name).to_pylist() for name in ("host", "peer", "first_seq")), strict=True
    ):
        if peer and peer not in found.setdefault((host, seq), []):
            found[host, seq].append(peer)
    return found


def _between(via: str | None, peer: str | None, seq: int, passed: Passed) -> Iterator[str]:
    """Yield the forwarders of an event, nearest first. Each one's own packets show its predecessor."""
    between: list[str] = []
    while via is not None and len(between) < BETWEEN_MAX:
        between.append(via)
        yield via
        before = passed.get((via, seq), [])
        others = [each for each in before if (each, seq) in passed and each not in between]
        via = others[0] if others and peer not in before else None


def hosts_to(
    sources: Mapping[str, SourceHistory], publishers: Collection[str], host: str, t_ns: int
) -> tuple[str, ...] | None:
    """Return the hosts of the stream's path to a host just before `t_ns`, publisher first; None if
    unknown.
    """
    way = [host]
    while way[-1] not in publishers:
        source = sources[way[-1]].before(t_ns) if way[-1] in sources else None
        if source is None or len(way) > HOSTS_MAX:
            return None
        way += source.split()
    return tuple(reversed(way))


def hops_of(hosts: Iterable[str], metadata: RunMetadata) -> tuple[Hop, ...]:
    """Return the hops from region to region along a path of hosts."""
    regions = [metadata.hosts[host].region for host in hosts]
    return tuple(hop for hop in pairwise(regions) if hop[0] != hop[1])
