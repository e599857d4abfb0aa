"""`cutset sql`: answers as people and programs get them."""

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analysis.sql.answers import OutputFormat, write
from analysis.sql.questions import QueryResult
from testbed.cli import main
from tests.analysis.inspect.packets.small_run import around_the_cut

LOST = "SELECT sender, receiver, length, fate FROM transfers WHERE fate = 'lost'"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return around_the_cut().write(tmp_path_factory.mktemp("runs") / "a-run")


@pytest.mark.slow
def test_rows_are_a_table(run, capsys):
    assert main.run(["sql", str(run.path), LOST]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "sender      receiver    length  fate",
        "----------  ----------  ------  ----",
        "r2-proxy-0  r3-proxy-0     146  lost",
        "(1 row)",
    ]


def test_a_long_table_is_shortened_with_a_message(run, capsys):
    assert main.run(["sql", str(run.path), "SELECT * FROM range(1000)"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 203
    assert lines[-1] == "(1000 rows, first 200 shown; --format csv writes all)"


def test_rows_are_csv_with_lists_as_text(run, capfdbinary):
    query = "SELECT name, publishers, NULL AS nothing FROM streams ORDER BY name"
    assert main.run(["sql", str(run.path), query, "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capfdbinary.readouterr().out.decode())))
    assert len(rows) == 4
    assert rows[0] == {"name": "r0", "publishers": '["r0"]', "nothing": ""}


def test_bytes_are_digits_in_csv():
    rows = pa.record_batch({"key": pa.array([b"ab", None], pa.binary())})
    with io.BytesIO() as written:
        write(QueryResult(rows.schema, iter([rows])), OutputFormat.CSV, written)
        assert written.getvalue().split() == [b'"key"', b'"6162"']


def test_rows_are_lines_of_json(run, capfdbinary):
    assert main.run(["sql", str(run.path), LOST, "--format", "json"]) == 0
    [line] = capfdbinary.readouterr().out.splitlines()
    assert json.loads(line) == {
        "sender": "r2-proxy-0",
        "receiver": "r3-proxy-0",
        "length": 146,
        "fate": "lost",
    }


def test_rows_are_a_parquet_file(run, tmp_path, capsys):
    output = tmp_path / "lost.parquet"
    assert main.run(["sql", str(run.path), LOST, "--format", "parquet", "--output", str(output)]) == 0
    assert capsys.readouterr().out.strip() == str(output)
    assert pq.read_table(output).to_pylist()[0]["fate"] == "lost"


def test_a_question_can_come_from_a_file(run, tmp_path, capsys):
    (tmp_path / "lost.sql").write_text(LOST)
    assert main.run(["sql", str(run.path), "--file", str(tmp_path / "lost.sql")]) == 0
    assert "(1 row)" in capsys.readouterr().out


@pytest.mark.slow
def test_questions_come_from_standard_input_until_one_fails(run):
    asked = subprocess.run(
        [sys.executable, "-m", "testbed.cli.main", "sql", str(run.path)],
        input=f"SELECT 1 AS one;\n-- and; another\n{LOST}; SELECT nothing FROM packets; SELECT 2 AS two",
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=os.environ | {"PYTHONPATH": str(Path.cwd())},
    )
    assert asked.stdout.count("(1 row)") == 2, asked.stderr
    assert asked.returncode == 1
    [line] = asked.stderr.splitlines()
    assert line.startswith("cutset: ")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["no-such-run", "SELECT 1"], 2, "there is no such run"),
        (["SELECT 1"], 2, "which run?"),
        (["RUN", "SELECT nothing FROM packets"], 1, "nothing"),
        (["RUN", "SELECT 1", "--format", "parquet"], 2, "--output FILE"),
        (["RUN", "SELECT 1", "--output", "/no/such/folder/x"], 2, "its directory does not exist"),
        (["RUN", "SELECT INTERVAL 1 DAY", "--format", "parquet", "--output", "o"], 1, "CAST it to VARCHAR"),
        (["RUN", "SELECT 1", "--file", "/dev/null"], 2, "--file gives the question"),
        (["RUN", "SELEC 1"], 1, "line 1: `SELEC`: syntax error"),
        (["RUN", "COPY runs TO 'rows.csv'"], 1, "only statements that return rows"),
        (["RUN", ""], 2, "is empty: is a variable of the shell not set?"),
        (["RUN", ";"], 2, "the question is empty"),
        (["RUN", "SELECT(nothing)"], 1, "nothing"),
        (["RUN", "--outptu"], 2, "No such option '--outptu'"),
        (["RUN", "SELECT 1", "--spark"], 2, "--spark: DuckDB answers all questions"),
        (["RUN", "no-such-run"], 2, "there is no such run"),
    ],
)
def test_errors_are_one_line_and_write_nothing(run, capsys, monkeypatch, tmp_path, arguments, code, said):
    monkeypatch.chdir(tmp_path)
    assert main.run(["sql", *(str(run.path) if each == "RUN" else each for each in arguments)]) == code
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error
    assert not any(tmp_path.iterdir())


def test_a_pipe_is_not_replaced_by_a_file(run, capsys, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert main.run(["sql", str(run.path), "SELECT 1", "--output", str(tmp_path / "pipe")]) == 2
    assert "is not a regular file" in capsys.readouterr().err
    assert (tmp_path / "pipe").is_fifo()


def test_a_name_cannot_write_to_the_terminal(run, capsys):
    assert main.run(["sql", str(run.path), "SELECT '\x1b[2J\u202e' AS name"]) == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "\u202e" not in shown


@pytest.mark.parametrize("question", ["TABLE runs", "-- of all\nSELECT 1", "/* of all */ SELECT 1"])
def test_a_question_may_begin_with_any_word_or_a_comment(run, capsys, question):
    assert main.run(["sql", str(run.path), question]) == 0
    assert "(1 row)" in capsys.readouterr().out


def test_each_of_several_questions_is_answered(run, capsys, tmp_path):
    assert main.run(["sql", str(run.path), "SELECT 1 AS a; /* ; */ SELECT 2 AS b; -- ;"]) == 0
    assert capsys.readouterr().out.split() == ["a", "-", "1", "(1", "row)", "b", "-", "2", "(1", "row)"]
    output = ["--output", str(tmp_path / "rows.csv"), "--format", "csv"]
    assert main.run(["sql", str(run.path), "SELECT 1; SELECT 2", *output]) == 2
    assert "--output takes one question, but there are 2" in capsys.readouterr().err


def test_a_question_may_be_longer_than_a_file_name_can_be(run, capsys):
    long = " UNION ALL ".join(["SELECT 1 AS one"] * 300)
    assert main.run(["sql", str(run.path), long]) == 0
    assert "(300 rows" in capsys.readouterr().out
