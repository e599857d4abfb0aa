"""Selectivity of subscriptions: how many active subscriptions, and how many clients, each event matches.

Counted in blocks of matches, so memory depends only on the number of events and subscriptions.
"""

from typing import Any

import numpy as np
import pyarrow as pa

from analysis.arrays import Ints, ints
from analysis.timelines import schemas
from analysis.timelines.delivery.content import ContentRecords
from analysis.timelines.percentiles import weighted
from analysis.timelines.run_metadata import RunMetadata
from analysis.timelines.under_way import InFlightSpans

OF_SUBSCRIPTIONS, OF_CLIENTS = "subscriptions", "clients"
PERCENTS = (50, 95, 100)


def selectivity(content: ContentRecords, metadata: RunMetadata) -> pa.Table:
    """Return `schemas.SELECTIVITY` of a run's events, by the subscriptions that required them."""
    events = len(content.seq)
    subscriptions, clients = np.zeros(events, np.int64), np.zeros(events, np.int64)
    last, seen = -1, np.zeros(0, np.int64)  # a client's matches may continue in the next block
    for block in content.blocks(
        metadata.declared.contract, list(metadata.owner), InFlightSpans.from_metadata(metadata)
    ):
        client, event = block.client[block.must], block.event[block.must]
        subscriptions += np.bincount(event, minlength=events)
        pairs = np.setdiff1d(np.unique(client * events + event), last * events + seen, assume_unique=True)
        clients += np.bincount(pairs % max(events, 1), minlength=events)
        if len(client):
            of_last = pairs[pairs // events == client[-1]] % events
            seen = np.union1d(seen, of_last) if client[-1] == last else of_last
            last = int(client[-1])
    return pa.concat_tables([_counted(OF_SUBSCRIPTIONS, subscriptions), _counted(OF_CLIENTS, clients)])


def _counted(what: str, matched: Ints) -> pa.Table:
    """Return how many events have each number of matches."""
    values, events = np.unique(matched, return_counts=True)
    return pa.table([pa.repeat(what, len(values)), values, events], schema=schemas.SELECTIVITY)


def summary(found: pa.Table) -> dict[str, dict[str, Any]]:
    """Return the section `content` of summary.json.

    For the subscriptions and the clients that an event is for: mean, median, p95 and maximum, and the share
    of events without any.
    """
    section = {}
    for what in (OF_SUBSCRIPTIONS, OF_CLIENTS):
        mine = found.filter(pa.compute.equal(found.column("what"), what))
        matched, events = ints(mine, "matched"), ints(mine, "events")
        if not events.sum():
            return {}
        median, p95, most = (weighted(matched, events, percent) for percent in PERCENTS)
        section[what] = {
            "mean": float((matched * events).sum() / events.sum()),
            "p50": median,
            "p95": p95,
            "max": most,
            "none": float(events[matched == 0].sum() / events.sum()),
        }
    return section
