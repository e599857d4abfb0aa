"""Programs whose disks get full or slow: they are told so, or wait, and go on, also when started again."""

import json
import shutil
from pathlib import Path

import pytest

from experiments.records.rundir import RunDirectory
from testbed.cli import main
from tests.systems.on_packets import run_on_packets

EXPERIMENT = """\
name: full-disk
topology: one-region
system: ./diary
roles: {server: 1, publisher: 1}
workload: {event_size: 100B, rate: 10/s}
duration: 6s
captures: none
faults:
  - {name: full, at: 500ms, fill: r0/server-0}
  - {name: end, at: 1s, kill: r0/server-0}
  - {name: again, at: 1200ms, restart: r0/server-0}
  - {name: room, at: 3s, restore: full}
  - {name: refill, at: 3500ms, fill: r0/server-0}
  - {name: loss, at: 4s, kill: r0/server-0}
  - {name: new, at: 4200ms, replace: r0/server-0}
"""
SLOW = (
    EXPERIMENT.partition("faults:")[0].replace("server: 1", "waiter: 1")
    + """\
faults:
  - {name: slow, at: 1s, slow-disk: r0/waiter-0, sync: 2s}
  - {name: end, at: 2s, kill: r0/waiter-0}
  - {name: again, at: 2200ms, restart: r0/waiter-0}
  - {name: fast, at: 4s, restore: slow}
"""
)


@pytest.fixture
def folder(tmp_path) -> Path:
    shutil.copytree(Path(__file__).parent / "diary", tmp_path / "diary")
    return tmp_path


def output(run: RunDirectory, host: str) -> list[str]:
    lines = map(json.loads, run.log(host).read_text().splitlines())
    return [line["text"] for line in lines if line["event"] == "output"]


@pytest.mark.network
@pytest.mark.slow
def test_a_program_on_a_full_disk_is_told_so_until_there_is_room_again(folder):
    run = run_on_packets(folder, EXPERIMENT)
    assert output(run, "r0-server-0") == [
        *("an empty disk", "4 MB free", "written", "ENOSPC"),
        *("earlier pages", "0 MB free", "ENOSPC", "written", "ENOSPC"),
        *("an empty disk", "4 MB free", "written"),
    ]
    record = run.read_run()
    assert [str(change.action) for change, _ in record.changes_applied] == [
        *("fill", "kill", "restart", "unfill", "fill", "kill", "replace", "unfill")
    ]
    assert all(applied.applied_ns is not None for _, applied in record.changes_applied)


@pytest.mark.network
@pytest.mark.slow
def test_a_program_waits_for_its_slow_disk_also_when_it_is_started_again(folder):
    run = run_on_packets(folder, SLOW)
    assert output(run, "r0-waiter-0") == ["at once", "waited", "at once"]
    carried = [(str(change.action), applied.applied_ns) for change, applied in run.read_run().changes_applied]
    assert [action for action, _ in carried] == ["slow-disk", "kill", "restart", "unslow-disk"]
    assert all(applied_ns is not None for _, applied_ns in carried)


def without(text: str, *names: str) -> str:
    """Remove the faults of these names from an experiment's text."""
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines if not any(f"{{name: {name}," in line for name in names))


def test_a_program_that_may_have_ended_of_it_can_be_started_again(folder, capsys):
    file = folder / "experiment.yaml"
    file.write_text(without(EXPERIMENT, "end"))
    assert main.run(["plan", str(file)]) == 0
    file.write_text(without(EXPERIMENT, "end", "full", "room"))
    assert main.run(["plan", str(file)]) == 2
    assert "faults.0.restart: no kill or leave of r0/server-0 comes before it" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("said", "instead", "problem"),
    [
        (
            "fill: r0/server-0",
            "fill: r0/publisher-0",
            "faults.0.fill: publisher has no file system of its own: give it `limits: {storage: 100MB}` in",
        ),
        ("fill: r0/server-0", "fill: r0/server-1", "faults.0.fill: there is no process r0/server-1"),
        ("restore: full", "restore: flul", "faults.3.restore: no fault"),
    ],
)
def test_only_what_has_a_file_system_of_its_own_can_be_full(folder, capsys, said, instead, problem):
    assert said in EXPERIMENT
    (folder / "experiment.yaml").write_text(EXPERIMENT.replace(said, instead, 1))
    assert main.run(["plan", str(folder / "experiment.yaml")]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert problem in line
