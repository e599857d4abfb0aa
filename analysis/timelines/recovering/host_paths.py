"""The path of a stream to a host at any time, where those who take events pass them on themselves.

Then a region has no single source: two of its hosts may be in different places of a tree. A host's source is
the host that sent it the last event which was new to it, and what came through another host came by way of
that. What comes again (replayed, replicated) is no source. Paths lead from host to host back to whoever
published, and are told by the regions they lead through, as others are.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import pairwise

import numpy as np
import pyarrow as pa

from analysis.timelines.arrays import codes, ints, rows
from analysis.timelines.delivery.stream_paths import Sources, changes
from analysis.timelines.run_metadata import RunMetadata
from topologies.routes import Hop

BETWEEN_MAX = 8
HOSTS_MAX = 64  # on a path; a longer one is a loop


def host_sources(events: pa.Table, metadata: RunMetadata) -> dict[str, Sources]:
    """Each host's sources of one stream: the hosts by which it came, nearest first; from `schemas.EVENTS`."""
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
"""From whom a host had what it only passed on, by that host and the first sequence number."""


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
    """The hosts through which something came, the nearest first: packets of each tell who was before it."""
    between: list[str] = []
    while via is not None and len(between) < BETWEEN_MAX:
        between.append(via)
        yield via
        before = passed.get((via, seq), [])
        others = [each for each in before if (each, seq) in passed and each not in between]
        via = others[0] if others and peer not in before else None


def hosts_to(
    sources: Mapping[str, Sources], publishers: Collection[str], host: str, t_ns: int
) -> tuple[str, ...] | None:
    """The hosts by which the stream came to one just before `t_ns`, its publisher first; None if unknown."""
    way = [host]
    while way[-1] not in publishers:
        source = sources[way[-1]].before(t_ns) if way[-1] in sources else None
        if source is None or len(way) > HOSTS_MAX:
            return None
        way += source.split()
    return tuple(reversed(way))


def hops_of(hosts: Iterable[str], metadata: RunMetadata) -> tuple[Hop, ...]:
    """From region to region along a path of hosts."""
    regions = [metadata.hosts[host].region for host in hosts]
    return tuple(hop for hop in pairwise(regions) if hop[0] != hop[1])
