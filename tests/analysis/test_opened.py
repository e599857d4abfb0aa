"""Runs in Python and in the notebook of docs/."""

import json
from pathlib import Path

import pytest

import analysis
from analysis.errors import AnalysisError
from analysis.sql.questions import columns_of
from analysis.sql.tables import TABLES
from tests.analysis.inspect.packets.small_run import around_the_cut
from topologies.errors import InputError

NOTEBOOK = Path(__file__).parents[2] / "docs" / "run.ipynb"


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Create a folder with runs/, with an analysed run and a later one without analysis."""
    folder = tmp_path_factory.mktemp("checkout")
    around_the_cut().write(folder / "runs" / "20260314T020000Z-a-0a1b2c")
    later = around_the_cut().write(folder / "runs" / "20260315T020000Z-b-0a1b2c")
    later.summary_json.unlink()
    return folder


@pytest.fixture
def runs(folder, monkeypatch) -> Path:
    monkeypatch.chdir(folder)
    return folder / "runs"


def test_the_latest_run_that_was_analysed_is_opened(runs):
    run = analysis.open()
    assert (run.name, run.path) == ("20260314T020000Z-a-0a1b2c", Path("runs/20260314T020000Z-a-0a1b2c"))
    assert run.summary["verdict"] == "failed"
    assert run.record.plan.system == "sprinkler"
    assert analysis.open(run.name).name == analysis.open(runs / run.name).name == run.name


@pytest.mark.parametrize("name", TABLES)
def test_each_table_has_its_columns(runs, name):
    table = analysis.open().table(name)
    assert table.column_names[: len(columns_of(name))] == columns_of(name)


def test_questions_are_answered(runs):
    assert analysis.open().sql("SELECT count(*) AS n FROM streams").to_pylist() == [{"n": 4}]


def test_missing_runs_are_reported(runs, tmp_path):
    with pytest.raises(AnalysisError, match="there is no table latencies: did you mean latency"):
        analysis.open().table("latencies")
    with pytest.raises(InputError, match="is not analysed yet"):
        analysis.open("20260315T020000Z-b-0a1b2c")
    with pytest.raises(InputError, match="is not a run directory"):
        analysis.open("another")
    with pytest.raises(InputError, match="has no run that was analysed yet"):
        analysis.open("latest", tmp_path)
    with pytest.raises(AttributeError, match="has no attribute 'opened_runs'"):
        _ = analysis.opened_runs


@pytest.mark.spark
@pytest.mark.parametrize("name", ["packets", "streams", "latency"])  # in files, of run.json, with t_ns
def test_a_table_can_be_opened_in_spark(spark, runs, name):
    run = analysis.open()
    frame, table = run.spark(name), run.table(name)
    assert frame.columns == table.column_names
    assert frame.count() == table.num_rows
    assert {row.run for row in frame.select("run").collect()} <= {run.name}


def test_the_notebook_runs_to_its_end(runs, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    cells = [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"]
    known: dict[str, object] = {}
    for cell in cells:
        exec("".join(cell["source"]), known)
    assert len(cells) == 4
    assert known["run"].name == "20260314T020000Z-a-0a1b2c"
