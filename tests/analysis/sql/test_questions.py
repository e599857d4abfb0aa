"""Questions to runs: all that docs/sql.md asks, and what is asked wrongly."""

import re
import shutil
from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from analysis.errors import AnalysisError
from analysis.sql.cases import read_cases
from analysis.sql.questions import columns_of, open_questions
from analysis.sql.records import settings
from analysis.sql.tables import TABLES, tables_as_markdown
from experiments.records.rundir import RunDirectory
from topologies.errors import InputError

DOCS = Path(__file__).parents[3] / "docs"
WORKED = re.findall(r"```sql\n(.*?)```", (DOCS / "sql.md").read_text(), re.DOTALL)


def test_docs_tables_md_is_as_generated():
    assert (DOCS / "tables.md").read_text() == tables_as_markdown()


def test_every_column_has_a_meaning():
    assert [line for line in tables_as_markdown().splitlines() if line.endswith("|  |")] == []


def test_show_tables_lists_the_tables_that_the_run_has(ask):
    listed = set(ask("show tables;").column("name").to_pylist())
    assert {"runs", "latency", "fidelity"} < listed < TABLES.keys()


@pytest.mark.slow
def test_every_column_of_every_table_can_be_queried(ask):
    for table in TABLES:
        found = ask(f"SELECT * FROM {table}").column_names
        assert found[: len(columns_of(table))] == columns_of(table)


@pytest.mark.parametrize("question", WORKED)
def test_worked_questions_are_answered(ask, question):
    ask(question)


def test_events_lost_in_the_cut_are_found(ask):
    [question] = [each for each in WORKED if "fate = 'lost'" in each]
    [row] = ask(question).to_pylist()
    assert (row["sender"], row["receiver"], row["type"]) == ("r2-proxy-0", "r3-proxy-0", "EVENTS")
    assert row["first_s"] == pytest.approx(5.01)


def test_settings_are_columns(ask, runs):
    plan = runs[0].read_run().plan
    [row] = ask("SELECT * FROM runs").to_pylist()
    assert {f"parameter_{name}" for name in plan.parameters} <= set(row)
    assert row["workload_event_size_bytes"] == plan.workload["event_size_bytes"]


def test_an_inline_generated_topology_gives_all_its_columns(runs):
    ring = {"kind": "ring", "regions": 3, "delays": {"from": "5ms", "to": "30ms"}}
    found = settings(replace(runs[0].read_run(), experiment={"topology": ring}))
    assert {name: value for name, value in found.items() if name.startswith("topology_")} == {
        "topology_kind": "ring",
        "topology_regions": 3,
        "topology_delays_from": "5ms",
        "topology_delays_to": "30ms",
    }


def test_runs_are_distinguished_by_their_names(runs):
    with open_questions(read_cases(runs)) as engine:
        found = engine.ask("SELECT run, count(*) AS n FROM packets GROUP BY run").table().to_pylist()
    assert len({row["n"] for row in found}) == 1
    assert {row["run"] for row in found} == {run.name for run in runs}


def test_a_missing_table_has_no_rows(runs, ask):
    assert not runs[0].table("traffic").exists()
    assert ask("SELECT * FROM traffic").num_rows == 0


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (
            "SELECT lost\nFROM deliveries\nWHERE nothing > 1",
            'line 3: `nothing`: Referenced column "nothing" not',
        ),
        ("SELECT lost FROM\nWHERE", "line 2: `WHERE`: syntax error"),
        (
            "SELECT\n  foo(lost)\nFROM deliveries",
            "line 2: `foo(lost)`: Scalar Function with name foo does not",
        ),
        (
            "SELECT client, sum(lost)\nFROM deliveries",
            'line 1: `client`: column "client" must appear in the GROUP',
        ),
        ("SELECT\n CAST(client AS INT) FROM deliveries", "line 2: `CAST(client AS INT)`: Could not convert"),
        ("SELECT lost // 0 FROM deliveries", "Division by zero"),
        ("SELECT sum(t_ns) * 9 FROM packets", "exceeds 64 bits: cast it, as in sum(x::DOUBLE)"),
        ("SELECT * FROM latencies", "there is no table latencies: did you mean latency?"),
        ("SELECT * FROM read_csv('/etc/passwd')", "Cannot access file"),
        ("SELECT * FROM '/etc/passwd.csv'", "Cannot access file"),
        ("SELECT * FROM sql_auto_complete('SEL')", "autocomplete extension"),
        ("COPY packets TO '/tmp/stolen.parquet'", "COPY: only statements that return rows"),
        ("SET enable_external_access = true", "SET: only statements that return rows"),
        ("SELECT 1; DROP VIEW packets", "DROP: only statements that return rows"),
        ("SELECT 1; SELECT 2", "a single question is needed"),
        ("-- nothing", "a single question is needed"),
    ],
)
def test_wrong_questions_are_refused_in_a_line_that_names_the_words(questions, wrong, said):
    with pytest.raises(AnalysisError) as raised:
        questions.ask(wrong).table()
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("SELECT * FROM read_csv('/etc/passwd')", "disabled"),
        ("COPY (SELECT 1) TO '/tmp/stolen.parquet'", "disabled"),
        ("ATTACH '/tmp/stolen.db'", "disabled"),
        ("INSTALL httpfs", "disabled"),
        ("SET enable_external_access = true", "lock"),
    ],
)
def test_duckdb_itself_reads_and_writes_no_files(questions, statement, said):
    with pytest.raises(duckdb.Error, match=said):
        questions._connection.execute(statement)


def test_a_name_is_a_table_and_never_a_variable_of_the_program(questions):
    variable = pa.table({"secret": [1]})
    with pytest.raises(duckdb.Error, match="variable does not exist"):
        questions._connection.sql("FROM variable")
    assert variable.num_rows == 1


def test_a_question_is_duckdbs_sql(ask):
    assert ask("FROM streams SELECT name ORDER BY ALL LIMIT 1").to_pylist() == [{"name": "r0"}]
    assert ask("PIVOT streams ON name USING sum(stream)").to_pylist()[-1]["r3"] in {None, 3}
    described = {row["column_name"]: row["column_type"] for row in ask("DESCRIBE captures").to_pylist()}
    assert described["unused"] == "STRUCT(what VARCHAR, count BIGINT)[]"


def test_numbers_are_integers_and_floats_and_columns_have_names_of_their_own(ask):
    found = ask("SELECT sum(stream) AS n, 1.5 AS d, sum(stream) / 4 AS n FROM streams")
    assert found.to_pylist() == [{"n": 6, "d": 1.5, "n_2": 1.5}]
    assert [str(field.type) for field in found.schema] == ["int64", "double", "double"]


def test_unknown_arguments_of_functions_are_refused_in_one_line(runs):
    with open_questions(read_cases(runs)) as engine, pytest.raises(AnalysisError) as raised:
        engine.ask("SELECT since_start(t_ns) FROM packets").table()
    assert str(raised.value).startswith("a-run and o'brien's \\ run overlap in time")


def test_an_unanalysed_run_is_not_queried(runs, tmp_path):
    run = RunDirectory(shutil.copytree(runs[0].path, tmp_path / "another"))
    run.summary_json.unlink()
    with pytest.raises(InputError, match="is not analysed yet"):
        read_cases([run])
