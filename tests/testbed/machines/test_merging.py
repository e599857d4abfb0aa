"""Merging of several run.json files, on hand-written ones."""

from dataclasses import replace
from typing import Any

import pytest

from experiments.records.observations import ChangeRecord, MachineShare
from experiments.records.run_record import Outcome, RunPhase, RunRecord, Times
from testbed.machines.merging import UNENDED, merged
from tests.run_json import SMALL

S = 1_000_000_000
BASE = RunRecord(
    SMALL,
    times=Times(started_ns=1),
    machines=(MachineShare("h0", (), 100 * S), MachineShare("h1", (), 900 * S)),
)


def part(zero_s: int, **more: Any) -> RunRecord:
    """Return the record of a machine with this time 0."""
    return RunRecord(
        SMALL,
        times=Times(zero_ns=zero_s * S, drained_ns=(zero_s + 60) * S),
        links="relay",
        **{"phase": RunPhase.COLLECTED, "outcome": Outcome.COMPLETED, **more},
    )


def change(index: int, at_s: int) -> ChangeRecord:
    return ChangeRecord(index, at_s * S, at_s * S)


def test_changes_are_in_their_real_order_whatever_the_clocks_show() -> None:
    first = part(100, changes=(change(0, 119), change(2, 141)))
    second = part(900, changes=(change(1, 920),))
    record = merged(BASE, {"h0": first, "h1": second}, ["h0", "h1"])
    assert [(each.index, each.machine) for each in record.changes] == [(0, "h0"), (1, "h1"), (2, "h0")]


def test_the_run_s_times_are_the_first_machine_s() -> None:
    record = merged(BASE, {"h1": part(900), "h0": part(100)}, ["h0", "h1"])
    assert record.times == Times(started_ns=1, zero_ns=100 * S, drained_ns=160 * S)


def test_a_run_is_drained_when_all_machines_are() -> None:
    late = replace(part(900), times=Times(zero_ns=900 * S))
    assert merged(BASE, {"h0": part(100), "h1": late}, ["h0", "h1"]).times.drained_ns is None


@pytest.mark.parametrize(
    ("first", "second", "outcome"),
    [
        ("completed", "completed", "completed"),
        ("completed", "interrupted", "interrupted"),
        ("interrupted", "crashed", "crashed"),
        (None, "completed", "crashed"),
    ],
)
def test_a_run_is_as_complete_as_its_least_complete_part(
    first: str | None, second: str, outcome: str
) -> None:
    parts = {"h0": part(100, outcome=first), "h1": part(900, outcome=second)}
    assert merged(BASE, parts, ["h0", "h1"]).outcome == outcome


def test_without_the_record_of_a_machine_a_run_is_crashed() -> None:
    assert merged(BASE, {"h0": part(100)}, ["h0", "h1"]).outcome == "crashed"
    assert merged(BASE, {}, ["h0", "h1"]).outcome == "crashed"


def test_a_machine_whose_part_has_no_outcome_is_named_until_it_has_one() -> None:
    parts = {"h0": part(100), "h1": part(900, outcome=None)}
    record = merged(BASE, parts, ["h0", "h1"])
    assert record.problems == (f"h1: {UNENDED}",)
    assert merged(record, {"h0": part(100), "h1": part(900)}, ["h0", "h1"]).problems == ()


def test_problems_name_their_machine_and_are_reported_once() -> None:
    base = replace(BASE, problems=("h1: the disk is full",))
    parts = {"h0": part(100, problems=("too late",)), "h1": part(900, problems=("the disk is full",))}
    assert merged(base, parts, ["h0", "h1"]).problems == ("h1: the disk is full", "h0: too late")
