"""The state of a lab machine, read from the kernel, from outside.

Sources: proc(5), ip(8), tc(8).
"""

import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

SSHD = "/usr/sbin/sshd"
_ASKED: Mapping[str, Sequence[str]] = {
    "interfaces": ["ip", "-j", "-d", "link"],
    "addresses": ["ip", "-j", "address"],
    "routes": ["ip", "-j", "route", "show", "table", "all"],
    "rules": ["ip", "-j", "rule"],
    "queueing disciplines": ["tc", "-j", "qdisc"],
    "network namespaces": ["ip", "-j", "netns"],
}
_SSH_PORT = ":0016"  # in hexadecimal digits, as the states in /proc/net/tcp (include/net/tcp_states.h)
_OPEN_STATES = ("01", "03", "08")  # ESTABLISHED, SYN_RECV, CLOSE_WAIT: accepted by the server, or yet to be
_SETTINGS = ["sh", "-c", "grep -rs . /proc/sys/net; true"]


@dataclass(frozen=True, slots=True)
class Process:
    """A process on a machine. `pid` and its parent's are as seen from the tests."""

    pid: int
    parent: int
    command: tuple[str, ...]

    @property
    def line(self) -> str:
        """Its command line."""
        return " ".join(self.command)

    @property
    def is_sshd(self) -> bool:
        """Whether it is the SSH server, or its end of a connection."""
        return self.line.startswith(("sshd: ", "sshd-session: ", f"{SSHD} "))

    @property
    def looks_like_server(self) -> bool:
        """Whether it has the server's command line, which a process that it has just started also has."""
        return self.line.startswith((f"sshd: {SSHD} ", f"{SSHD} -D "))


@dataclass(frozen=True, slots=True)
class Standing:
    """A machine at a moment, without its files: for comparing it before and after."""

    processes: tuple[str, ...]
    mounts: tuple[tuple[str, str], ...]
    network: Mapping[str, tuple[str, ...]]  # by what it is, sorted

    def differences(self, before: "Standing") -> list[str]:
        """Return the differences from an earlier state, one per line."""
        kinds = {"processes": (self.processes, before.processes)}
        kinds["mounts"] = tuple(tuple(map(" ".join, each.mounts)) for each in (self, before))
        kinds |= {kind: (self.network[kind], before.network[kind]) for kind in self.network}
        lines = []
        for kind, (now, then) in kinds.items():
            lines += [f"more {kind}: {thing}" for thing in now if thing not in then]
            lines += [f"fewer {kind}: {thing}" for thing in then if thing not in now]
        return lines


def processes_below(pid: int) -> list[Process]:
    """Return all living descendants of this process, in any namespace."""
    found = []
    for process in psutil.Process(pid).children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.status() != psutil.STATUS_ZOMBIE:
                found.append(Process(process.pid, process.ppid(), tuple(process.cmdline())))
    return found


def ssh_connections(pid: int) -> int:
    """Return the number of connections to the SSH server that are open in this process's network
    namespace.
    """
    rows = [line.split() for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]]
    return sum(row[1].endswith(_SSH_PORT) and row[3] in _OPEN_STATES for row in rows)


def mounts_of(pid: int) -> tuple[tuple[str, str], ...]:
    """Return mount point and file system type of all mounts in this process's namespace."""
    lines = Path(f"/proc/{pid}/mountinfo").read_text().splitlines()
    fields = [line.split() for line in lines]
    return tuple((words[4], words[words.index("-") + 1]) for words in fields)


def network_of(ask: Callable[[Sequence[str]], str]) -> dict[str, tuple[str, ...]]:
    """Return the content of a machine's network namespace; `ask` runs a command there."""
    found: dict[str, tuple[str, ...]] = {}
    for kind, command in _ASKED.items():
        things: list[Any] = json.loads(ask(command) or "[]")
        found[kind] = tuple(sorted(json.dumps(thing, sort_keys=True) for thing in things))
    lines = ask(_SETTINGS).splitlines()
    found["settings"] = tuple(sorted(line for line in lines if "conntrack_count" not in line))
    return found
