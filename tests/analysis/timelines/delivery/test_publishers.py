"""A driver's events have sequence numbers in the order in which it published them, or it is noticed."""

import pyarrow as pa

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


def test_numbers_that_grow_are_in_order_whatever_lies_between_them():
    assert unordered(published([(1, 10), (31, 5), (36, 10)])) == [(25, 0)]


def test_a_batch_that_was_numbered_before_an_earlier_one_is_not():
    assert unordered(published([(1, 10), (31, 5), (16, 10)])) == [(25, 10)]


def test_a_driver_that_was_started_again_goes_on_behind_what_it_published_before():
    again = published([(11, 5)], session=1)
    assert unordered([*published([(1, 10)]), *again]) == [(15, 0)]
    assert unordered([*published([(1, 10), (16, 5)]), *again]) == [(20, 5)]


def test_a_driver_that_published_nothing_has_no_row():
    assert unordered([]) == []
