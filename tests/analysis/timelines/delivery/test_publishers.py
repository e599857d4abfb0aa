"""Sequence numbers that are not in the driver's publication order are detected."""

import pyarrow as pa
import pytest

from analysis.timelines import schemas
from analysis.timelines.verification import check_order
from node.core.deliveries import RecordKind
from tests.analysis.timelines.delivery.test_deliveries import records

DRIVER = "r0-driver-0"


def unordered(rows):
    return [
        (row["published"], row["unordered"])
        for row in check_order(DRIVER, pa.Table.from_pylist(rows, schema=schemas.RECORDS)).to_pylist()
    ]


def published(batches, **more):
    return records(DRIVER, RecordKind.PUBLISHED, batches, **more)


AGAIN = published([(11, 5)], session=1)


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        (published([(1, 10), (31, 5), (36, 10)]), [(25, 0)]),
        (published([(1, 10), (31, 5), (16, 10)]), [(25, 10)]),
        ([*published([(1, 10)]), *AGAIN], [(15, 0)]),
        ([*published([(1, 10), (16, 5)]), *AGAIN], [(20, 5)]),
        ([], []),
    ],
    ids=["numbers that grow", "one from before", "started again", "started again before", "none"],
)
def test_batches_that_were_numbered_before_an_earlier_one_are_counted(rows, found):
    assert unordered(rows) == found
