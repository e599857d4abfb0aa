"""The effect of each fault on each (stream, client) pair, from the events alone: a Spark step, one group per
stream.

A link fault *affects* a pair if the route of the stream to the client's region, just before the fault,
crossed one of the link directions that the fault changed (packets between regions without a link of their own
cross other regions' links). A process fault affects a pair if the route touched that server's region, or the
process is the client. If routes lead from host to host (`host_paths`), each client has its own, and only the
processes on it matter. If neither packets nor logs show the route, the configured one is assumed; in
addition, a client without events for longer than usual is affected (`gaps`). A client that was itself killed,
stopped, late or gone shows only the effect of that: other faults do not affect it.

A fault that mends (restore, continue, restart) affects the pairs whose direct path it restores, whether they
took a detour or waited; `returned` is when their region had the stream from its owner again, permanently. If
routes lead from host to host, the path before the previous fault is the direct one, and no pair returns. The
times themselves are defined in `recovery_times`.

Faults of one instant are one event: each has the figures of the pairs that it affected itself.

Lost events belong to the last instant with faults before they were due at the client: at the time of their
publication, plus the median latency of their stream there.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from analysis.arrays import NEVER, Ints
from analysis.timelines import schemas
from analysis.timelines.delivery.stream_paths import length_us
from analysis.timelines.delivery.stream_pieces import CELLS_MAX, ClientPieces
from analysis.timelines.recovering.delivery_history import AROUND_NS, DeliveryHistory
from analysis.timelines.recovering.gaps import ClientWaits
from analysis.timelines.recovering.recovery_times import PairPieces, PairTimes, benchmark, measure
from analysis.timelines.recovering.run_faults import RunFault
from analysis.timelines.run_metadata import RunMetadata
from experiments.declared import Trait
from topologies.routes import Hop

SPARSE = "events were published {:.1f} s apart, so times are no finer than that"
PROCESS, ROUTE, GAP, UNKNOWN = "process", "route", "gap", "unknown"
"""Evidence that a fault affected a client: its own process, the route of its events, or a gap in them."""


def pairs(history: DeliveryHistory) -> pa.Table:
    """Return `schemas.PAIRS` of one stream: every applied fault, and each client with due events."""
    metadata, cut = history.metadata, history.cut
    if not metadata.applied_faults or not cut.hosts:
        return schemas.PAIRS.empty_table()
    due = np.ones((len(cut.hosts), 1), bool) if cut.due is None else cut.due & (cut.published_ns != NEVER)
    shown = np.flatnonzero(due.any(axis=1)).tolist()
    places = [history.place(cut.hosts[client]) for client in shown]
    lost = lost_after(history)
    by_fault = {name: by for faults in metadata.instants for name, by in _affected_by(history, faults, shown)}
    found = []
    for fault in metadata.applied_faults:
        paths = {place: _text(history, history.route(place, fault.t_ns)) for place in dict.fromkeys(places)}
        affected_by = by_fault[fault.name]
        affected = [by is not None and by != UNKNOWN for by in affected_by]
        times = [
            _times(history, fault, client) if concerned else {}
            for client, concerned in zip(shown, affected, strict=True)
        ]
        columns: dict[str, Sequence[Any]] = {
            "fault": [fault.name] * len(shown),
            "stream": [history.stream] * len(shown),
            "client": [cut.hosts[client] for client in shown],
            "affected": affected,
            "affected_by": affected_by,
            "lost": lost[shown, metadata.instant_numbers[fault.name]].tolist(),
            "old_way": [paths[place] for place in places],
            "hosts": [history.hosts(place, fault.t_ns) for place in places],
        }
        columns |= {name: [row.get(name) for row in times] for name in _TIMES}
        columns["reasons"] = [row.get("reasons", ()) for row in times]
        found.append(pa.table(columns, schema=schemas.PAIRS))
    return pa.concat_tables(found)


def _affected_by(
    history: DeliveryHistory, faults: Sequence[RunFault], clients: Sequence[int]
) -> Iterator[tuple[str, list[str | None]]]:
    """Yield each fault of one instant with the evidence per client: PROCESS, ROUTE or GAP.

    UNKNOWN: there is no evidence either way; None: it did not affect the client. clients: indices among those
    of the intervals. A gap does not count if process or route show that another fault of the same instant
    affected the client.
    """
    by_route = [_by_routes(history, fault, clients) for fault in faults]
    explained = [any(by in (PROCESS, ROUTE) for by in row) for row in zip(*by_route, strict=True)]
    for fault, row in zip(faults, by_route, strict=True):
        known = [None if by == UNKNOWN and shown else by for by, shown in zip(row, explained, strict=True)]
        yield fault.name, _with_gaps(history, fault, clients, known)


def _by_routes(history: DeliveryHistory, fault: RunFault, clients: Sequence[int]) -> list[str | None]:
    """Return `_by_route` of each client with due events, None for others.

    A route shows nothing if no event was due soon after the fault: then gaps decide. No event may be due to a
    client that the fault ended, from shortly before the fault until it runs again.
    """
    were_due, sparsely = history.were_due(fault.t_ns), history.were_due_sparsely(fault.t_ns)
    otherwise = [UNKNOWN if each and not fault.mends else None for each in sparsely]
    ended = () if fault.mends else fault.processes
    shown = were_due | (history.came_again(fault.t_ns) & np.isin(history.cut.hosts, ended))
    return [
        _by_route(history, fault, history.cut.hosts[client]) if shown[client] else otherwise[client]
        for client in clients
    ]


def _with_gaps(
    history: DeliveryHistory, fault: RunFault, clients: Sequence[int], found: list[str | None]
) -> list[str | None]:
    """Replace UNKNOWN by GAP or None if the client's waits are conclusive."""
    unsure = [place for place, by in enumerate(found) if by == UNKNOWN]
    around, until_ns = _around(fault, history.metadata), history.metadata.stopped_ns
    share = max(1, CELLS_MAX // max(1, len(history.cut.count)))
    for first in range(0, len(unsure), share):
        some = unsure[first : first + share]
        waits = ClientWaits.from_intervals(
            history.cut, [clients[place] for place in some], until_ns or _last(history.cut.published_ns)
        )
        for place, gap, known in zip(some, *waits.gap_of(fault.t_ns, **around), strict=True):
            found[place] = GAP if gap else None if known else UNKNOWN
    return found


def _around(fault: RunFault, metadata: RunMetadata) -> dict[str, int]:
    """Return the times around a fault that `ClientWaits.gap_of` needs."""
    settle_ns = metadata.declared.contract.settle_us * 1000
    before = [t_ns + settle_ns for t_ns in metadata.instant_starts_ns[: metadata.instant_numbers[fault.name]]]
    return {
        "calm_ns": max(before, default=0),
        "next_ns": metadata.next_fault_ns(fault) or NEVER,
        "settle_ns": settle_ns,
    }


def _by_route(history: DeliveryHistory, fault: RunFault, client: str) -> str | None:
    """Return PROCESS or ROUTE if the fault concerns the pair by these; UNKNOWN if the route is unknown."""
    hosts = history.metadata.hosts
    owner, region = history.owner, history.place(client)
    if fault.apart and history.metadata.by_host and not fault.mends:
        return _by_hosts_apart(history, fault, client)
    if client in fault.processes:
        return PROCESS
    if client in history.metadata.disturbed or not _may_select(history, fault, client):
        return None
    old = history.route(region, fault.t_ns)
    if history.metadata.by_host:
        return _by_path_of_hosts(history, fault, client, old)
    struck = {hosts[host].region for host in fault.processes if history.metadata.has(host, Trait.SERVER)}
    direct: tuple[Hop, ...] = ((owner, region),)
    if fault.only_host is not None and history.metadata.has(fault.only_host, Trait.SERVER):
        end = hosts[fault.only_host].region  # its packets cross links only beside its own region
        direct = tuple(hop for hop in direct if end in hop)
        old = tuple(hop for hop in old if end in hop) if old is not None else None
    if fault.mends:
        gives_back = bool(history.metadata.crossed(direct) & set(fault.hops))
        return ROUTE if gives_back or struck & {owner, region} else None
    way = direct if old is None else old
    if set(fault.hops) & history.metadata.crossed(way) or struck & {owner, region, *(a for a, _ in way)}:
        return ROUTE
    return None if history.tells(region, fault.t_ns) else UNKNOWN


def _may_select(history: DeliveryHistory, fault: RunFault, client: str) -> bool:
    """Return whether packets that lead to a client may be among those that the fault is for."""
    host, metadata = fault.only_host, history.metadata
    if host is None or metadata.has(host, Trait.SERVER):
        return True
    publishes = metadata.hosts[host].region == history.owner and metadata.has(host, Trait.PUBLISHER)
    return host in (history.hosts(client, fault.t_ns) or (client,)) or publishes


def _by_path_of_hosts(
    history: DeliveryHistory, fault: RunFault, client: str, old: tuple[Hop, ...] | None
) -> str | None:
    """Return the same for paths from host to host."""
    metadata, shown = history.metadata, history.tells(client, fault.t_ns)
    if fault.mends:
        earlier = [each for each in metadata.applied_faults if each.t_ns < fault.t_ns and not each.mends]
        before = history.path(client, earlier[-1].t_ns) if earlier else old
        detour = before is not None and before != old and metadata.crossed(before) & set(fault.hops)
        return ROUTE if shown and detour else None
    hosts = history.hosts(client, fault.t_ns) or ()
    if old is not None and (set(fault.hops) & metadata.crossed(old) or set(fault.processes) & set(hosts)):
        return ROUTE
    return None if shown else UNKNOWN


def _by_hosts_apart(history: DeliveryHistory, fault: RunFault, client: str) -> str | None:
    """Return ROUTE if the path to a client leads between hosts that the fault sets apart."""
    hosts = history.hosts(client, fault.t_ns)
    if hosts is None:
        return UNKNOWN
    return ROUTE if any(frozenset(pair) in fault.apart for pair in pairwise(hosts)) else None


def lost_after(history: DeliveryHistory) -> Ints:
    """Return how many published events never arrived, by client and instant with faults.

    Events count for the instant before they were due. Events due before the first instant count for it if the
    next event arrived after it. `recovery_table` assigns them to its faults.
    """
    cut, metadata = history.cut, history.metadata
    missing = (cut.arrived_ns == NEVER) & (cut.published_ns != NEVER)
    if cut.wanted is not None:
        missing &= cut.wanted
    starts = np.array(metadata.instant_starts_ns, np.int64)
    found = np.zeros((len(cut.hosts), len(starts)), np.int64)
    some = np.flatnonzero(missing.any(axis=1))
    if len(some):
        seen_ns = np.minimum.accumulate(cut.arrived_ns[some, ::-1], axis=1)[:, ::-1]
        client, piece = np.nonzero(missing[some])
        due_ns = cut.published_ns[piece] + _usual_ns(cut, some)[client]
        instant = np.searchsorted(starts, due_ns, side="right") - 1
        within = (instant >= 0) | (seen_ns[client, piece] >= starts[0])
        instant = np.maximum(instant, 0)
        np.add.at(found, (some[client[within]], instant[within]), cut.count[piece[within]])
    return found


def _usual_ns(cut: ClientPieces, clients: Ints) -> Ints:
    """Return the median latency of what arrived at each of these clients; 0 if nothing did."""
    found = np.zeros(len(clients), np.int64)
    for place, client in enumerate(clients):
        came = (cut.arrived_ns[client] != NEVER) & (cut.published_ns != NEVER)
        if came.any():
            found[place] = np.median((cut.arrived_ns[client] - cut.published_ns)[came])
    return found


def path_ns(history: DeliveryHistory, place: str, came_ns: Ints, fault_ns: int) -> Ints:
    """Return, for each piece, how much longer its path to a place was than the path just before the fault.

    Configured lengths, in nanoseconds; 0 if either path is unknown.
    """
    old = history.route(place, fault_ns)
    lengths = history.lengths_us(place, came_ns)
    if old is None:
        return np.zeros(len(lengths), np.int64)
    return 1000 * np.where(lengths < 0, 0, lengths - length_us(history.metadata, old, fault_ns - 1))


_TIMES = (*(f"{name}_ns" for name in schemas.RECOVERY_TIMES), "impaired", "backlog_events", "new_way")


def _times(history: DeliveryHistory, fault: RunFault, client: int) -> dict[str, Any]:
    """Return the further columns of an affected pair's row. client: an index among those of the pieces."""
    cut, name = history.cut, history.cut.hosts[client]
    place, region = history.place(name), history.metadata.hosts[name].region
    since_ns = _struck_ns(history, fault, place, region)
    came_ns = cut.arrived_ns[client]
    due_ns = cut.published_ns if cut.due is None else np.where(cut.due[client], cut.published_ns, NEVER)
    pair = PairPieces(cut.count, due_ns, came_ns, path_ns(history, place, came_ns, fault.t_ns))
    stopped_ns = history.metadata.stopped_ns or _last(cut.published_ns)
    times = measure(pair, since_ns, until_ns=stopped_ns)
    after_ns = history.metadata.next_fault_ns(fault) or stopped_ns
    rfc = benchmark(pair, since_ns, until_ns=min(after_ns, stopped_ns))
    times = times.later(since_ns - fault.t_ns)
    returned_ns = None
    returns = fault.mends and not history.metadata.by_host
    if returns and history.metadata.crossed([(history.owner, region)]) & set(fault.hops):
        returned_ns, times = _returned(history, fault, region, times)
    reasons = [f"{name}: {reason}" for name, reason in sorted(times.reasons.items())]
    if (apart_ns := history.apart_ns(fault.t_ns)) >= AROUND_NS:
        reasons.append(SPARSE.format(apart_ns / 1e9))
    known = [ns for ns in (times.switch_ns, times.settled_ns, returned_ns) if ns is not None]
    return {
        **asdict(times),
        **asdict(rfc),
        "returned_ns": returned_ns,
        "new_way": _text(history, history.path(place, fault.t_ns + max(known) + 1)) if known else None,
        "reasons": reasons,
    }


def _struck_ns(history: DeliveryHistory, fault: RunFault, place: str, region: str) -> int:
    """Return when the fault reached the pair: a link's directions, and several links, change one after the
    other.
    """
    direct = (history.owner, region)
    old = history.route(place, fault.t_ns) or ()
    crossed = history.metadata.crossed((direct,) if fault.mends else old)
    changed = [fault.hops[hop] for hop in sorted(crossed) if hop in fault.hops]
    return max(changed, default=fault.t_ns)


def _returned(
    history: DeliveryHistory, fault: RunFault, region: str, times: PairTimes
) -> tuple[int | None, PairTimes]:
    """Return when the region had the stream from its owner again and kept it so until the next fault."""
    end_ns = history.metadata.next_fault_ns(fault) or NEVER
    source = history.seen.get(region)
    if source is None or source.before(end_ns) != history.owner:
        reasons = {**times.reasons, "returned_s": "the stream did not return to its direct path"}
        return None, replace(times, reasons=reasons)
    index = int(np.searchsorted(source.since_ns, end_ns, side="left")) - 1
    return max(0, int(source.since_ns[index]) - fault.t_ns), times


def _last(t_ns: Ints) -> int:
    return int(t_ns[t_ns != NEVER].max(initial=0))


def _text(history: DeliveryHistory, hops: tuple[Hop, ...] | None) -> str | None:
    """Return a path as its regions."""
    return None if hops is None else " ".join([history.owner, *(taker for _, taker in hops)])
