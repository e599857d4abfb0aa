"""A small run is analysed without Spark and a large one with it; the results are the same."""

import shutil

import pytest

from analysis.jobs import choice
from analysis.jobs.choice import workers_at
from analysis.jobs.spark import Executors
from analysis.pipeline import analyze
from experiments.records.rundir import RunDirectory
from tests.analysis.jobs.rows import content_of
from tests.analysis.timelines.captured import write_run
from tests.analysis.timelines.world import run_json, simulate

pytestmark = pytest.mark.spark

READING = ["reading packets and messages", "following events", "following streams", "summing up"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("runs") / "a-run", simulate(), run_json(), [])


@pytest.fixture(scope="module")
def analyzed_here(run):
    told = []
    analyze(run, progress=told.append)
    assert told == READING
    return content_of(run)


@pytest.fixture
def copy(run, tmp_path):
    return RunDirectory(shutil.copytree(run.path, tmp_path / run.name))


def test_spark_gives_the_same_rows_and_summary(spark, analyzed_here, copy):
    told = []
    with workers_at("local[2]") as found:
        analyze(copy, workers_for=found, progress=told.append)
    assert told == ["starting Spark", *READING]
    assert content_of(copy) == analyzed_here


def test_a_large_run_takes_spark_unasked(spark, run, monkeypatch):
    monkeypatch.setattr(choice, "BYTES_HERE", 1 << 10)
    told = []
    with workers_at() as found, found(run, told.append) as workers:
        assert isinstance(workers, Executors)
    assert told == ["starting Spark"]
