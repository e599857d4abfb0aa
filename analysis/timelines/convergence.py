"""How a run comes to rest after its last change: when every stream flows again, and whether it then stays so.

The last change is the last that any fault made to a link or a process; without faults it is time 0. A
(stream, client) pair flows again with the first event that was published after the change and came; its
longest wait is that of any event published after it. What it took beyond the way is that time less what the
links and LANs of the way by which the event came are configured to take. A change of source that a proxy logs
from `SETTLED_NS` after the change on, until the run has drained, is one too many: nothing gives a reason for
it any more.

Clients that were not there in the end do not count, nor do streams in which nothing was published any more.
Whether all of it can be asked for depends on the links: `connected` says whether those that are up in both
directions in the end join all regions.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from analysis.timelines import schemas
from analysis.timelines.acts import Act, What
from analysis.timelines.facts import Facts
from analysis.timelines.pieces import NEVER
from analysis.timelines.recovery import History
from analysis.timelines.ways import length_us
from topologies.routes import connected

SETTLED_NS = 5_000_000_000


def flows(history: History) -> pa.Table:
    """`schemas.CONVERGENCE` of one stream: a row for each client that was there in the end and must get it.

    Who subscribed only after the last change counts from what was due to it first.
    """
    facts, cut = history.facts, history.cut
    since_ns = facts.last_change_ns
    after = (cut.published_ns != NEVER) & (cut.published_ns >= since_ns)
    clients = [client for client in cut.hosts if client not in facts.gone] if after.any() else []
    found = []
    for client in clients:
        mine = after & cut.wanted_at(client)
        if not mine.any():
            continue
        came_ns = cut.at(client)
        came = mine & (came_ns != NEVER)
        row = {"stream": history.stream, "client": client, "flows_ns": None, "wait_ns": None, "way_ns": None}
        if came.any():
            first_ns = int(came_ns[came].min())
            due_ns = since_ns if cut.wanted is None else int(cut.published_ns[mine].min())
            row["flows_ns"] = first_ns - due_ns
            row["wait_ns"] = int((came_ns[came] - cut.published_ns[came]).max())
            row["way_ns"] = _way_ns(history, client, first_ns)
        found.append(row)
    return pa.Table.from_pylist(found, schema=schemas.CONVERGENCE)


def headline(rows: pa.Table, acts: Sequence[Act], facts: Facts) -> dict[str, Any]:
    """The figures of summary.json; null where nothing was published after the last change."""
    flows_ns, waits_ns, ways_ns = (rows.column(f"{name}_ns").to_pylist() for name in ("flows", "wait", "way"))
    measured = bool(flows_ns)
    all_flow = measured and None not in flows_ns
    beyond_ns = [flow - (way or 0) for flow, way in zip(flows_ns, ways_ns, strict=True)] if all_flow else []
    return {
        "last_change_s": round(facts.seconds(facts.last_change_ns), 6),
        "connected": _connected_in_the_end(facts),
        "full_s": _seconds(max(flows_ns)) if all_flow else None,
        "median_s": _seconds(float(np.median(flows_ns))) if all_flow else None,
        "beyond_way_s": _seconds(max(beyond_ns)) if all_flow else None,
        "wait_max_s": _seconds(max(waits_ns)) if all_flow else None,
        "stalled": flows_ns.count(None) if measured else None,
        "late_switches": _late_switches(acts, facts),
    }


def _way_ns(history: History, client: str, t_ns: int) -> int | None:
    """What the way by which the client had something at `t_ns` is configured to take; None if unknown."""
    way = history.way(client, t_ns + 1)
    return None if way is None else length_us(history.facts, way, t_ns) * 1000


def _late_switches(acts: Sequence[Act], facts: Facts) -> int:
    settled_ns = facts.last_change_ns + SETTLED_NS
    end_ns = facts.drained_ns or facts.stopped_ns or NEVER
    return sum(act.what is What.MOVED and settled_ns <= act.t_ns < end_ns for act in acts)


def _connected_in_the_end(facts: Facts) -> bool:
    """Whether links that are up in both directions join all regions."""
    down = {link for (link, _), periods in facts.periods.items() if not periods[-1].up}
    joined = [hop for hop, (link, _) in facts.link_of.items() if link not in down]
    return connected(dict.fromkeys(facts.owner.values()), joined)


def _seconds(ns: float) -> float:
    return round(ns / 1e9, 6)
