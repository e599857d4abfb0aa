"""A program's own view of the machine: host name, /etc/hosts, /var/lib, /run and /dev/shm
(mount_namespaces(7)).

Two instances of a program on one machine would otherwise share the files under fixed paths. Everything else
is unchanged. Folders under a covered path that the program needs are mounted there again.
"""

import ctypes
import os
import socket
from collections.abc import Iterable, Sequence
from pathlib import Path

from node.core.specification import Member
from node.tcp.libc import check, libc

CLONE_NEWNS = 0x00020000  # sched.h
CLONE_NEWUTS = 0x04000000
MS_BIND = 0x1000  # mount(2)
MS_REC = 0x4000
MS_PRIVATE = 0x40000
HOSTS = Path("/etc/hosts")
LIBRARY = Path("/var/lib")
RUN = Path("/run")
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - a mount point


def hosts_text(members: Iterable[Member]) -> str:
    """Return the content of /etc/hosts: the hosts of a run by name."""
    lines = ["127.0.0.1 localhost", *(f"{member.address} {member.host}" for member in members)]
    return "\n".join(lines) + "\n"


def enter_view(host: str, hosts: Path, storage: Path, kept: Sequence[Path]) -> None:
    """Give the calling process and its children the view of this host.

    hosts: mounted as /etc/hosts. storage: mounted as /var/lib. kept: folders that stay at their paths. Raises
    OSError.
    """
    check(libc.unshare(CLONE_NEWNS | CLONE_NEWUTS), "make namespaces")
    mount(None, Path("/"), None, MS_REC | MS_PRIVATE)
    socket.sethostname(host)
    own = (LIBRARY, RUN, SHARED_MEMORY)
    covered = [path for path in kept if any(path.is_relative_to(each) for each in own)]
    open_ = {path: os.open(path, os.O_PATH | os.O_DIRECTORY) for path in covered}
    mount(str(hosts), HOSTS, None, MS_BIND)
    mount(str(storage), LIBRARY, None, MS_BIND)
    for target in (RUN, SHARED_MEMORY):
        mount("tmpfs", target, "tmpfs", 0)
    for path, descriptor in open_.items():
        path.mkdir(parents=True, exist_ok=True)
        mount(f"/proc/self/fd/{descriptor}", path, None, MS_BIND | MS_REC)
        os.close(descriptor)


def mount(source: str | None, target: Path, kind: str | None, flags: int, options: str = "") -> None:
    """Call mount(2). Raises OSError."""
    encoded = [None if each is None else each.encode() for each in (source, str(target), kind)]
    check(libc.mount(*encoded, ctypes.c_ulong(flags), options.encode() or None), f"mount {target}")
