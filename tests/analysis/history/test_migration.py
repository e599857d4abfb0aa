"""Older layouts are brought forward step by step; what no Cutset wrote, or a newer one, is refused."""

import pyarrow as pa
import pytest

from analysis.history.files import brought_forward
from analysis.history.history_schemas import EXPECTATIONS, METRICS, RUNS, SCHEMA, SCHEMAS
from analysis.history.row_checks import UnusableError

OLD = {"schema": [1], "run": ["a"], "suite": ["quick"], "entry": ["cut"]}


def metrics(**columns: list[object]) -> pa.Table:
    return pa.table({**OLD, "metric": ["latency.p95_ms"], "value": [80.0], **columns})


def test_columns_that_came_later_are_empty_in_older_files() -> None:
    rows = brought_forward(METRICS, metrics())
    assert rows.schema == SCHEMAS[METRICS]
    (row,) = rows.to_pylist()
    assert (row["value"], row["unit"]) == (80.0, "")


def test_columns_of_a_newer_cutset_are_left_out() -> None:
    assert "spread" not in brought_forward(METRICS, metrics(spread=[0.1])).column_names


def test_older_types_become_today_s() -> None:
    assert brought_forward(METRICS, metrics(value=pa.array([80], pa.int16())))["value"].to_pylist() == [80.0]


def runs(**columns: object) -> pa.Table:
    return pa.table({**OLD, "verdict": ["failed"], "valid": [True], "started_ns": [1], **columns})


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        (runs(verdict=pa.nulls(1, pa.string())), "has rows without a `verdict`"),
        (runs(started_ns=pa.nulls(1, pa.int64())), "has rows without a `started_ns`"),
        (runs(reasons=["busy"]), "has a column `reasons` of string, not list"),
    ],
)
def test_runs_that_no_page_could_show_are_refused(rows: pa.Table, why: str) -> None:
    with pytest.raises(UnusableError, match=why):
        brought_forward(RUNS, rows)


def test_each_version_is_brought_to_the_next() -> None:
    def renamed(table: str, rows: pa.Table) -> pa.Table:
        return rows.rename_columns([{"latency": "value"}.get(name, name) for name in rows.column_names])

    def in_ms(table: str, rows: pa.Table) -> pa.Table:
        column = rows.schema.get_field_index("value")
        return rows.set_column(column, "value", pa.array([each * 1000 for each in rows["value"].to_pylist()]))

    oldest = pa.table({**OLD, "metric": ["latency.p95_ms"], "latency": [0.08]})
    rows = brought_forward(METRICS, oldest, {1: renamed, 2: in_ms}, to=3)
    assert rows["value"].to_pylist() == [80.0]
    assert rows["schema"].to_pylist() == [3]


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        (pa.table({"x": [1]}), "it has no column `schema`"),
        (metrics(schema=[SCHEMA + 1]), "was written by a newer Cutset"),
        (metrics(schema=[0]), "has schema 0, which no Cutset wrote"),
        (metrics(schema=["one"]), "has a column `schema` of string, not int32"),
        (metrics(schema=[[1]]), "has a column `schema` of list<"),
        (metrics(schema=[{"of": 1}]), "has a column `schema` of struct<"),
        (metrics(schema=pa.array([None], pa.int32())), "has rows without a `schema`"),
        (metrics(value=pa.array([None], pa.float64())), "has rows without a `value`"),
        (metrics().append_column("run", pa.array(["b"])), "it has the column `run` twice"),
        (pa.table(OLD), "is no file of a history's metrics: it has no column `metric`"),
        (metrics(value=["much"]), "has a column `value` of string, not double"),
    ],
)
def test_a_history_that_cannot_be_migrated_reports_why(rows: pa.Table, why: str) -> None:
    with pytest.raises(UnusableError, match=why):
        brought_forward(METRICS, rows)


def test_unknown_fields_of_a_run_are_empty_as_in_its_record() -> None:
    (row,) = brought_forward(RUNS, runs(commit=pa.nulls(1, pa.string()))).to_pylist()
    assert (row["commit"], row["outcome"], row["reasons"], row["problems"]) == ("", "", [], [])
    assert (row["duration_s"], row["repeat"]) == (0.0, 0)


def test_an_expectation_may_have_no_value() -> None:
    rows = pa.table({**OLD, "text": ["verdict == passed"], "value": [None], "held": [False]})
    assert brought_forward(EXPECTATIONS, rows)["value"].to_pylist() == [None]
