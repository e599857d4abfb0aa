"""The keeper of a run's control groups: `python -m testbed.sandbox.group_keeper TOKEN`.

The kernel removes namespaces with their last process, but not control groups. So this process stays outside
the sandbox until the process that started it has ended in any way, which closes its standard input, and then
removes the groups of the token. First it prints an empty line, or why there can be no groups.
"""

import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from node.programs.host_view import CLONE_NEWNS, MS_PRIVATE, MS_REC, mount
from node.tcp.libc import check, libc
from testbed.sandbox.control_groups import ControlGroup, group_name, mount_hierarchies

REMOVAL_S = 60.0
"""Time for the processes of a run to end after the process that started it."""
POLL_S = 0.05


def _try(parents: Sequence[Path]) -> None:
    group = ControlGroup(parents, f"cutset-try-{os.getpid()}")
    group.make()
    try:
        group.limit_processor(0.01)  # within any limit of a container
        group.limit_memory(1 << 30)
        group.used_s()
    finally:
        group.remove()


def _remove(parents: Sequence[Path], token: str) -> None:
    until_s = time.monotonic() + REMOVAL_S
    while (left := list(_groups(parents, token))) and time.monotonic() < until_s:
        for folder in left:
            with suppress(OSError):  # its processes are still ending
                folder.rmdir()
        time.sleep(POLL_S)


def _groups(parents: Sequence[Path], token: str) -> Iterator[Path]:
    for parent in parents:
        yield from (each for each in parent.iterdir() if each.name.startswith(group_name(token, "")))


def main(token: str) -> None:
    """Say whether there can be groups, wait for the end of standard input, and remove those of the token."""
    try:
        check(libc.unshare(CLONE_NEWNS), "make a mount namespace")
        mount(None, Path("/"), None, MS_REC | MS_PRIVATE)
        parents = mount_hierarchies()
        _try(parents)
    except OSError as error:
        is_user = " (they need root)" if os.geteuid() else ""
        print(f"{error.strerror}{is_user}", flush=True)  # noqa: T201 - its result
        return
    print(flush=True)  # noqa: T201
    sys.stdin.read()
    _remove(parents, token)


if __name__ == "__main__":
    main(sys.argv[1])
