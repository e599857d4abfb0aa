"""Any content of a history's file is read correctly or reported and skipped; the check of a night and its
page continue.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analysis.history import History
from analysis.history.files import night_file
from analysis.history.history_schemas import EXPECTATIONS, METRICS, RUNS, SCHEMAS
from analysis.pages.nights import write_site
from tests.analysis.history.records import NIGHT, make_record

FLIPS = 120
NO_TEXT = pa.Array.from_buffers(
    pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"\xff\xfe")]
)


@pytest.fixture
def history(tmp_path: Path) -> History:
    history = History(tmp_path / "history")
    history.append(make_record("a"))
    return history


@pytest.mark.parametrize("table", [RUNS, METRICS, EXPECTATIONS])
@pytest.mark.slow
def test_a_flipped_bit_is_never_read_as_another_value(history: History, table: str) -> None:
    read = {RUNS: history.runs, METRICS: history.metrics, EXPECTATIONS: history.expectations}[table]
    right = read().to_pylist()
    file = night_file(history.folder, table, NIGHT)
    whole = file.read_bytes()
    named = 0
    for place in np.random.default_rng(7).integers(0, 8 * len(whole), FLIPS).tolist():
        flipped = bytearray(whole)
        flipped[place // 8] ^= 1 << place % 8
        file.write_bytes(flipped)
        rows = read().to_pylist()
        assert rows == right or (rows == [] and history.problems), place
        named += bool(history.problems)
    assert named > FLIPS / 4


def odd(history: History, **columns: object) -> Path:
    """Write a file of the table `runs` as a foreign program might, beside that of a good run."""
    good = night_file(history.folder, RUNS, NIGHT)
    rows = pq.read_table(good, partitioning=None).drop_columns(list(columns))
    rows = rows.set_column(rows.schema.get_field_index("run"), "run", pa.array(["odd"]))
    for name, value in columns.items():
        rows = rows.append_column(name, value if isinstance(value, pa.Array) else pa.array([value]))
    pq.write_table(rows.replace_schema_metadata(), good.with_name("odd.parquet"))
    return good.with_name("odd.parquet")


@pytest.mark.parametrize(
    "columns",
    [
        {"verdict": "degraded"},
        {"verdict": pa.nulls(1, pa.string())},
        {"started_ns": pa.nulls(1, pa.int64())},
        {"schema": [2]},
        {"schema": {"version": 2}},
        {"entry": NO_TEXT},
    ],
    ids=["verdict", "no verdict", "no start", "list", "struct", "no text"],
)
def test_an_invalid_run_is_reported_and_stops_neither_check_nor_page(
    history: History, columns: dict[str, object]
) -> None:
    file = odd(history, **columns)
    page = write_site(history, history.folder / "site").read_text()
    assert file.name in page
    assert history.runs()["run"].to_pylist() == ["a"]


def test_a_file_with_a_duplicate_column_is_reported(history: History) -> None:
    file = night_file(history.folder, RUNS, NIGHT).with_name("b.parquet")
    names = [*SCHEMAS[RUNS].names, "run"]
    pq.write_table(pa.Table.from_arrays([pa.array(["b"])] * len(names), names), file)
    assert history.runs()["run"].to_pylist() == ["a"]
    assert history.problems[0].startswith(str(file))
