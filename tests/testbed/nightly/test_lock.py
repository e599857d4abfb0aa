"""Two nights never overlap in one history, and a dead one holds nothing up."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.errors import MachineError
from testbed.nightly.lock import NAME, night_lock

HOLDER = """
import sys
from pathlib import Path
from testbed.nightly.lock import night_lock
with night_lock(Path(sys.argv[1]), who="quick"):
    if len(sys.argv) > 2:
        import os
        if os.fork() == 0:  # a child lives on
            print(os.getpid(), flush=True)
            import signal
            signal.pause()
    else:
        print("held", flush=True)
    sys.stdin.read()
"""


def holder(history: Path, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", HOLDER, str(history), *options]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_a_second_night_is_refused_and_told_who_is_on(tmp_path):
    with holder(tmp_path / "history") as other:
        other.stdout.readline()
        with pytest.raises(MachineError, match=rf"another night is on in .*: quick, process {other.pid};"):
            night_lock(tmp_path / "history", who="full").__enter__()
        other.communicate("")
    with night_lock(tmp_path / "history", who="full"):
        assert (tmp_path / "history" / NAME).read_text() == f"full, process {os.getpid()}\n"


def test_a_night_that_was_killed_holds_nothing_up_though_its_children_live(tmp_path):
    with holder(tmp_path, "fork") as other:
        child = int(other.stdout.readline())
        other.kill()
        other.wait()
        try:
            with night_lock(tmp_path, who="full"):
                os.kill(child, 0)  # it lives
        finally:
            os.kill(child, signal.SIGKILL)


def test_a_history_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "history").write_text("no folder")
    with pytest.raises(MachineError, match="cannot write the history"):
        night_lock(tmp_path / "history", who="quick").__enter__()
