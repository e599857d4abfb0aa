"""Two nights never overlap in one history or folder of runs, and a dead night blocks no other."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from testbed.campaign.nights.night_run import NAME, night_locks
from testbed.errors import MachineError


@contextmanager
def another_night(history: Path, runs: Path) -> Iterator[tuple[int, int]]:
    """Yield a process that holds the locks, and its child; both are killed at the end."""
    reading, writing = os.pipe()
    night = os.fork()
    if night == 0:
        locks = night_locks(history, runs, who="quick")
        locks.__enter__()
        child = os.fork()
        if child:
            os.write(writing, str(child).encode())
        signal.pause()
    child = int(os.read(reading, 100))
    try:
        yield night, child
    finally:
        end(night)
        os.kill(child, signal.SIGKILL)
        os.close(reading)
        os.close(writing)


def end(process: int) -> None:
    """Kill a child of the test; idempotent."""
    with suppress(ProcessLookupError, ChildProcessError):
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)


@pytest.mark.parametrize(
    ("history", "runs", "option"), [("history", "other", "--history"), ("other", "runs", "--out")]
)
def test_a_second_night_is_refused_and_names_the_running_one(tmp_path, history, runs, option):
    with another_night(tmp_path / "history", tmp_path / "runs") as (other, _):
        said = (
            rf"another night is running in .*: quick, process {other}; .* or set another folder with {option}"
        )
        with pytest.raises(MachineError, match=said):
            night_locks(tmp_path / history, tmp_path / runs, who="full").__enter__()


def test_a_waiting_night_begins_when_the_other_has_ended(tmp_path):
    said = []
    with another_night(tmp_path / "history", tmp_path / "runs") as (other, child):

        def end_the_other(text: str) -> None:
            said.append(text)
            end(other)

        with night_locks(tmp_path / "history", tmp_path / "runs", who="full", wait_s=60, say=end_the_other):
            os.kill(child, 0)  # it lives
            assert (tmp_path / "history" / NAME).read_text() == f"full, process {os.getpid()}\n"
    assert said == [f"waiting until another night in {tmp_path}/history is over: quick, process {other}"]


@pytest.mark.parametrize("broken", ["history", "runs"])
def test_a_folder_that_cannot_be_written_is_reported(tmp_path, broken):
    (tmp_path / broken).write_text("no folder")
    with pytest.raises(MachineError, match=rf"cannot write {tmp_path}/{broken}"):
        night_locks(tmp_path / "history", tmp_path / "runs", who="quick").__enter__()
