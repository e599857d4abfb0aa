"""Cutset's own SQL functions, over arrays."""

import duckdb
import pyarrow as pa
import pytest

from analysis.sql.functions import RunSpan, ip, macros

S = 1_000_000_000
NAMES = frozenset({"cut", "kill", "heal"})
FIRST = RunSpan("first", 10 * S, 30 * S, 12 * S, NAMES, (("cut", 15 * S, 20 * S), ("kill", 18 * S, 30 * S)))
SECOND = RunSpan("second", 40 * S, 60 * S, 41 * S, NAMES, (("cut", 45 * S, 50 * S),))


def called(question: str, *times_ns: int | None, spans=(SECOND, FIRST)) -> list:
    """Ask for a value at each time, by these runs."""
    with duckdb.connect() as connection:
        for name, definition in macros(spans).items():
            connection.execute(f"CREATE MACRO {name} AS {definition}")
        rows = connection.execute(f"SELECT {question} FROM (SELECT unnest(?::BIGINT[]) AS t_ns)", [times_ns])
        return [value for (value,) in rows.fetchall()]


def test_addresses_are_text():
    hi = [0, 0x2001_0DB8_0000_0000, 0, -(1 << 63), None, 0]
    lo = [0x0A02_0003, 1, 1 << 40, -1, 7, 1]
    found = ip(pa.array(hi, pa.int64()), pa.chunked_array([pa.array(lo, pa.int64())])).to_pylist()
    assert found == ["10.2.0.3", "2001:db8::1", "::100:0:0", "8000::ffff:ffff:ffff:ffff", None, "::1"]


def test_no_rows_have_no_addresses():
    assert ip(pa.array([], pa.int64()), pa.array([], pa.int64())).to_pylist() == []


def test_since_start_counts_from_time_0_of_the_run_at_that_time():
    times = (11 * S, 12 * S, 30 * S, 35 * S, 40 * S, 41 * S + 1, 61 * S, 0, None)
    assert called("since_start(t_ns)", *times) == [-1, 0, 18, None, -1, 1e-9, None, None, None]


def test_a_fault_lasts_until_its_end_and_in_its_own_run():
    times = (15 * S, 20 * S, 29 * S, 45 * S, 35 * S)
    assert called("during('cut', t_ns)", *times) == [True, False, False, True, None]
    assert called("during('kill', t_ns)", *times) == [False, True, True, False, None]
    assert called("during(NULL, t_ns)", *times) == [False, False, False, False, None]
    assert called("during('heal', t_ns)", *times) == [False, False, False, False, None]


def test_the_name_of_no_fault_is_refused():
    with pytest.raises(duckdb.Error, match=r"during\(cutt, …\): the faults are cut, heal, kill"):
        called("during('cutt', t_ns)", 15 * S)


def test_times_of_overlapping_runs_are_ambiguous():
    beside = RunSpan("beside", 20 * S, 50 * S, 21 * S, NAMES, ())
    with pytest.raises(duckdb.Error, match="first and beside overlap in time"):
        called("since_start(t_ns)", 25 * S, spans=(FIRST, beside))


def test_without_any_run_no_time_is_known():
    assert called("since_start(t_ns)", 25 * S, spans=()) == [None]
