"""The system of docs/bring-your-own.md, exactly as printed, on real packets."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from experiments.records.rundir import RunDirectory
from testbed.cli import main
from tests.testbed.as_ordinary_user import ordinary
from tests.testbed.runner.live import CUTSET, PROJECT

PAGE = Path(__file__).resolve().parents[2] / "docs" / "bring-your-own.md"


RESTARTED = """\
  - {name: end, at: 5s, kill: r1/subscriber-0}
  - {name: again, at: 6s, restart: r1/subscriber-0}
"""
"""Events published while a subscriber is away are not due to it."""


def written(folder: Path) -> None:
    """Write the page's files."""
    for name, text in re.findall(r"^`([\w./]+)`[^\n]*:\n\n```\w+\n(.*?)```", PAGE.read_text(), re.M | re.S):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)


@pytest.fixture(scope="module")
def the_page(tmp_path_factory) -> RunDirectory:
    """Run the page's experiment."""
    tmp_path = tmp_path_factory.mktemp("page")
    written(tmp_path)
    assert sum(len(path.read_text().splitlines()) for path in tmp_path.glob("relay/[sc]*")) < 60
    experiment = tmp_path / "relay.yaml"
    quicker = experiment.read_text().replace("rate: 100/s", "rate: 50/s").replace("10s", "7s")
    experiment.write_text(quicker + RESTARTED)
    assert main.run(["run", str(experiment), "--out", str(tmp_path / "runs")]) in {0, 1}
    return RunDirectory.open(next((tmp_path / "runs").iterdir()))


@pytest.mark.network
@pytest.mark.slow
def test_the_documented_system_works(the_page, tmp_path, capsys):
    run = the_page
    summary = run.read_summary()
    assert summary["events"]["published"] > 600
    assert summary["events"]["lost"] == summary["events"]["duplicated"] == 0
    assert summary["events"]["stray"] == summary["events"]["corrupted"] == 0
    assert summary["recovery"]["cut"]["switch_s"] > 2, "nothing came while the link was down"
    assert summary["agreement"]["held"] is True
    assert summary["agreement"]["left_out"] == [
        "r1-subscriber-0: its process did not run from beginning to end"
    ]
    capsys.readouterr()
    assert main.run(["follow", str(run.path), "r0", "10"]) == 0
    assert "r1-broker-0 -> r1-subscriber-1" in capsys.readouterr().out
    assert main.run(["packets", str(run.path), "--around", "cut", "--pcap", str(tmp_path / "a.pcapng")]) == 0


def unseen(run: RunDirectory, why: str) -> None:
    """Return the system as if its file declared that packets do not show events."""
    record = json.loads(run.run_json.read_text())
    record["plan"]["declared"]["marked"] = {"seen": "never", "why": why}
    run.run_json.write_text(json.dumps(record))
    shutil.rmtree(run.analysis)
    assert main.run(["analyze", str(run.path)]) in {0, 1}


@pytest.mark.network
@pytest.mark.slow
def test_facts_that_packets_do_not_show_are_reported(the_page, capsys):
    run = the_page
    before = run.read_summary()["events"]
    unseen(run, "compressed")
    said = capsys.readouterr().out
    assert "the messages of relay are not known here (compressed): events come from the records" in said
    assert run.read_summary()["events"] == before
    for command in (["follow", str(run.path), "r0", "10"], ["packets", str(run.path)]):
        assert main.run(command) == 2
        assert "the messages of relay are not known here (compressed)" in capsys.readouterr().err


@pytest.mark.network
@pytest.mark.slow
def test_the_documented_system_works_for_an_ordinary_user(tmp_path):
    written(tmp_path)
    for path in (tmp_path, tmp_path / "relay"):
        path.chmod(0o755)
    given = ["--set", "duration=2s", "--set", "faults=[]", "--out", str(tmp_path / "runs"), "--no-analyze"]
    command = [*ordinary([], tmp_path), *CUTSET, "run", str(tmp_path / "relay.yaml"), *given]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    done = subprocess.run(
        command, cwd=PROJECT, env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    record = RunDirectory.open(next((tmp_path / "runs").iterdir())).read_run()
    assert [each.exit.code for each in record.processes] == [0] * 8
    assert record.times.drained_ns is not None
