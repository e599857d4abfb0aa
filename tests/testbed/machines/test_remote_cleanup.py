"""Leftovers of earlier runs on a machine: those in use are kept, others are ended and removed."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from experiments.records.rundir import RunDirectory
from testbed.machines import remote_cleanup, run_folders
from testbed.machines.cleanup import shipped_from
from testbed.machines.run_folders import HELD, IN_USE, LEFT, agent_arguments, state
from tests.run_json import set_run
from tests.testbed.leftovers import wait_until
from tests.testbed.machines.lab import ONLY_ROOT

STUBBORN = "import signal, time; signal.signal(15, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"
OBEDIENT = "import time; print('up', flush=True); time.sleep(600)"
NAME = "20260101T000000Z-link-failure-0a1b2c"


@pytest.fixture
def processes() -> Iterator[list[subprocess.Popen[str]]]:
    """Yield a list for processes that act as supervisors; end them after the test."""
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def folder() -> Iterator[Path]:
    """Yield the path of a machine's folder, not existing yet and short enough for a socket (unix(7))."""
    with tempfile.TemporaryDirectory() as place:
        yield Path(place) / "cutset"


def make_run(folder: Path, name: str = NAME) -> Path:
    run = folder / "runs" / name
    (run / "captures").mkdir(parents=True)
    (run / "captures" / "a.pcap").write_bytes(bytes(1000))
    return run


def hold(
    run: Path,
    processes: list[subprocess.Popen[str]],
    *,
    program: str = OBEDIENT,
    arguments: Sequence[str] | None = None,
) -> None:
    """Let a process hold the run, as a supervisor does. arguments: the end of its command line."""
    given = agent_arguments("start", str(run)) if arguments is None else arguments
    process = subprocess.Popen([sys.executable, "-c", program, *given], stdout=subprocess.PIPE, text=True)
    processes.append(process)
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    note(run, process.pid, run_folders.started_ticks(process.pid))


def note(run: Path, pid: int, ticks: int | None) -> None:
    (run / run_folders.STATE).write_text(json.dumps({"pid": pid, "started_ticks": ticks}))


def clear(folder: Path, *, shipped: tuple[str, ...] = (), code: str = "") -> dict[str, Any]:
    return remote_cleanup.clear(folder, list(shipped), code)


NOBODY = 65534
NOTHING = {"ended": [], "removed": [], "in_use": [], "kept": {}, "code": 0}


@pytest.mark.parametrize("program", [OBEDIENT, STUBBORN], ids=["obedient", "stubborn"])
def test_a_supervisor_without_a_client_is_ended(
    folder: Path, processes: list[subprocess.Popen[str]], program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(folder)
    hold(run, processes, program=program)
    assert state(run) == HELD
    monkeypatch.setattr(remote_cleanup, "END_TIMEOUT_S", 0.5)  # of one that does not hear
    assert remote_cleanup.end(run)
    assert processes[0].wait(60) < 0
    assert state(run) == LEFT


def test_a_run_with_a_connected_controller_is_not_touched(
    folder: Path, processes: list[subprocess.Popen[str]]
) -> None:
    run = make_run(folder)
    hold(run, processes)
    (folder / "code" / ("b" * 64)).mkdir(parents=True)
    assert state(run) == HELD
    client = subprocess.Popen([sys.executable, "-c", OBEDIENT, *agent_arguments("attach", str(run))])
    processes.append(client)
    wait_until(lambda: state(run) == IN_USE, "the client")
    assert clear(folder, shipped=(NAME,), code="a" * 64) == {**NOTHING, "in_use": [NAME]}
    assert processes[0].poll() is None
    assert run.is_dir()
    assert len(list((folder / "code").iterdir())) == 1  # it may be what the run runs
    client.send_signal(signal.SIGSTOP)
    wait_until(lambda: state(run) == HELD, "the client to stop")
    assert clear(folder)["ended"] == [NAME]
    assert [each.wait(60) < 0 for each in processes] == [True, True]


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"pid": "x", "started_ticks": 1}'])
def test_an_empty_note_means_that_the_run_is_not_held(folder: Path, content: str) -> None:
    run = make_run(folder)
    (run / run_folders.STATE).write_text(content)
    assert state(run) == LEFT


def test_another_process_that_got_the_supervisors_number_is_spared(
    folder: Path, processes: list[subprocess.Popen[str]]
) -> None:
    run = make_run(folder)
    hold(run, processes)
    ticks = run_folders.started_ticks(processes[0].pid)
    assert ticks is not None
    note(run, processes[0].pid, ticks - 1)
    assert clear(folder, shipped=(NAME,)) == {**NOTHING, "removed": [NAME]}
    assert processes[0].poll() is None


@pytest.mark.parametrize("arguments", [[], agent_arguments("start", "/var/tmp"), ["-m", "sshd", "start"]])
def test_a_process_that_does_not_hold_this_run_is_spared_whatever_is_noted(
    folder: Path, processes: list[subprocess.Popen[str]], arguments: list[str]
) -> None:
    run = make_run(folder)
    hold(run, processes, arguments=arguments)
    assert state(run) == LEFT
    assert clear(folder)["ended"] == []
    assert processes[0].poll() is None


@ONLY_ROOT
def test_another_users_run_is_neither_trusted_nor_removed(
    folder: Path, processes: list[subprocess.Popen[str]]
) -> None:
    run = make_run(folder)
    hold(run, processes)
    assert state(run) == HELD
    os.chown(run, NOBODY, NOBODY)
    assert state(run) == LEFT
    assert clear(folder, shipped=(NAME,)) == NOTHING
    assert processes[0].poll() is None
    assert run.is_dir()


@ONLY_ROOT
@pytest.mark.parametrize("whose", [".", "runs", "code"])
def test_another_users_folder_is_not_cleaned_and_that_is_reported(folder: Path, whose: str) -> None:
    run, code = make_run(folder), folder / "code" / ("a" * 64)
    code.mkdir(parents=True)
    os.chown(folder / whose, NOBODY, NOBODY)
    with pytest.raises(PermissionError, match=f"{folder / whose} belongs to another user"):
        clear(folder, shipped=(NAME,))
    assert run.is_dir()
    assert code.is_dir()


@pytest.mark.parametrize("name", ["runs", "code"])
def test_a_link_is_not_followed(folder: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "precious").mkdir()
    folder.mkdir()
    (folder / name).symlink_to(tmp_path)
    with pytest.raises(PermissionError, match=f"{folder / name} is a link"):
        clear(folder, shipped=("precious",))
    assert (tmp_path / "precious").is_dir()


def test_shipped_runs_are_known_per_machine_from_the_local_runs(tmp_path: Path) -> None:
    def shipped(name: str, **complete: bool) -> None:
        run = RunDirectory(tmp_path / name)
        run.make()
        set_run(run, shipped=[{"machine": key, "complete": value} for key, value in complete.items()])

    shipped("all", h0=True, h1=True)
    shipped("half", h0=True, h1=False)
    RunDirectory(tmp_path / "local").make()
    set_run(RunDirectory(tmp_path / "local"), seed=1)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "run.json").write_text("{")
    assert shipped_from(tmp_path, "h0") == ["all", "half"]
    assert shipped_from(tmp_path, "h1") == ["all"]
    assert shipped_from(tmp_path, "h2") == []


def test_code_of_other_versions_is_removed_except_during_unpacking(folder: Path) -> None:
    for name in ("a" * 64, "b" * 64, "c" * 64, "d" * 64 + ".part.x1"):
        (folder / "code" / name).mkdir(parents=True)
    assert clear(folder, code="b" * 64) == {**NOTHING, "code": 2}
    assert sorted(path.name for path in (folder / "code").iterdir()) == ["b" * 64, "d" * 64 + ".part.x1"]
