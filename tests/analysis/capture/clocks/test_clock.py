"""A clock as data: conversion of times, error bounds, and reading back."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.capture.clocks.clock import REFERENCE, OffsetBounds, constant
from analysis.capture.clocks.machine_clocks import ONE_CLOCK, MachineClocks
from tests.analysis.capture.clocks.synthetic import MS, US, ZERO, S

KNOTS = np.array([ZERO, ZERO + 10 * S, ZERO + 20 * S], np.int64)
DRIFTING = OffsetBounds(
    KNOTS,
    np.array([1_000.0, 51_000.0]) * US,
    np.array([1_020.0, 51_040.0]) * US,
    np.array([1_500.0, 52_000.0]) * US,
    np.array([1_520.0, 52_060.0]) * US,
)
"""Ahead by 1 ms and 50 ppm; after 10 s set ahead by 49.5 ms."""


def test_times_are_corrected_by_the_middle_of_the_bounds() -> None:
    assert DRIFTING.at(ZERO) == ZERO - 1_010 * US
    assert DRIFTING.at(ZERO + 5 * S) == ZERO + 5 * S - 1_260 * US
    assert DRIFTING.at(ZERO + 10 * S) == ZERO + 10 * S - 51_020 * US


def test_the_outermost_lines_are_extrapolated_beyond_the_knots() -> None:
    assert DRIFTING.at(ZERO - 10 * S) == ZERO - 10 * S - 510 * US
    assert DRIFTING.at(ZERO + 30 * S) == ZERO + 30 * S - 53_040 * US


def test_the_error_bound_is_half_the_distance_of_the_bounds() -> None:
    known = np.array([ZERO, ZERO + 15 * S], np.int64)
    assert DRIFTING.error_bounds_ns(DRIFTING.corrected(known)) == pytest.approx([10 * US, 25 * US])


def test_the_reference_changes_nothing() -> None:
    times = np.array([0, 1, ZERO], np.int64)
    assert REFERENCE.corrected(times) is times
    assert REFERENCE.error_bounds_ns(times).tolist() == [0, 0, 0]


def test_a_clock_reads_back_from_json() -> None:
    again = OffsetBounds.from_json(json.loads(json.dumps(DRIFTING.as_json())))
    times = np.linspace(ZERO, ZERO + 20 * S, 100).astype(np.int64)
    assert again.corrected(times).tolist() == DRIFTING.corrected(times).tolist()


@given(st.integers(-5 * S, 25 * S), st.integers(0, 25 * S), st.floats(0, 1))
def test_a_time_filters_search_range_contains_all_matches(first: int, span: int, part: float) -> None:
    begin, end = ZERO + first, ZERO + first + span
    low, high = DRIFTING.reach(begin, end)
    assert low <= DRIFTING.at(begin + round(part * span)) <= high


def test_error_bounds_of_two_machines_add_and_one_machine_has_none() -> None:
    by_machine = {"a": constant(-MS, MS), "b": constant(5 * S - 2 * MS, 5 * S + 2 * MS)}
    clocks = MachineClocks({"x": "a", "y": "b", "z": "b"}, by_machine)
    assert clocks.error_bound_ns("x", "y", ZERO) == 3 * MS
    assert clocks.error_bound_ns("y", "z", ZERO) is None
    assert clocks.error_bounds_ns(("x",), ("y", "x"), np.array([ZERO], np.int64)).tolist() == [3 * MS]


def test_hosts_of_a_run_on_one_machine_have_one_clock() -> None:
    assert ONE_CLOCK.error_bound_ns("x", "y", ZERO) is None
    assert ONE_CLOCK.clock_of_host("x") is REFERENCE
