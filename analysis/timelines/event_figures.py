"""Figures on events for summary.json: of a whole run, and of each stream."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from experiments.records.summary import METRICS, OF_STREAMS, STREAMS_MAX

EVENTS = tuple(METRICS["events"])
OF_PUBLISHERS = ("published", "published_twice")
LOSSES_MAX = 10  # pairs of client and stream that a summary names
PER_CLIENT = tuple(name for name in EVENTS if name not in {*OF_PUBLISHERS, "unordered_publishers"})


def event_figures(deliveries: pa.Table | None, publishers: pa.Table) -> dict[str, int | None]:
    """Return sums over clients and streams. deliveries, publishers: rows of `schemas`; None: not measured.

    `unordered_publishers`: events that break their publisher's order.
    """
    if deliveries is None:
        return dict.fromkeys(EVENTS)
    streams = deliveries.group_by("stream").aggregate([(name, "max") for name in OF_PUBLISHERS])
    followed = pc.is_in(publishers.column("stream"), value_set=streams.column("stream").combine_chunks())
    unfollowed = publishers.filter(pc.invert(followed))
    return {
        **{
            name: _sum(streams.column(f"{name}_max")) + _sum(unfollowed.column(name))
            for name in OF_PUBLISHERS
        },
        **{name: _sum(deliveries.column(name)) for name in PER_CLIENT},
        "unordered_publishers": _sum(publishers.column("unordered")),
    }


def stream_figures(
    deliveries: pa.Table | None, publishers: pa.Table, names: Mapping[int, str]
) -> dict[str, dict[str, int]]:
    """Return sums over clients for each named stream; empty if there are too many streams."""
    if deliveries is None or len(names) > STREAMS_MAX:
        return {}
    sums = [(name, "max" if name in OF_PUBLISHERS else "sum") for name in OF_STREAMS]
    followed = {row["stream"]: row for row in deliveries.group_by("stream").aggregate(sums).to_pylist()}
    published = publishers.group_by("stream").aggregate([(name, "sum") for name in OF_PUBLISHERS])
    unfollowed = {row["stream"]: row for row in published.to_pylist()}
    return {
        name: {
            figure: int(followed[number][f"{figure}_{how}"] or 0)
            if number in followed
            else int(unfollowed.get(number, {}).get(f"{figure}_sum") or 0)
            for figure, how in sums
        }
        for number, name in names.items()
    }


def losses(deliveries: pa.Table | None, names: Mapping[int, str]) -> dict[str, Any]:
    """Return how many pairs of client and stream lost events (`pairs`), and those that lost most (`most`).

    names: of streams by number. Empty if nothing was lost.
    """
    if deliveries is None:
        return {}
    lossy = deliveries.filter(pc.greater(deliveries.column("lost"), 0))
    order = [("lost", "descending"), ("client", "ascending"), ("stream", "ascending")]
    most = lossy.sort_by(order).slice(0, LOSSES_MAX).select(["client", "stream", "lost", "published"])
    named = [{**row, "stream": names.get(row["stream"], str(row["stream"]))} for row in most.to_pylist()]
    return {"pairs": lossy.num_rows, "most": named} if named else {}


def _sum(column: pa.ChunkedArray) -> int:
    return int(pc.sum(column).as_py() or 0)
