"""Runs a command as an ordinary user, when the tests run as root.

`python -m tests.testbed.as_ordinary_user HOME COMMAND…`, in a mount namespace of its own (see `ordinary`):
where the interpreter or the home lies in a directory that is not everybody's, that directory is hidden behind
one that holds just them; then everything is given up and the command takes this process's place. So no
directory is opened to others here, and none is closed before the command's eyes: pytest makes the one of all
its sessions root's again whenever another session begins.
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
    """Let everybody reach these paths, in this mount namespace only."""
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
