"""Rows have the layout of this Cutset, or the error names the difference."""

import pyarrow as pa
import pytest

from analysis.history.files import in_layout
from analysis.history.history_schemas import EXPECTATIONS, METRICS, SCHEMA, SCHEMAS
from analysis.history.row_checks import UnusableError

METRIC = ("latency.p95_ms", 80.0, "ms", "lower")


def rows(table: str = METRICS, values: tuple[object, ...] = METRIC) -> pa.Table:
    row = dict(zip(SCHEMAS[table].names, (SCHEMA, "a", "quick", "cut", *values), strict=True))
    return pa.Table.from_pylist([row], SCHEMAS[table])


def changed(name: str, column: object) -> pa.Table:
    given = column if isinstance(column, pa.Array) else pa.array(column)
    return rows().set_column(SCHEMAS[METRICS].get_field_index(name), name, given)


def test_columns_of_a_newer_cutset_are_left_out() -> None:
    assert in_layout(METRICS, rows().append_column("spread", pa.array([0.1]))) == rows()


def test_an_expectation_may_have_no_value() -> None:
    open_one = rows(EXPECTATIONS, ("verdict == passed", None, False))
    assert in_layout(EXPECTATIONS, open_one) == open_one


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (pa.table({"x": [1]}), "it has no column `schema`"),
        (changed("schema", pa.array([SCHEMA + 1], pa.int32())), f"has schema {SCHEMA + 1}, and this Cutset"),
        (changed("schema", pa.array([SCHEMA - 1], pa.int32())), f"has schema {SCHEMA - 1}, and this Cutset"),
        (changed("schema", ["one"]), "has a column `schema` of string, not int32"),
        (changed("schema", pa.array([None], pa.int32())), "has rows without a `schema`"),
        (changed("value", pa.array([None], pa.float64())), "has rows without a `value`"),
        (changed("value", ["much"]), "has a column `value` of string, not double"),
        (rows().drop_columns(["metric"]), "is not a file of a history's metrics: it has no column `metric`"),
    ],
)
def test_another_layout_is_refused(given: pa.Table, why: str) -> None:
    with pytest.raises(UnusableError, match=why):
        in_layout(METRICS, given)
