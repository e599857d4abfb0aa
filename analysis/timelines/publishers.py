"""FIFO per publisher (Sprinkler 2.1): a driver's events have sequence numbers in the order of publication.

A driver's acknowledgements are on record in the order of its requests, so their sequence numbers must grow.
What was numbered before an earlier event of the same driver is *unordered*. A driver that was started again
goes on behind what its earlier self published.
"""

import numpy as np
import pyarrow as pa

from analysis.timelines import schemas
from analysis.timelines.arrays import ints, rows
from analysis.timelines.epochs import layout
from analysis.timelines.sequence_intervals import behind, shifted, sums, totals, union
from node.core.deliveries import RecordKind


def check_order(driver: str, records: pa.Table) -> pa.Table:
    """`schemas.PUBLISHERS` of one driver, from its rows of `schemas.RECORDS` in order of position."""
    published = rows(records, kind=int(RecordKind.PUBLISHED))
    published = layout([published]).laid_out(published)
    streams, place = np.unique(ints(published, "stream"), return_inverse=True)
    batches = shifted(place, ints(published, "first_seq"), ints(published, "count"))
    columns = [
        pa.repeat(pa.scalar(driver), len(streams)),
        pa.array(streams.astype(np.int32)),
        pa.array(totals(union(batches), len(streams))),
        pa.array(sums(place, behind(batches), len(streams))),
    ]
    return pa.table(columns, schema=schemas.PUBLISHERS)
