"""Two nights never overlap in one history or among the same runs, and a dead one holds nothing up."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.campaign.nights.night_run import NAME, night_locks
from testbed.errors import MachineError

HOLDER = """
import sys
from pathlib import Path
from testbed.campaign.nights.night_run import night_locks
with night_locks(Path(sys.argv[1]), Path(sys.argv[2]), who="quick"):
    if len(sys.argv) > 3:
        import os
        if os.fork() == 0:  # a child lives on
            print(os.getpid(), flush=True)
            import signal
            signal.pause()
    else:
        print("held", flush=True)
    sys.stdin.read()
"""


def holder(history: Path, runs: Path, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", HOLDER, str(history), str(runs), *options]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize(
    ("history", "runs", "option"), [("history", "other", "--history"), ("other", "runs", "--out")]
)
def test_a_second_night_is_refused_and_told_who_is_on(tmp_path, history, runs, option):
    with holder(tmp_path / "history", tmp_path / "runs") as other:
        other.stdout.readline()
        advice = f".* or set another folder with {option}"
        said = rf"another night is running in .*: quick, process {other.pid}; {advice}"
        with pytest.raises(MachineError, match=said):
            night_locks(tmp_path / history, tmp_path / runs, who="full").__enter__()
        other.communicate("")
    with night_locks(tmp_path / "history", tmp_path / "runs", who="full"):
        assert (tmp_path / "history" / NAME).read_text() == f"full, process {os.getpid()}\n"


def test_a_night_that_may_wait_begins_when_the_other_is_over(tmp_path):
    with holder(tmp_path / "history", tmp_path / "runs") as other:
        other.stdout.readline()
        said = []

        def end_the_other(text: str) -> None:
            said.append(text)
            other.communicate("")

        with night_locks(tmp_path / "history", tmp_path / "runs", who="full", wait_s=60, say=end_the_other):
            assert other.poll() == 0
    assert said == [f"waiting until another night in {tmp_path}/history is over: quick, process {other.pid}"]


def test_a_night_that_was_killed_holds_nothing_up_though_its_children_live(tmp_path):
    with holder(tmp_path, tmp_path, "fork") as other:
        child = int(other.stdout.readline())
        other.kill()
        other.wait()
        try:
            with night_locks(tmp_path, tmp_path, who="full"):
                os.kill(child, 0)  # it lives
        finally:
            os.kill(child, signal.SIGKILL)


@pytest.mark.parametrize("broken", ["history", "runs"])
def test_a_folder_that_cannot_be_written_is_reported(tmp_path, broken):
    (tmp_path / broken).write_text("no folder")
    with pytest.raises(MachineError, match=rf"cannot write {tmp_path}/{broken}"):
        night_locks(tmp_path / "history", tmp_path / "runs", who="quick").__enter__()
