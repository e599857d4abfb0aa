"""Systems of programs are hunted on real processes: violations are found, shrunk, counted and kept with their
packets, and no run is left behind.
"""

import os
import shutil
import subprocess
from pathlib import Path

import psutil
import pytest

from experiments.child_python import python_command
from experiments.hunting.huntdir import HuntDirectory
from experiments.loader import load_experiment
from testbed.campaign import exit_codes
from testbed.campaign.hunting import hunt as hunting
from testbed.campaign.hunting.counts import read_counts
from testbed.cli import main
from tests.testbed.leftovers import wait_until

WAIT_S = 60

EXPERIMENT = """\
name: forgetful
topology: one-region
system: ./forgetful
roles: {server: 1, publisher: 1, subscriber: 1}
workload: {event_size: 100B, rate: 20/s}
duration: 3s
drain: 1s
nemesis: {roles: [server], start: 300ms, shortest: 300ms, longest: 600ms, settle: 200ms, quiet: 1s}
"""


@pytest.fixture
def experiment(tmp_path):
    shutil.copytree(Path(__file__).parent / "forgetful", tmp_path / "forgetful")
    file = tmp_path / "experiment.yaml"
    file.write_text(EXPERIMENT)
    return file


@pytest.mark.network
@pytest.mark.slow
def test_a_killed_hunt_ends_its_run(experiment, tmp_path):
    folder = tmp_path / "hunt"
    command = python_command("testbed.cli.main", "hunt", str(experiment), "-o", str(folder))
    environment = {**os.environ, "PYTHONPATH": str(Path(main.__file__).parents[2])}
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, env=environment) as process:
        try:
            wait_until(lambda: any(folder.glob("runs/under-way-*/*/logs/*")), "a run", WAIT_S)
        finally:
            process.kill()
    wait_until(lambda: processes_that_name(folder) == [], "the end of its processes", WAIT_S)


def processes_that_name(folder: Path) -> list[psutil.Process]:
    return [
        each
        for each in psutil.process_iter(["cmdline"])
        if str(folder) in " ".join(each.info["cmdline"] or ())
    ]


@pytest.mark.network
@pytest.mark.slow
def test_broken_promises_of_programs_are_found(experiment, tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(hunting, "REAL_RUNS_MAX", 2)
    monkeypatch.setattr(hunting, "REAL_TIMES", 2)
    folder = tmp_path / "hunt"
    asked = ["hunt", str(experiment), "-o", str(folder), "--findings", "1", "--runs", "12"]
    assert main.run(asked) == exit_codes.FAILED, capfd.readouterr()
    [(finding, content)] = HuntDirectory(folder).found()
    assert content["violation"]["kind"] == "lost"
    assert {each["kind"] for each in content["case"]["disturbances"]} <= {
        "crash",
        "pause",
        "reset",
        "separate",
    }
    assert "r0/subscriber-0 never got" in content["said"]
    counts = read_counts(finding)["local"]
    assert counts.runs == 2
    assert counts.broke >= 1
    assert counts.text in (finding / "finding.txt").read_text()
    assert (finding / "run/summary.json").is_file()
    assert list((finding / "run/captures").iterdir())
    assert "r0/server-0" in (finding / "diagram.txt").read_text()
    assert load_experiment(str(finding / "experiment.yaml")).system
    assert not list(HuntDirectory(folder).runs.iterdir())
