"""A run's captures become complete tables, even if some captures are damaged."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from analysis import tables
from analysis.capture.pcap.streams import HostCapture
from analysis.errors import AnalysisError
from analysis.jobs.extraction import SCHEMAS, MessagesTask, load_indices, plan_tasks
from analysis.jobs.spark import Executors
from experiments.records.json_files import read_json
from experiments.records.rundir import RunDirectory
from testbed.sandbox.outside import PROJECT
from tests.bench.traffic import write_run
from tests.run_json import set_run
from tests.testbed.leftovers import wait_until

ROUNDS = 20
REGIONS = 2


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    write_run(tmp_path / "run", ROUNDS, regions=REGIONS)
    return RunDirectory(tmp_path / "run")


def table(spark: SparkSession, run: RunDirectory, name: str) -> DataFrame:
    return spark.read.parquet(str(run.table(name)))


@pytest.mark.spark
def test_a_run_becomes_its_tables(spark: SparkSession, run: RunDirectory) -> None:
    tables.extract(Executors(spark.sparkContext), run)
    indices, unusable = load_indices(run)
    packets = table(spark, run, "packets")
    assert packets.count() == sum(index.packets for index in indices.values())
    assert packets.select("capture").distinct().count() == len(indices) == REGIONS * 4 + 2
    assert not unusable
    messages = table(spark, run, "messages")
    by_type = {row["type"]: row["count"] for row in messages.groupBy("type").count().collect()}
    # every message is seen by the host that sends it and by the one that gets it
    assert by_type == {"PUBLISH": 2 * REGIONS * ROUNDS, "PUBLISHED": 2 * REGIONS * ROUNDS,
                       "EVENTS": 2 * REGIONS * ROUNDS * (2 * REGIONS + REGIONS - 1)}  # fmt: skip
    published = (
        messages.where("type = 'PUBLISH' and host = 'r1-driver-0'").orderBy("request").toArrow().to_pylist()
    )
    assert [row["request"] for row in published] == [1 + 100 * n for n in range(ROUNDS)]
    assert {(row["direction"], row["stream"], row["count"]) for row in published} == {("out", 1, 100)}
    assert table(spark, run, "gaps").count() == 0
    counts = table(spark, run, "decoding").toArrow().to_pylist()
    assert sum(row["messages"] for row in counts) == messages.count()
    assert {row["stopped"] for row in counts} == {None}
    assert {row["problem"] for row in table(spark, run, "captures").collect()} == {None}


@pytest.mark.spark
def test_extracting_again_gives_the_same_and_clears_an_interrupted_one(
    spark: SparkSession, run: RunDirectory
) -> None:
    tables.extract(Executors(spark.sparkContext), run)
    first = {name: table(spark, run, name).count() for name in SCHEMAS}
    leftover = run.analysis / ".making-killed" / "packets.part"
    leftover.mkdir(parents=True)
    (leftover / "part-99999.parquet").write_bytes(b"torn")
    tables.extract(Executors(spark.sparkContext), run)
    assert {name: table(spark, run, name).count() for name in SCHEMAS} == first
    assert sorted(path.name for path in run.analysis.iterdir()) == sorted(
        f"{name}.parquet" for name in SCHEMAS
    )


@pytest.mark.spark
def test_a_capture_that_cannot_be_used_is_named_and_the_rest_analysed(
    spark: SparkSession, run: RunDirectory
) -> None:
    run.capture("r0-driver-0-eth0.pcap").write_bytes(b"")
    run.capture("r0-client-0-eth0.pcap").unlink()
    truncated = run.capture("r1-proxy-0-eth0.pcap")
    truncated.write_bytes(truncated.read_bytes()[:-7])
    tables.extract(Executors(spark.sparkContext), run)
    rows = {row["capture"]: row for row in table(spark, run, "captures").collect()}
    assert "empty" in rows["r0-driver-0-eth0"]["problem"]
    assert "cannot be read" in rows["r0-client-0-eth0"]["problem"]
    assert "cut off" in rows["r1-proxy-0-eth0"]["problem"]
    assert rows["r1-proxy-0-eth0"]["good_bytes"] < rows["r1-proxy-0-eth0"]["bytes"]
    assert table(spark, run, "messages").where("host = 'r1-proxy-0'").count() > 0
    assert table(spark, run, "packets").where("capture = 'r0-driver-0-eth0'").count() == 0


@pytest.mark.spark
def test_a_run_without_captures_has_empty_tables(spark: SparkSession, tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    set_run(run)
    tables.extract(Executors(spark.sparkContext), run)
    assert {name: table(spark, run, name).count() for name in SCHEMAS} == dict.fromkeys(SCHEMAS, 0)


@pytest.mark.spark
def test_a_failing_task_is_reported_and_leaves_the_old_tables(
    spark: SparkSession, run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables.extract(Executors(spark.sparkContext), run)
    before = table(spark, run, "packets").count()
    missing = HostCapture(str(run.path / "gone.pcap"), "r0-proxy-0", "10.0.0.2", 7000)
    monkeypatch.setattr(tables, "plan_tasks", lambda *_: [MessagesTask(missing, "sprinkler", None, 1)])
    with pytest.raises(AnalysisError, match=r"gone\.pcap: cannot be read"):
        tables.extract(Executors(spark.sparkContext), run)
    assert table(spark, run, "packets").count() == before


def test_the_longest_tasks_come_first_and_link_captures_give_no_messages(run: RunDirectory) -> None:
    tasks = plan_tasks(run, load_indices(run)[0])
    weights = [task.weight for task in tasks]
    assert weights == sorted(weights, reverse=True)
    hosts = {host["name"] for host in read_json(run.run_json)["plan"]["hosts"]}
    assert {task.capture.host for task in tasks if hasattr(task, "capture")} == hosts


def test_an_unknown_system_has_packets_but_no_messages(run: RunDirectory) -> None:
    content = read_json(run.run_json)
    content["plan"]["system"] = "mosquitto"
    run.run_json.write_text(json.dumps(content))
    assert not [task for task in plan_tasks(run, load_indices(run)[0]) if hasattr(task, "capture")]


def test_a_killed_analysis_leaves_no_partial_table(run: RunDirectory) -> None:
    code = f"""
import os, signal
from pathlib import Path
from analysis.tables import SCHEMAS, staged_tables
from experiments.records.rundir import RunDirectory
run = RunDirectory(Path({str(run.path)!r}))
with staged_tables(run, SCHEMAS):
    os.kill(os.getpid(), signal.SIGKILL)
"""
    killed = subprocess.run([sys.executable, "-c", code], check=False, cwd=PROJECT)
    assert killed.returncode == -signal.SIGKILL
    wait_until(lambda: not list(run.analysis.iterdir()), "no table in the making")
