"""Faults of one instant are one event: each has the figures of the pairs that it affected itself."""

import pyarrow as pa
import pytest

from analysis.timelines import schemas
from analysis.timelines.recovering.recovery import pairs
from analysis.timelines.recovering.recovery_table import table
from analysis.timelines.run_metadata import RunMetadata, read_metadata
from experiments.records.run_record import record_from_json
from tests.analysis.timelines.recovering.test_recovery_table import pair
from tests.analysis.timelines.world import CUT, MS, ZERO, S, facts_of, history_of, run_json, simulate

BOTH = (
    "faults=[{name: one, at: 5s, cut: [r2, r3], for: 4s},"
    " {name: two, at: 5s, cut: [r2, r3], direction: forward, for: 1s}]"
)
APART = "faults=[{name: one, at: 5s, cut: [r2, r3]}, {name: two, at: 5s, set: [r0, r1], delay: 50ms}]"


def rows_of(metadata: RunMetadata, stream: int):
    group = simulate().stream(stream)
    found = pairs(history_of(group, metadata, stream))
    return {(row["fault"], row["client"]): row for row in found.to_pylist()}


def applied_apart(by_ns: int) -> RunMetadata:
    """Return two simultaneous faults; the second one was applied this much later."""
    run = run_json(APART, "expect=[]")
    for planned, change in zip(run["plan"]["changes"], run["changes"], strict=True):
        if planned["fault"] == "two":
            change["applied_ns"] += by_ns
    return read_metadata(record_from_json(run))


def test_faults_planned_together_are_one_event_even_if_one_is_applied_later():
    metadata = applied_apart(3 * MS)
    assert [[fault.name for fault in faults] for faults in metadata.instants] == [["one", "two"]]
    assert [metadata.next_fault_ns(fault) for fault in metadata.applied_faults] == [None, None]
    row = rows_of(metadata, 2)["one", "r3-client-0"]
    assert row["rate_derived_ns"] is not None  # not until 3 ms after the fault


@pytest.mark.parametrize(
    ("affected", "lost"), [((True, False), (4, 0)), ((True, True), (4, 4)), ((False, False), (4, 4))]
)
def test_losses_count_for_simultaneous_faults_that_affected_the_pair(affected, lost):
    rows = [
        pair(fault=name, lost=4, affected=by_it, affected_by="route" if by_it else None)
        for name, by_it in zip(("one", "two"), affected, strict=True)
    ]
    found = table(pa.Table.from_pylist(rows, schema=schemas.PAIRS), (), None, applied_apart(0))
    assert tuple(found.column("lost").to_pylist()) == lost


def test_plans_without_strikes_are_read_by_their_changes():
    run = run_json()
    for fault in run["plan"]["faults"]:
        del fault["strike"]
    assert read_metadata(record_from_json(run)).faults == facts_of().faults


def test_a_fault_after_the_end_of_a_run_was_not_applied():
    run = run_json(BOTH.replace("{name: two, at: 5s", "{name: two, at: 6s"), "expect=[]")
    run["times"] |= {"stopped_ns": ZERO + 5_500 * MS, "ended_ns": ZERO + 6 * S - 1}
    run["changes"] = [each for each in run["changes"] if each["requested_ns"] <= ZERO + CUT]
    two = next(fault for fault in read_metadata(record_from_json(run)).faults if fault.name == "two")
    assert two.applied_ns is None
