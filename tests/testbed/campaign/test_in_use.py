"""Commands that use the same run at once: one holds it, and the others name the holder."""

import errno
import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from experiments.files import locks
from experiments.files.locks import folder_lock
from experiments.records.rundir import RunDirectory
from testbed.campaign.in_use import is_over, reading, sole_writer
from testbed.cli.main import run as cutset
from testbed.cli.named_run import named_run
from testbed.errors import MachineError
from tests.run_json import set_run
from tests.testbed.runner.live import write_experiment
from topologies.errors import InputError

HOLD = """\
import sys
from pathlib import Path
from experiments.files.locks import folder_lock
with folder_lock(Path(sys.argv[1]), wait=True):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def held(tmp_path):
    """Yield a run that another process holds, and the process."""
    run = RunDirectory(tmp_path / "runs/20260102T000000Z-b-000002")
    run.make()
    set_run(run, phase="collected", outcome="completed")
    command = [sys.executable, "-c", HOLD, str(run.path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        yield run, process.pid


@pytest.mark.parametrize("command", ["analyze", "report", "export", "compare", "fetch --on lab.yaml"])
def test_a_command_names_the_process_that_holds_a_run(command, held, capsys):
    run, process = held
    assert cutset([*command.split(), str(run.path)]) == 3
    said = capsys.readouterr().err
    assert said.startswith(f"cutset: {run.path}: another command ")
    assert f" (process {process}, `{Path(sys.executable).name} -c " in said
    assert said.count("\n") == 1


def test_several_commands_may_read_a_run_at_once_and_none_may_change_it(tmp_path):
    with (
        reading(tmp_path),
        reading(tmp_path, tmp_path),
        pytest.raises(MachineError, match="is using it"),
        sole_writer(tmp_path),
    ):
        pass
    with sole_writer(tmp_path), pytest.raises(MachineError, match="makes or analyses it"), reading(tmp_path):
        pass


def test_readers_do_not_block_a_command(tmp_path):
    looks = 0
    for _ in range(100):
        looks += is_over(tmp_path)
        with sole_writer(tmp_path):
            assert not is_over(tmp_path)
    assert looks == 100


def test_latest_skips_runs_in_use_and_runs_that_did_not_begin(held):
    run, _ = held
    runs = run.path.parent
    with pytest.raises(InputError, match="still being made or analysed"):
        named_run("latest", runs)
    over, planned = (RunDirectory(runs / f"2026010{day}T000000Z-a-00000{day}") for day in (1, 3))
    for made in (over, planned):
        made.make()
    set_run(over, phase="collected", outcome="completed")
    set_run(planned)
    assert named_run("latest", runs).path == over.path
    assert named_run(run.name, runs).path == run.path


def test_commands_work_without_locks(tmp_path, monkeypatch):
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    monkeypatch.setattr(fcntl, "lockf", refuse)
    with sole_writer(tmp_path), reading(tmp_path):
        assert is_over(tmp_path)
    for lock in (folder_lock(tmp_path, wait=False), locks.file_lock(tmp_path / "lock", who="a test")):
        with pytest.raises(OSError, match="its file system has no locks"), lock:
            pass


@pytest.mark.slow
def test_each_of_many_concurrent_analyses_completes_or_names_the_other(tmp_path):
    """Use real processes, which once removed each other's tables."""
    experiment = write_experiment(tmp_path, faults="on: simulator\ncaptures: none\n")
    runs = tmp_path / "runs"
    verdict = cutset(["run", str(experiment), "--out", str(runs)])
    assert verdict in {0, 1}
    (run,) = runs.iterdir()
    summary = (run / "summary.json").read_bytes()
    export = ["export", str(run), "--force", "-o", str(tmp_path / "run.tar.zst")]
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "testbed.cli.main", *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for command in (["analyze", str(run)], export, ["analyze", str(run)])
    ]
    said = [(process.communicate(timeout=300)[1], process.returncode) for process in processes]
    refused = [text for text, code in said if code == 3]
    assert {code for _, code in said} <= {verdict, 0, 3}
    assert len(refused) < len(processes)
    assert all("another command" in text and " (process " in text for text in refused)
    assert (run / "summary.json").read_bytes() == summary
