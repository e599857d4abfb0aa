"""How selective subscriptions are: how many of those in force, and how many clients, each event is for.

Counted in blocks of matches, so that it takes room for events and subscriptions, whatever matches.
"""

from typing import Any

import numpy as np
import pyarrow as pa

from analysis.timelines import schemas
from analysis.timelines.arrays import Ints, ints
from analysis.timelines.delivery.content import Content
from analysis.timelines.percentiles import weighted
from analysis.timelines.run_metadata import RunMetadata
from analysis.timelines.under_way import UnderWay

OF_SUBSCRIPTIONS, OF_CLIENTS = "subscriptions", "clients"
PERCENTS = (50, 95, 100)


def selectivity(content: Content, metadata: RunMetadata) -> pa.Table:
    """`schemas.SELECTIVITY` of a run's events, by the subscriptions that had to bring them."""
    events = len(content.seq)
    subscriptions, clients = np.zeros(events, np.int64), np.zeros(events, np.int64)
    last, seen = -1, np.zeros(0, np.int64)  # a client's matches may go on in the next block
    for block in content.blocks(metadata.declared.contract, list(metadata.owner), UnderWay.of(metadata)):
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
    """How many events are for how many."""
    values, events = np.unique(matched, return_counts=True)
    return pa.table([pa.repeat(what, len(values)), values, events], schema=schemas.SELECTIVITY)


def summary(found: pa.Table) -> dict[str, dict[str, Any]]:
    """The section `content` of summary.json: of subscriptions and of clients that an event is for, the mean,
    median, p95 and maximum, and the share of events that are for none.
    """
    told = {}
    for what in (OF_SUBSCRIPTIONS, OF_CLIENTS):
        mine = found.filter(pa.compute.equal(found.column("what"), what))
        matched, events = ints(mine, "matched"), ints(mine, "events")
        if not events.sum():
            return {}
        median, p95, most = (weighted(matched, events, percent) for percent in PERCENTS)
        told[what] = {
            "mean": float((matched * events).sum() / events.sum()),
            "p50": median,
            "p95": p95,
            "max": most,
            "none": float(events[matched == 0].sum() / events.sum()),
        }
    return told
