"""Every value in a file of a history is checked, whatever wrote the file: an error is one line with the
problem.
"""

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analysis.history import History, files
from analysis.history.files import night_file, read_rows
from analysis.history.history_schemas import EXPECTATIONS, METRICS, RUNS
from analysis.history.row_checks import PROSE, UnusableError
from testbed.cli.main import run as cutset
from tests.analysis.history.records import NIGHT, make_record

ESCAPE = "\x1b]0;owned\x07"
SHOWN = {
    (RUNS, "run"), (RUNS, "suite"), (RUNS, "entry"), (RUNS, "path"), (RUNS, "experiment"), (RUNS, "commit"),
    (RUNS, "cutset"), (RUNS, "python"), (RUNS, "kernel"), (RUNS, "links"), (RUNS, "place"),
    (RUNS, "outcome"), (METRICS, "metric"), (METRICS, "unit"), (EXPECTATIONS, "suite"),
}  # fmt: skip


@pytest.fixture
def history(tmp_path: Path) -> History:
    history = History(tmp_path / "history")
    history.append(make_record("a"))
    history.append(make_record("b"))
    return history


def changed(history: History, table: str, **columns: Any) -> Path:
    """Write a file with changed columns of run b, as a foreign program might."""
    night = night_file(history.folder, table, NIGHT)
    file = night.with_name("b.parquet")
    rows = pq.read_table(night, partitioning=None, filters=[("run", "=", "b")])
    pq.write_table(pq.read_table(night, partitioning=None, filters=[("run", "=", "a")]), night)
    for name, value in columns.items():
        place = rows.schema.get_field_index(name)
        field = rows.schema.field(name)
        rows = rows.set_column(place, field, pa.array([value] * rows.num_rows, field.type))
    pq.write_table(rows, file)
    return file


def problem(history: History, table: str, **columns: Any) -> str:
    """Return why that file cannot be used."""
    with pytest.raises(UnusableError) as raised:
        read_rows(changed(history, table, **columns), table)
    said = str(raised.value)
    assert said.isprintable()
    return said


@pytest.mark.parametrize(("table", "column"), sorted(SHOWN))
def test_unprintable_values_are_reported_in_a_printable_line(
    history: History, table: str, column: str
) -> None:
    said = problem(history, table, **{column: ESCAPE})
    assert said == f"has the {column} '\\x1b]0;owned\\x07', which cannot be shown"


@pytest.mark.parametrize("name", ["..", ".", "", "../../home", "/etc", "a/b", "n" * 201])
def test_run_names_must_be_plain_directory_names(history: History, name: str) -> None:
    assert "which is not a directory name" in problem(history, RUNS, run=name)


@pytest.mark.parametrize(
    ("table", "columns", "why"),
    [
        (METRICS, {"value": float("nan")}, "has the value nan, which is not a number"),
        (METRICS, {"value": float("inf")}, "has the value inf, which is not a number"),
        (EXPECTATIONS, {"value": float("-inf")}, "has the value -inf, which is not a number"),
        (RUNS, {"duration_s": float("nan")}, "has the duration_s nan, which is not a number"),
        (RUNS, {"settings": "{"}, "has the settings '{', which is not a JSON object"),
        (RUNS, {"settings": "[" * 100_000}, "…, which is not a JSON object"),
        (RUNS, {"machine": "7"}, "has the machine '7', which is not a JSON object"),
        (RUNS, {"large_seed": "1e99"}, "has the large_seed '1e99', which is not an integer"),
        (RUNS, {"large_seed": "9" * 21}, "which is not an integer"),
        (METRICS, {"better": "louder"}, "has the better 'louder', which is none of lower, higher"),
        (RUNS, {"verdict": "v" * 1000}, "…, which is none of crashed, failed, invalid, passed"),
    ],
)
def test_impossible_values_are_reported_in_one_line(
    history: History, table: str, columns: dict[str, Any], why: str
) -> None:
    said = problem(history, table, **columns)
    assert why in said
    assert len(said) < 200


def test_unprintable_characters_of_free_text_are_replaced(history: History) -> None:
    read_rows(changed(history, RUNS, problems=[f"no room\n{ESCAPE}", None], reasons=[]), RUNS)
    read_rows(changed(history, EXPECTATIONS, text=ESCAPE), EXPECTATIONS)
    row = history.runs().to_pylist()[1]
    assert row["problems"] == ["no room ?]0;owned?", ""]
    assert history.expectations().to_pylist()[1]["text"] == "?]0;owned?"
    assert history.problems == []


def test_every_text_column_is_sanitized_or_checked() -> None:
    """Future columns are covered, too."""
    texts = {
        (table, field.name)
        for table, schema in files.SCHEMAS.items()
        for field in schema
        if pa.types.is_string(field.type) or pa.types.is_list(field.type)
    }
    checked_otherwise = {(RUNS, "verdict"), (RUNS, "settings"), (RUNS, "machine"), (RUNS, "large_seed")}
    keys = {(table, name) for table in (METRICS, EXPECTATIONS) for name in ("run", "suite", "entry")}
    assert texts == SHOWN | PROSE | checked_otherwise | keys | {(METRICS, "better")}


def test_a_file_with_too_many_rows_is_refused(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "ROWS_MAX", 1)
    with pytest.raises(UnusableError, match="has 4 rows, more than any night: 1"):
        read_rows(night_file(history.folder, METRICS, NIGHT), METRICS)


def test_a_hostile_file_gives_one_line_and_the_rest_is_shown(
    history: History, capsys: pytest.CaptureFixture[str]
) -> None:
    file = changed(history, RUNS, entry=f"cut{ESCAPE}\ncutset: fine")
    strange = file.with_name(f"run-{ESCAPE}\n.parquet")
    os.link(file, strange)
    assert cutset(["history", "--format", "json", "--history", str(history.folder)]) == 1
    said = capsys.readouterr()
    assert [json.loads(line)["run"] for line in said.out.splitlines()] == ["a"]
    assert len(said.err.splitlines()) == 2
    assert all(line.startswith("cutset: ") and line.isprintable() for line in said.err.splitlines())
