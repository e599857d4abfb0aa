"""Convergence of a run after its last change: when every stream flows again, and whether it keeps flowing."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analysis.arrays import NEVER, Bools, Ints
from analysis.timelines import schemas
from analysis.timelines.recovering.delivery_history import DeliveryHistory
from analysis.timelines.recovering.failover_events import FailoverEvent, FailoverKind
from analysis.timelines.run_metadata import RunMetadata
from topologies.routes import connected, joined

SETTLED_NS = 5_000_000_000
NOTHING_DUE = "convergence: no events were due to any client after the last change"


def flows(history: DeliveryHistory) -> pa.Table:
    """Return `schemas.CONVERGENCE` of one stream: a row per client that was alive at the end and must get it.

    For a client that subscribed after the last change, time counts from its first due event.
    """
    metadata, cut = history.metadata, history.cut
    if not cut.hosts:
        return schemas.CONVERGENCE.empty_table()
    since_ns = metadata.last_change_ns
    mine = np.broadcast_to((cut.published_ns != NEVER) & (cut.published_ns >= since_ns), cut.arrived_ns.shape)
    mine = mine if cut.wanted is None else mine & cut.wanted
    there = np.array([client not in metadata.gone for client in cut.hosts], bool)
    shown = np.flatnonzero(mine.any(axis=1) & there)
    mine, came_ns = mine[shown], cut.arrived_ns[shown]
    came = mine & (came_ns != NEVER)
    first_ns = np.where(came, came_ns, NEVER).min(axis=1, initial=NEVER)
    due_ns = np.where(mine, cut.published_ns, NEVER).min(axis=1, initial=NEVER)
    was_due = (cut.published_ns != NEVER) & (cut.published_ns < since_ns)
    subscribed = np.ones(len(shown), bool) if cut.due is None else (cut.due[shown] & was_due).any(axis=1)
    flows_ns = first_ns - np.where(subscribed, since_ns, due_ns)
    wait_ns = np.where(came, came_ns - cut.published_ns, -NEVER).max(axis=1, initial=-NEVER)
    never = ~came.any(axis=1)
    last_ns = np.where(came_ns == NEVER, -NEVER, came_ns).max(axis=1, initial=-NEVER)
    clients = [cut.hosts[place] for place in shown.tolist()]
    paths_us = _paths_us(history, clients, first_ns, never)
    columns = [
        pa.array(np.full(len(shown), history.stream, np.int32)),
        pa.array(clients, pa.string()),
        pa.array(flows_ns, mask=never),
        pa.array(wait_ns, mask=never),
        pa.array(1000 * paths_us, mask=never | (paths_us < 0)),
        pa.array(np.where(mine & ~came, cut.count, 0).sum(axis=1, dtype=np.int64)),
        pa.array(last_ns, mask=last_ns == -NEVER),
    ]
    return pa.table(columns, schema=schemas.CONVERGENCE)


def _paths_us(history: DeliveryHistory, clients: Sequence[str], t_ns: Ints, never: Bools) -> Ints:
    """Return the configured delay of each client's path at these times; -1 if unknown."""
    found = np.full(len(clients), -1, np.int64)
    places = np.array([history.place(client) for client in clients], object)
    for place in dict.fromkeys(places):
        mine = (places == place) & ~never
        found[mine] = history.lengths_us(place, t_ns[mine] + 1)
    return found


def headline(
    rows: pa.Table, failover_events: Sequence[FailoverEvent], metadata: RunMetadata
) -> dict[str, Any]:
    """Return the figures of summary.json; null if nothing was published after the last change."""
    flows_ns, waits_ns, paths_ns = (
        rows.column(f"{name}_ns").to_pylist() for name in ("flows", "wait", "way")
    )
    measured = bool(flows_ns)
    all_flow = measured and None not in flows_ns
    beyond_ns = (
        [flow - (path or 0) for flow, path in zip(flows_ns, paths_ns, strict=True)] if all_flow else []
    )
    return {
        "last_change_s": round(metadata.seconds(metadata.last_change_ns), 6),
        "connected": _connected_in_the_end(metadata),
        "full_s": _seconds(max(flows_ns)) if all_flow else None,
        "median_s": _seconds(float(np.median(flows_ns))) if all_flow else None,
        "beyond_way_s": _seconds(max(beyond_ns)) if all_flow else None,
        "wait_max_s": _seconds(max(waits_ns)) if all_flow else None,
        "missed": pc.sum(rows["missed"]).as_py() if measured else None,
        "stalled": flows_ns.count(None) if measured else None,
        "late_switches": _late_switches(failover_events, metadata),
    }


def notes(rows: pa.Table) -> list[str]:
    """Return a note if nothing could be measured."""
    return [] if rows.num_rows else [NOTHING_DUE]


def _late_switches(failover_events: Sequence[FailoverEvent], metadata: RunMetadata) -> int:
    settled_ns = metadata.last_change_ns + SETTLED_NS
    end_ns = metadata.drained_ns or metadata.stopped_ns or NEVER
    return sum(act.what is FailoverKind.MOVED and settled_ns <= act.t_ns < end_ns for act in failover_events)


def _connected_in_the_end(metadata: RunMetadata) -> bool:
    """Return whether links that are up in both directions connect all regions at the end."""
    down = {link for (link, _), periods in metadata.periods.items() if not periods[-1].up}
    carriers = {hop: link for hop, (link, _) in metadata.link_of.items()}
    regions = dict.fromkeys((*metadata.owner.values(), *(end for hop in carriers for end in hop)))
    return connected(regions, joined(carriers, down))


def _seconds(ns: float) -> float:
    return round(ns / 1e9, 6)
