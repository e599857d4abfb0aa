"""FIFO per publisher (Sprinkler 2.1): a driver's events have sequence numbers in the order of publication.

A driver's acknowledgements are on record in the order of its requests, so their sequence numbers must grow.
What was numbered before an earlier event of the same driver is *unordered*. A driver that was started again
goes on behind what its earlier self published.
"""

import numpy as np
import pyarrow as pa

from analysis.timelines import schemas
from analysis.timelines.arrays import ints, rows
from analysis.timelines.pieces import Batches, total, union
from node.core.deliveries import RecordKind


def check_order(driver: str, records: pa.Table) -> pa.Table:
    """`schemas.PUBLISHERS` of one driver, from its rows of `schemas.RECORDS` in order of position."""
    published = rows(records, kind=int(RecordKind.PUBLISHED))
    found = []
    for stream in np.unique(ints(published, "stream")):
        mine = rows(published, stream=int(stream))
        first, count = ints(mine, "first_seq"), ints(mine, "count")
        highest = np.concatenate(([0], np.maximum.accumulate(first + count)[:-1]))
        unordered = np.clip(np.minimum(first + count, highest) - first, 0, None)
        known = total(union(Batches(first, count, first)))
        found.append(
            {"driver": driver, "stream": int(stream), "published": known, "unordered": int(unordered.sum())}
        )
    return pa.Table.from_pylist(found, schema=schemas.PUBLISHERS)
