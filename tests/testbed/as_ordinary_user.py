"""Runs a command as an ordinary user, when the tests run as root.

`python -m tests.testbed.as_ordinary_user HOME COMMAND…`, in its own mount namespace (see `ordinary`). If the
interpreter or the home is in a directory that other users cannot enter, a mount with only these paths hides
that directory. Then the process drops all privileges and becomes the command. So no directory is opened to
others on this machine, and none is closed for the command: pytest makes the directory of all its sessions
root's again whenever another session begins.
"""

import os
import stat
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

NOBODY = 65534


def ordinary(command: Sequence[str], home: Path) -> list[str]:
    """Return the argument list that runs `command` as an ordinary user with this writable home."""
    if os.getuid() != 0:
        return list(command)
    os.chown(home, NOBODY, NOBODY)
    private = ["unshare", "--mount", "--propagation", "private"]
    return [*private, sys.executable, "-m", "tests.testbed.as_ordinary_user", str(home), *command]


def make_reachable(*paths: Path) -> None:
    """Make these paths accessible to all users, in this mount namespace only."""
    behind: dict[Path, list[Path]] = {}
    for path in paths:
        closed = [parent for parent in reversed(path.parents) if not parent.stat().st_mode & stat.S_IROTH]
        if closed:
            behind.setdefault(closed[0], []).append(path)
    for closed_one, hidden in behind.items():
        held = [os.open(path, os.O_PATH) for path in hidden]
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", closed_one], check=True)
        for path, descriptor in zip(hidden, held, strict=True):
            path.mkdir(parents=True)
            behind_it = f"/proc/{os.getpid()}/fd/{descriptor}"
            subprocess.run(["mount", "--no-canonicalize", "--bind", behind_it, path], check=True)
            os.close(descriptor)


def main(home: str, *command: str) -> None:
    """Become an ordinary user and execute the command; never returns."""
    make_reachable(Path(sys.base_prefix).resolve(), Path(home).resolve())
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    os.environ["HOME"] = home
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(*sys.argv[1:])
