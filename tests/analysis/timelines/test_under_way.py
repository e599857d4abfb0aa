"""Who subscribes may get what was published before, if that may still have been under way."""

import numpy as np
import pytest

from analysis.timelines.delivery.sequence_intervals import NEVER
from analysis.timelines.run_metadata import read_metadata
from analysis.timelines.under_way import UnderWay
from tests.analysis.timelines.world import S, run_record

CUTS = ((20 * S, 23 * S), (10 * S, 14 * S))
"""The last to begin first."""


@pytest.mark.parametrize(
    ("asked_s", "since_s"),
    [
        (5, 3),  # long before
        (11, 8),  # while it acts: so long before its begin
        (15, 8),  # what it held up comes once it is mended, and the system settles
        (16, 8),
        (17, 15),  # by then all had come
        (24, 18),
        (26, 24),
    ],
)
def test_what_a_fault_held_up_comes_when_it_was_mended(asked_s, since_s):
    found = UnderWay(2 * S, CUTS).since(np.array([asked_s * S, NEVER]))
    assert found.tolist() == [since_s * S, NEVER]


def test_of_faults_that_hold_things_up_one_after_another_the_first_counts():
    assert UnderWay(2 * S, ((15 * S, 18 * S), (10 * S, 14 * S))).since(np.array([19 * S])).tolist() == [8 * S]


def test_to_what_is_never_mended_a_system_settles_too():
    metadata = read_metadata(run_record("faults=[{name: cut, at: 5s, cut: [r0, r1]}]"))
    [(from_ns, to_ns)] = UnderWay.of(metadata).spans_ns
    assert from_ns == to_ns != NEVER
