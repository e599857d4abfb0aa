"""Whole commands, as root from a folder that all users may write to, execute nothing from the folder."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from experiments.records.rundir import RunDirectory
from tests.testbed.campaign.night_fixtures import VIRTUAL
from tests.testbed.runner.live import PROJECT, write_experiment
from tests.testbed.sandbox.planting import marks, plant_modules, plant_programs

CUTSET = [sys.executable, "-P", "-c", "from testbed.cli.main import main; main()"]
"""The console script's path has no working directory in it either."""
PROGRAMS = ("ip", "git", "tcpdump", "mount", "nsenter", "setpriv", "unshare", "bridge", "mnexec", "java")
SUITE = "suite: virtual\nbudget: 5min\nentries:\n  - {{name: tiny, experiment: {experiment}, repeat: 2}}\n"


def command(folder: Path, *arguments: str) -> str:
    """Execute a command there, which must succeed; return its output."""
    environment = {**os.environ, "PYTHONPATH": str(PROJECT), "PATH": f".:{os.environ['PATH']}:"}
    done = subprocess.run(
        [*CUTSET, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode in {0, 1}, done.stderr  # 1: a busy machine, whose links are late
    return done.stdout + done.stderr


def planted(folder: Path) -> Path:
    """Create a folder with an experiment and another user's modules and programs; return the experiment."""
    plant_modules(folder)
    plant_programs(folder, PROGRAMS)
    return write_experiment(folder)


@pytest.mark.network
@pytest.mark.spark
def test_a_watched_run_with_spark_executes_nothing_from_the_folder(tmp_path):
    experiment = planted(tmp_path)
    command(tmp_path, "run", experiment.name, "--live", "--no-analyze", "--out", "runs")
    [run] = (tmp_path / "runs").iterdir()
    command(tmp_path, "analyze", str(run), "--master", "local[2]")
    assert RunDirectory(run).summary_json.is_file()
    assert marks(tmp_path) == []


def test_a_night_of_several_processes_executes_nothing_from_the_folder(tmp_path):
    experiment = planted(tmp_path)
    experiment.write_text(experiment.read_text() + VIRTUAL)
    (tmp_path / "virtual.yaml").write_text(SUITE.format(experiment="./tiny.yaml"))
    said = command(tmp_path, "nightly", "virtual.yaml", "--jobs", "2")
    assert "tiny" in said
    assert list((tmp_path / "runs").rglob("task.log"))
    assert marks(tmp_path) == []
