"""Spark starts quietly and leaves no files, or gives one line with the reason why it does not start."""

import ipaddress
import os
import signal
import socket
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

from analysis import spark_home
from analysis.session import spark_session
from tests.testbed.leftovers import wait_until

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


SESSION_OF_ITS_OWN = """
import os, signal, sys
from pathlib import Path
from threading import Thread, Timer
from pyspark import SparkContext
from analysis.session import spark_session

started = []
thread = Thread(target=lambda: started.append(spark_session()))
thread.start(); thread.join()
[spark] = started
spark.range(9).selectExpr("id", "id % 2 as odd").createOrReplaceTempView("t")
print(spark.sql("select odd, sum(id) from t group by odd order by odd").collect()[1][1])
print(spark.sparkContext.parallelize([1, 2]).map(lambda n: n * 2).sum())
[folder] = Path().iterdir()
print(*sorted({path.name.split("-")[0] for path in folder.iterdir()} & {"blockmgr", "spark"}))

Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    spark.sparkContext._jvm.java.lang.Thread.sleep(60_000)
except KeyboardInterrupt:
    print("interrupted")

print("killed", file=sys.stderr)
SparkContext._gateway.proc.kill(); SparkContext._gateway.proc.wait()
print(spark_session().range(5).count())
SparkContext._gateway.proc.kill(); SparkContext._gateway.proc.wait()
"""


@dataclass(frozen=True)
class RunResult:
    """The result of a Python process with a Spark session. left: files left in its temporary directory."""

    code: int
    said: list[str]
    errors: str
    left: list[Path]


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    """Run a session in a temporary directory with remains of a killed one; its Java is killed twice."""
    folder = tmp_path_factory.mktemp("session")
    (folder / "cutset-spark-killed" / "blockmgr-0" / "00").mkdir(parents=True)
    done = in_python(SESSION_OF_ITS_OWN, folder, TMPDIR=str(folder))
    return RunResult(done.returncode, done.stdout.splitlines(), done.stderr, list(folder.iterdir()))


@pytest.mark.spark
def test_a_session_of_its_own_computes_and_is_quiet(ended: RunResult) -> None:
    assert ended.said[:2] == ["16", "6"], ended.errors
    assert ended.errors.partition("killed\n")[0] == ""


@pytest.mark.spark
def test_ctrl_c_while_waiting_for_java_shows_no_traceback_and_killed_java_is_restarted(
    ended: RunResult,
) -> None:
    assert (ended.code, ended.said[3:]) == (0, ["interrupted", "5"]), ended.errors


@pytest.mark.spark
def test_a_session_leaves_no_files_even_if_java_or_python_is_killed(ended: RunResult) -> None:
    assert ended.said[2] == "blockmgr spark"  # the one folder had what would be left
    assert ended.left == []


KILLED_AT_THE_START = """
import os, signal, subprocess, tempfile
from pyspark import java_gateway
from analysis import session
def launch(*_):  # as PySpark does
    tempfile.mkdtemp()
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    java = java_gateway.Popen(["sleep", "100"], preexec_fn=lambda: None, **quiet)
    print(java.pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
java_gateway.launch_gateway = launch
session.spark_session()
"""


def test_nothing_is_left_if_python_is_killed_while_java_starts(tmp_path: Path) -> None:
    done = in_python(KILLED_AT_THE_START, tmp_path, TMPDIR=str(tmp_path))
    assert done.returncode == -signal.SIGKILL
    wait_until(lambda: not any(tmp_path.iterdir()), "the end of its temporary files")
    wait_until(lambda: not psutil.pid_exists(int(done.stdout)), "the end of Java")


@pytest.mark.spark
def test_a_second_call_returns_the_same_session_in_any_thread(spark: SparkSession) -> None:
    assert spark_session() is spark
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(spark_session).result() is spark


def java_of(spark: SparkSession) -> psutil.Process:
    return psutil.Process(spark.sparkContext._gateway.proc.pid)


def listening(process: psutil.Process) -> list[tuple[str, int]]:
    found = process.net_connections("inet")
    return [tuple(each.laddr) for each in found if each.status == psutil.CONN_LISTEN]


def answer_to(port: int, body: bytes) -> bytes:
    """Return Spark's answer to an RPC without a secret, as frames on the wire; b"" if it does not answer."""
    request, kind, number = 21 + len(body), 3, 7
    with socket.create_connection(("127.0.0.1", port), 10) as connection:
        connection.sendall(struct.pack(">qbqi", request, kind, number, len(body)) + body)
        with connection.makefile("rb") as stream, suppress(TimeoutError, ConnectionError, struct.error):
            (length,) = struct.unpack(">q", stream.read(8))
            return stream.read(length - 8)
    return b""


@pytest.mark.spark
def test_requests_without_the_secret_are_ignored(spark: SparkSession) -> None:
    py4j = spark.sparkContext._gateway.gateway_parameters.port
    driver = int(spark.sparkContext.getConf().get("spark.driver.port"))
    ports = [port for _, port in listening(java_of(spark)) if port != py4j]
    with ThreadPoolExecutor(len(ports)) as pool:  # a port that does not answer takes until a timeout
        answers = pool.map(lambda port: answer_to(port, b"\x00 whatever an executor would say"), ports)
    heard = {port: answer for port, answer in zip(ports, answers, strict=True) if answer}
    assert driver in heard
    assert (
        len(heard) >= 2
    )  # the driver's and the block manager's; PySpark's own, of earlier work, say nothing
    for answer in heard.values():
        assert answer[0] == 5  # a failure
        assert b"Expected SaslMessage" in answer
    assert spark.sparkContext.parallelize([1, 2], 2).map(lambda number: number + 1).collect() == [2, 3]


@pytest.mark.spark
def test_the_secret_of_a_session_is_on_no_command_line_and_in_no_environment(spark: SparkSession) -> None:
    java = spark.sparkContext._jvm
    user = java.org.apache.hadoop.security.UserGroupInformation.getCurrentUser()
    secret = user.getCredentials().getSecretKey(java.org.apache.hadoop.io.Text("sparkCookie")).decode()
    assert len(secret) >= 32
    seen = 0
    for process in psutil.process_iter():
        try:
            told = [*process.cmdline(), *process.environ().values()]
        except psutil.Error:
            continue  # gone, or of the kernel
        seen += 1
        assert not any(secret in text for text in told)
    assert seen > 1


@pytest.mark.spark
def test_spark_listens_on_loopback_alone(spark: SparkSession) -> None:
    spark.sparkContext.parallelize([1, 2], 2).map(str).collect()  # Python's workers have a port, too
    java = java_of(spark)
    found = [place for process in (java, *java.children(recursive=True)) for place in listening(process)]
    assert len(found) >= 4
    for host, _ in found:
        address = ipaddress.ip_address(host)
        assert (getattr(address, "ipv4_mapped", None) or address).is_loopback


def test_a_class_archive_is_used_only_if_it_exists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_home, "FOLDER", tmp_path)
    assert spark_home.archive_options() == ()
    spark_home.archive_path().touch()
    assert f"-XX:SharedArchiveFile={spark_home.archive_path()}" in spark_home.archive_options()


def test_a_class_archive_is_specific_to_one_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = spark_home.archive_path()
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\n")
    java.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert spark_home.archive_path() != before
