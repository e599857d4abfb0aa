"""Temporary folders are removed with their process, or when the next one is created."""

import errno
import fcntl
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from experiments.files.scratch import scratch

CHECKOUT = Path(__file__).parents[3]
KILLED = """
import os, signal, sys
from pathlib import Path
from experiments.files.scratch import scratch
with scratch("mine-", Path(sys.argv[1])) as folder:
    (folder / "deep").mkdir()
    (folder / "deep" / "file").write_text("x")
    os.kill(os.getpid(), signal.SIGKILL)
"""


KILLED_AT_ONCE = """
import os, signal, sys
from pathlib import Path
from experiments.files.scratch import scratch
make, os.mkdir = os.mkdir, lambda *given: (make(*given), os.kill(os.getpid(), signal.SIGKILL))
with scratch("mine-", Path(sys.argv[1])):
    pass
"""


FORKED = """
import os, sys
from contextlib import ExitStack
from pathlib import Path
from experiments.files.scratch import scratch
stack = ExitStack()
folder = stack.enter_context(scratch("mine-", Path(sys.argv[1])))
if child := os.fork():
    os.waitpid(child, 0)
    print(folder.is_dir())
    stack.close()
"""


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def in_python(code: str, folder: Path) -> str:
    command = [sys.executable, "-c", code, folder]
    environment = {"PYTHONPATH": str(CHECKOUT)}
    return subprocess.run(command, check=False, env=environment, stdout=subprocess.PIPE, text=True).stdout


@pytest.mark.parametrize("code", [KILLED, KILLED_AT_ONCE])
def test_a_scratch_folder_is_removed_with_its_killed_process(tmp_path: Path, code: str) -> None:
    in_python(code, tmp_path)
    deadline_s = time.monotonic() + 10
    while names(tmp_path):
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


def test_stale_folders_are_removed_with_the_next_one(tmp_path: Path) -> None:
    left = "mine-of-before-a-power-cut"
    (tmp_path / left / "deep").mkdir(parents=True)
    with scratch("others-", tmp_path):
        assert left in names(tmp_path)
    with scratch("mine-", tmp_path) as folder:
        assert names(tmp_path) == [folder.name]


def test_a_forked_child_does_not_remove_the_folder(tmp_path: Path) -> None:
    assert in_python(FORKED, tmp_path) == "True\n"
    assert names(tmp_path) == []


def test_a_locked_folder_is_kept(tmp_path: Path) -> None:
    with scratch("mine-", tmp_path) as one, scratch("mine-", tmp_path) as other:
        assert sorted(names(tmp_path)) == sorted([one.name, other.name])


def test_a_symbolic_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "mine-link").symlink_to(tmp_path / "precious")
    with scratch("mine-", tmp_path):
        assert (tmp_path / "precious").is_dir()


def test_a_folder_that_was_removed_as_stale_before_its_lock_is_made_again(
    tmp_path: Path, monkeypatch
) -> None:
    lock, made = os.open, []

    def late(path, flags, *more, **named):
        if path != os.devnull and not made:  # another process is faster
            made.append(path)
            path.rmdir()
        return lock(path, flags, *more, **named)

    monkeypatch.setattr(os, "open", late)
    with scratch("mine-", tmp_path) as folder:
        assert folder.is_dir()
        assert made == [folder]


def test_without_locks_folders_are_created_and_none_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with scratch("x-", tmp_path) as one, scratch("x-", tmp_path) as other:
        assert one.is_dir()
        assert other.is_dir()
        assert one != other
    assert not any(tmp_path.iterdir())
