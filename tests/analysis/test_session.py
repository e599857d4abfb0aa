"""Spark starts quietly and leaves nothing behind, or says in a line why it does not start."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from analysis import archive
from analysis.session import spark_session

CHECKOUT = Path(__file__).parents[2]


def in_python(code: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run code in a Python of its own, in this folder."""
    variables = os.environ | {"PYTHONPATH": str(CHECKOUT)} | environment
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)


def test_without_java_the_error_says_what_to_install(tmp_path: Path) -> None:
    code = "from analysis.session import spark_session\nspark_session()"
    done = in_python(code, tmp_path, JAVA_HOME="/nonexistent")
    last = done.stderr.strip().splitlines()[-1]
    assert "AnalysisError: Spark did not start" in last
    assert "openjdk-17-jre-headless" in last


@pytest.mark.spark
def test_a_session_of_its_own_is_quiet_and_leaves_nothing(tmp_path: Path) -> None:
    code = (
        "from threading import Thread\n"
        "from analysis.session import spark_session\n"
        "started = []\n"
        "thread = Thread(target=lambda: started.append(spark_session()))\n"
        "thread.start(); thread.join()\n"
        "spark = started[0]\n"
        "spark.range(9).selectExpr('id', 'id % 2 as odd').createOrReplaceTempView('t')\n"
        "print(spark.sql('select odd, sum(id) from t group by odd order by odd').collect()[1][1])\n"
        "print(spark.sparkContext.parallelize([1, 2]).map(lambda n: n * 2).sum())\n"
        "spark.stop()\n"
    )
    done = in_python(code, tmp_path, TMPDIR=str(tmp_path))
    assert (done.returncode, done.stdout, done.stderr) == (0, "16\n6\n", "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.spark
def test_asking_again_gives_the_session_that_there_is_in_any_thread(spark: SparkSession) -> None:
    assert spark_session() is spark
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(spark_session).result() is spark


def test_an_archive_of_classes_is_used_only_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "FOLDER", tmp_path)
    assert archive.archive_options() == ()
    archive.archive_path().touch()
    assert f"-XX:SharedArchiveFile={archive.archive_path()}" in archive.archive_options()


def test_an_archive_belongs_to_one_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = archive.archive_path()
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\n")
    java.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert archive.archive_path() != before


@pytest.mark.spark
def test_java_that_was_killed_is_started_anew_and_leaves_nothing(tmp_path: Path) -> None:
    code = (
        "from pathlib import Path\n"
        "from pyspark import SparkContext\n"
        "from analysis.session import spark_session\n"
        "spark_session()\n"
        "[folder] = Path().iterdir()\n"
        "print(sorted({path.name.split('-')[0] for path in folder.iterdir()} & {'blockmgr', 'spark'}))\n"
        "SparkContext._gateway.proc.kill(); SparkContext._gateway.proc.wait()\n"
        "print(spark_session().range(5).count(), len(list(Path().iterdir())), flush=True)\n"
        "SparkContext._gateway.proc.kill(); SparkContext._gateway.proc.wait()\n"
    )
    (tmp_path / "cutset-spark-killed" / "blockmgr-0" / "00").mkdir(parents=True)
    done = in_python(code, tmp_path, TMPDIR=str(tmp_path))
    assert (done.returncode, done.stdout) == (0, "['blockmgr', 'spark']\n5 1\n"), done.stderr
    assert list(tmp_path.iterdir()) == []
