"""`cutset hunt --master` on a real standalone cluster, whose executors know nothing of our checkout: cases
run there, the same comes of them as here, and no process stays.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from experiments.hunting.huntdir import HuntDirectory
from testbed.campaign import exit_codes
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


def hunted(cluster, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    with hunting(cluster, folder, *options) as process:
        said, errors = process.communicate(timeout=WAIT_S)
    return subprocess.CompletedProcess(process.args, process.returncode, said, errors)


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


def test_cases_run_on_its_cores_and_the_same_comes_of_them(cluster, tmp_path):
    done = hunted(cluster, tmp_path / "there", "nemesis", *SMALL, "--runs", "4")
    assert done.returncode == exit_codes.FINE, done.stderr
    assert "2 cores of the cluster run cases" in done.stderr
    here = subprocess.run(
        [*COMMAND, "nemesis", *SMALL, "--runs", "4", "-o", str(tmp_path / "here")],
        env=os.environ | {"PYTHONPATH": str(CHECKOUT)},
        timeout=WAIT_S,
        check=False,
    )
    assert here.returncode == exit_codes.FINE
    there, locally = (HuntDirectory(tmp_path / place).progress() for place in ("there", "here"))
    assert (there.runs, there.refused, there.violations) == (
        locally.runs,
        locally.refused,
        locally.violations,
    )
    assert there.runs == 4
    wait_until(lambda: workers(cluster) == [], "the end of the hunt's processes", WAIT_S)


def test_a_hunt_continues_when_an_executor_is_killed(cluster, tmp_path):
    folder = tmp_path / "hunt"
    with hunting(cluster, folder, "nemesis", *SMALL, "--runs", "16") as process:
        wait_until(lambda: _runs(folder) >= 3, "the first runs", WAIT_S)
        killed = cluster.executors[0]
        killed.kill()
        _, errors = process.communicate(timeout=WAIT_S)
    assert process.returncode == exit_codes.FINE, errors
    assert _runs(folder) == 16
    assert killed.pid not in {executor.pid for executor in cluster.executors}
    wait_until(lambda: workers(cluster) == [], "the end of the hunt's processes", WAIT_S)


def _runs(folder: Path) -> int:
    return HuntDirectory(folder).progress().runs if (folder / "progress.json").exists() else 0


def test_missing_packages_of_the_cluster_are_reported_in_one_line(cluster, tmp_path):
    poor = tmp_path / "python"
    poor.write_text(f'#!/bin/sh\nPYTHONPATH="{tmp_path}/lacking:$PYTHONPATH" exec {cluster.python} "$@"\n')
    poor.chmod(0o755)
    lacking = tmp_path / "lacking"
    lacking.mkdir()
    (lacking / "pydantic.py").write_text("raise ModuleNotFoundError('No module named pydantic')")
    done = hunted(replace(cluster, python=poor), tmp_path / "hunt", "nemesis", *SMALL, "--runs", "10")
    assert done.returncode == exit_codes.FAILED
    [line] = [line for line in done.stderr.splitlines() if line.startswith("cutset: ")]
    assert "No module named pydantic" in line
