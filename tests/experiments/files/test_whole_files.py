"""A replaced file has the old content or the new, even if its writer fails or is killed."""

import errno
import os
import resource
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from experiments.files.whole_files import BEGUN, replacing, write_whole

KILLED_IN_THE_MIDDLE = """
import os, signal, sys
from pathlib import Path
from experiments.files.whole_files import replacing
with replacing(Path(sys.argv[1])) as stream:
    stream.write(b"new, in part")
    stream.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def fail_in_the_middle(path: Path) -> None:
    with replacing(path, sync=False) as stream:
        stream.write(b"new, in part")
        raise ValueError("half")


def test_new_content_replaces_old_content(tmp_path: Path) -> None:
    for text in ("one", "another: é"):
        write_whole(tmp_path / "page", text)
        assert (tmp_path / "page").read_text(encoding="utf-8") == text
    assert names(tmp_path) == ["page"]


def test_a_writer_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    write_whole(tmp_path / "page", "old")
    with pytest.raises(ValueError, match="half"):
        fail_in_the_middle(tmp_path / "page")
    assert (tmp_path / "page").read_text() == "old"
    assert names(tmp_path) == ["page"]


def test_an_error_of_a_full_disk_names_the_file(tmp_path: Path) -> None:
    limit, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, most))  # Python ignores SIGXFSZ
    try:
        with pytest.raises(OSError, match="too large") as caught, replacing(tmp_path / "file") as stream:
            stream.write(bytes(20_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, most))
    assert caught.value.filename == str(tmp_path / "file")
    assert not any(tmp_path.iterdir())


def test_a_writer_that_is_killed_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    write_whole(tmp_path / "page", "old")
    command = [sys.executable, "-c", KILLED_IN_THE_MIDDLE, str(tmp_path / "page")]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert (tmp_path / "page").read_text() == "old"
    assert names(tmp_path) == ["page"]


@pytest.mark.parametrize("lacking", [errno.EISDIR, errno.EOPNOTSUPP])
def test_without_unnamed_files_the_temporary_file_is_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lacking: int
) -> None:
    opened = os.open

    def named_alone(path: Path, flags: int, *more: int) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(lacking, os.strerror(lacking))
        return opened(path, flags, *more)

    monkeypatch.setattr(os, "open", named_alone)
    write_whole(tmp_path / "page", "old")
    with replacing(tmp_path / "page", sync=False) as stream:
        stream.write(b"new")
        (begun,) = set(names(tmp_path)) - {"page"}
        assert begun.startswith(".")
        assert begun.endswith(BEGUN)
    assert (tmp_path / "page").read_text() == "new"
    assert names(tmp_path) == ["page"]


def test_two_concurrent_writers_of_a_file_do_not_mix_their_content(tmp_path: Path) -> None:
    with replacing(tmp_path / "page", sync=False) as stream:
        stream.write(b"mine")
        write_whole(tmp_path / "page", "theirs")
        assert (tmp_path / "page").read_text() == "theirs"
    assert (tmp_path / "page").read_text() == "mine"


@pytest.mark.parametrize("lacking", [errno.EINVAL, errno.EOPNOTSUPP])
def test_a_file_system_without_fsync_for_folders_is_supported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lacking: int
) -> None:
    sync = os.fsync

    def of_files_alone(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(lacking, os.strerror(lacking))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", of_files_alone)
    write_whole(tmp_path / "file", "new")
    assert (tmp_path / "file").read_text() == "new"
