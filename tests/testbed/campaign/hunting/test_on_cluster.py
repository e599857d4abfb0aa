"""`cutset hunt --master` on a real standalone cluster, whose executors know nothing of our checkout: cases
run there, the same comes of them as here, and no process stays.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from experiments.hunting.huntdir import HuntDirectory
from testbed.campaign import exit_codes
from testbed.cli import main
from tests.analysis.jobs.standalone import standalone
from tests.testbed.leftovers import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.slow]

CHECKOUT = Path(__file__).parents[4]
COMMAND = [sys.executable, "-c", "from testbed.cli.main import main; main()", "hunt"]
SMALL = ["--set", "nemesis.vary=null", "--set", "duration=14s", "--set", "workload.rate=10/s"]
WAIT_S = 300


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with standalone(tmp_path_factory.mktemp("cluster") / "spark") as running:
        yield running


@contextmanager
def hunting(cluster, folder: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [*COMMAND, *options, "-o", str(folder), "--master", cluster.url],
        cwd=folder.parent,
        env=os.environ | {"PYTHONPATH": str(CHECKOUT), "PYSPARK_PYTHON": str(cluster.python)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def workers(cluster) -> list[psutil.Process]:
    """Return the processes of hunts on the machines of a cluster."""
    found = []
    for pid in cluster.workers:
        for child in psutil.Process(pid).children(recursive=True):
            try:
                if "testbed.campaign.hunting.worker" in child.cmdline():
                    found.append(child)
            except psutil.NoSuchProcess:
                pass
    return found


def test_cases_run_on_its_cores_though_an_executor_is_killed_and_the_same_comes_of_them(cluster, tmp_path):
    there = tmp_path / "there"
    with hunting(cluster, there, "nemesis", *SMALL, "--runs", "8") as process:
        wait_until(lambda: _runs(there) >= 2, "the first runs", WAIT_S)
        killed = cluster.executors[0]
        killed.kill()
        _, errors = process.communicate(timeout=WAIT_S)
    assert process.returncode == exit_codes.FINE, errors
    assert "2 cores of the cluster run cases" in errors
    assert killed.pid not in {executor.pid for executor in cluster.executors}
    wait_until(lambda: workers(cluster) == [], "the end of the hunt's processes", WAIT_S)
    assert (
        main.run(["hunt", "nemesis", *SMALL, "--runs", "8", "-o", str(tmp_path / "here")]) == exit_codes.FINE
    )
    found, locally = (HuntDirectory(tmp_path / place).progress() for place in ("there", "here"))
    assert found.runs == locally.runs == 8
    assert (found.refused, found.violations) == (locally.refused, locally.violations)


def _runs(folder: Path) -> int:
    return HuntDirectory(folder).progress().runs if (folder / "progress.json").exists() else 0
