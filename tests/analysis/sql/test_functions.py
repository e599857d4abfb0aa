"""Cutset's own SQL functions, over arrays."""

import pyarrow as pa
import pytest

from analysis.errors import AnalysisError
from analysis.sql.functions import RunSpan, functions, ip

S = 1_000_000_000
FIRST = RunSpan("first", 10 * S, 30 * S, 12 * S, (("cut", 15 * S, 20 * S), ("kill", 18 * S, 30 * S)))
SECOND = RunSpan("second", 40 * S, 60 * S, 41 * S, (("cut", 45 * S, 50 * S),))


def called(name: str, *arguments: pa.Array, spans=(SECOND, FIRST)) -> list:
    return functions(spans)[name].call(*arguments).to_pylist()


def test_addresses_are_text():
    hi = [0, 0x2001_0DB8_0000_0000, 0, -(1 << 63), None, 0]
    lo = [0x0A02_0003, 1, 1 << 40, -1, 7, 1]
    found = ip(pa.array(hi, pa.int64()), pa.chunked_array([pa.array(lo, pa.int64())])).to_pylist()
    assert found == ["10.2.0.3", "2001:db8::1", "::100:0:0", "8000::ffff:ffff:ffff:ffff", None, "::1"]


def test_no_rows_have_no_addresses():
    assert ip(pa.array([], pa.int64()), pa.array([], pa.int64())).to_pylist() == []


def test_since_start_counts_from_time_0_of_the_run_at_that_time():
    times = pa.array([11 * S, 12 * S, 30 * S, 35 * S, 40 * S, 41 * S + 1, 61 * S, 0, None], pa.int64())
    assert called("since_start", times) == [-1, 0, 18, None, -1, 1e-9, None, None, None]


def test_a_fault_lasts_until_its_end_and_in_its_own_run():
    times = pa.array([15 * S, 20 * S, 29 * S, 45 * S, 35 * S], pa.int64())
    assert called("during", pa.array(["cut"] * 5), times) == [True, False, False, True, None]
    assert called("during", pa.array(["kill"] * 5), times) == [False, True, True, False, None]
    assert called("during", pa.array([None] * 5, pa.string()), times) == [False, False, False, False, None]


def test_times_of_overlapping_runs_are_ambiguous():
    beside = RunSpan("beside", 20 * S, 50 * S, 21 * S, ())
    with pytest.raises(AnalysisError, match="first and beside overlap in time"):
        called("since_start", pa.array([25 * S]), spans=(FIRST, beside))


def test_without_any_run_no_time_is_known():
    assert called("since_start", pa.array([25 * S]), spans=()) == [None]
