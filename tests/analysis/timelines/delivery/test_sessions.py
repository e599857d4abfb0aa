"""A record's session is the process start that wrote it, even if an earlier one wrote nothing."""

import numpy as np
import pytest

from analysis.timelines.delivery.delivery_records import RECORD, sessions_of
from node.core.deliveries import RecordKind


def rows(*written):
    """Return records: `d` is a delivery, a number the start of that session."""
    found = np.zeros(len(written), RECORD)
    found["kind"] = [RecordKind.DELIVERED if each == "d" else RecordKind.SESSION for each in written]
    found["first_seq"] = [7 if each == "d" else each for each in written]
    return found


@pytest.mark.parametrize(
    ("written", "sessions"),
    [
        ((0, "d", 1, "d", "d"), [0, 0, 1, 1, 1]),
        ((0, "d", 2, "d"), [0, 0, 2, 2]),  # the second start ended before it wrote anything
        ((1, "d"), [1, 1]),
        ((0, "d", 0, "d", 0), [0, 0, 1, 1, 2]),  # of a process that does not know its generation
        (("d",), [0]),
        ((), []),
    ],
)
def test_each_record_belongs_to_a_start_of_its_process(written, sessions):
    assert sessions_of(rows(*written)).tolist() == sessions


@pytest.mark.parametrize("cut", range(1, 7))
def test_sessions_are_the_same_if_read_in_two_pieces(cut):
    whole = rows(0, "d", 2, "d", 3, "d", "d")
    first = sessions_of(whole[:cut])
    then = sessions_of(whole[cut:], int(first[-1]))
    assert [*first, *then] == [0, 0, 2, 2, 3, 3, 3]
