"""Runs a command as an ordinary user, when the tests run as root.

`python -m tests.testbed.as_ordinary_user HOME COMMAND…`, in a mount namespace of its own (see `ordinary`):
where the interpreter lies in a directory that only root may enter, that directory is hidden behind one that
holds just the interpreter; then everything is given up and the command takes this process's place.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

NOBODY = 65534


def ordinary(command: Sequence[str], home: Path) -> list[str]:
    """The argument list that runs `command` as an ordinary user with this writable home."""
    if os.getuid() != 0:
        return list(command)
    os.chown(home, NOBODY, NOBODY)
    for parent in [home, *home.parents]:
        if parent.stat().st_uid == 0 and not parent.stat().st_mode & 0o001:
            parent.chmod(parent.stat().st_mode | 0o011)
    private = ["unshare", "--mount", "--propagation", "private"]
    return [*private, sys.executable, "-m", "tests.testbed.as_ordinary_user", str(home), *command]


def make_reachable(path: Path) -> None:
    """Let everybody reach `path`, in this mount namespace only."""
    closed = [parent for parent in reversed(path.parents) if not parent.stat().st_mode & 0o001]
    if not closed:
        return
    aside = tempfile.mkdtemp()
    subprocess.run(["mount", "--bind", path, aside], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", closed[0]], check=True)
    path.mkdir(parents=True)
    subprocess.run(["mount", "--move", aside, path], check=True)
    Path(aside).rmdir()


def main(home: str, *command: str) -> None:
    """Does not return."""
    make_reachable(Path(sys.base_prefix).resolve())
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    os.environ["HOME"] = home
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(*sys.argv[1:])
