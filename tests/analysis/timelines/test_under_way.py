"""A new subscriber may get earlier events that may still have been in flight."""

import numpy as np
import pytest

from analysis.arrays import NEVER
from analysis.timelines.run_metadata import read_metadata
from analysis.timelines.under_way import InFlightSpans
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
def test_events_delayed_by_a_fault_are_due_after_its_end(asked_s, since_s):
    found = InFlightSpans(2 * S, CUTS).since(np.array([asked_s * S, NEVER]))
    assert found.tolist() == [since_s * S, NEVER]


def test_the_first_of_consecutive_delaying_faults_counts():
    assert InFlightSpans(2 * S, ((15 * S, 18 * S), (10 * S, 14 * S))).since(np.array([19 * S])).tolist() == [
        8 * S
    ]


def test_a_system_also_settles_after_a_permanent_fault():
    metadata = read_metadata(run_record("faults=[{name: cut, at: 5s, cut: [r0, r1]}]"))
    [(from_ns, to_ns)] = InFlightSpans.from_metadata(metadata).spans_ns
    assert from_ns == to_ns != NEVER
