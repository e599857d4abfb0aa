"""Questions to runs: all that docs/sql.md asks, on both engines, and what is asked wrongly."""

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.errors import AnalysisError
from analysis.sql.dialect import Translation
from analysis.sql.duckdb_engine import duckdb_questions
from analysis.sql.questions import Questions, RunCase, columns_of, read_cases
from analysis.sql.records import settings
from analysis.sql.spark_engine import SparkEngine
from analysis.sql.tables import TABLES, tables_as_markdown
from experiments.records.rundir import RunDirectory
from topologies.errors import InputError

DOCS = Path(__file__).parents[3] / "docs"
WORKED = re.findall(r"```sql\n(.*?)```", (DOCS / "sql.md").read_text(), re.DOTALL)


def on_spark(spark, cases: list[RunCase]) -> Questions:
    """Return the engine of Spark in a new session."""
    return Questions(SparkEngine(spark.newSession()), cases)


def test_the_page_of_tables_is_what_the_definitions_say():
    assert (DOCS / "tables.md").read_text() == tables_as_markdown()


def test_every_column_has_a_meaning():
    assert [line for line in tables_as_markdown().splitlines() if line.endswith("|  |")] == []


@pytest.mark.slow
def test_every_table_can_be_asked_by_its_columns(ask):
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
    with duckdb_questions(read_cases(runs)) as engine:
        found = engine.ask("SELECT run, count(*) AS n FROM packets GROUP BY run").table().to_pylist()
    assert len({row["n"] for row in found}) == 1
    assert {row["run"] for row in found} == {run.name for run in runs}


def test_a_table_that_a_run_lacks_has_no_rows(runs, ask):
    assert not runs[0].table("traffic").exists()
    assert ask("SELECT * FROM traffic").num_rows == 0


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("SELECT nothing FROM packets", "nothing"),
        ("SELEC 1", "only statements that return rows"),
        ("SELECT * FROM read_csv('/etc/passwd')", "`read_csv('/etc/passwd')` is not in the dialect"),
        ("SELECT * FROM parquet.`/tmp/x`", "is no table"),
        ("SELECT * FROM packets__0", "`packets__0` is no table"),
        ("COPY packets TO '/tmp/stolen.parquet'", "only statements that return rows"),
        ("SET enable_external_access = true", "only statements that return rows"),
        ("-- nothing", "only statements that return rows"),
    ],
)
def test_unanswerable_questions_are_refused_in_one_line(runs, wrong, said):
    with duckdb_questions(read_cases(runs[:1])) as engine, pytest.raises(AnalysisError) as raised:
        engine.ask(wrong).table()
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("SELECT * FROM read_csv('/etc/passwd')", "disabled"),
        ("COPY (SELECT 1) TO '/tmp/stolen.parquet'", "disabled"),
        ("INSTALL httpfs", "disabled"),
        ("SET enable_external_access = true", "lock"),
    ],
)
def test_duckdb_itself_reads_and_writes_no_files(runs, statement, said):
    translation = Translation("", statement, (), ())
    with duckdb_questions(read_cases(runs[:1])) as questions, pytest.raises(AnalysisError, match=said):
        questions._engine.answer(translation).table()


def test_unknown_arguments_of_functions_are_refused_in_one_line(runs):
    with duckdb_questions(read_cases(runs)) as engine, pytest.raises(AnalysisError) as raised:
        engine.ask("SELECT since_start(t_ns) FROM packets").table()
    assert str(raised.value).startswith("a-run and o'brien's \\ run overlap in time")


def test_an_unanalysed_run_is_not_queried(runs, tmp_path):
    run = RunDirectory(shutil.copytree(runs[0].path, tmp_path / "another"))
    run.summary_json.unlink()
    with pytest.raises(InputError, match="is not analysed yet"):
        read_cases([run])


@pytest.mark.spark
def test_spark_says_in_a_line_what_is_wrong(spark, runs):
    engine = on_spark(spark, read_cases(runs))
    for wrong, said in (
        ("SELECT nothing FROM packets", "nothing"),
        ("SELECT since_start(t_ns) FROM packets", "overlap in time"),
    ):
        with pytest.raises(AnalysisError, match=said) as raised:
            engine.ask(wrong)
        assert "\n" not in str(raised.value)
