"""Leftovers of a run: processes that carry its token, and any change to its machine.

Processes are found by an environment variable that every process of a run inherits, so processes in other PID
namespaces are found too, if the caller may read them.
"""

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from testbed.sandbox.outside import RUN_VARIABLE

PATIENCE_S = 20.0


def processes_of(token: str) -> dict[int, list[str]]:
    """Return PID and command line of each process that carries this token, without zombies."""
    wanted = f"{RUN_VARIABLE}={token}".encode()
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                found[int(entry.name)] = (entry / "cmdline").read_text().split("\0")[:-1]
        except OSError:
            continue  # it ended meanwhile, or belongs to another user
    return found


def process_running(token: str, *beginning: str) -> int:
    """Wait for the run's process whose command line begins with these words, and return its PID."""
    found: list[int] = []

    def look() -> bool:
        lines = processes_of(token).items()
        found[:] = [pid for pid, line in lines if tuple(line[: len(beginning)]) == beginning]
        return bool(found)

    wait_until(look, f"a process of {token} that begins with {beginning}")
    return min(found)


def network_namespaces() -> set[str]:
    """Return every network namespace that has a process."""
    seen = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                seen.add(str((entry / "ns/net").readlink()))
            except OSError:
                continue
    return seen


class Namespace:
    """A network namespace that is held open: otherwise the kernel could give its number to the next namespace
    as soon as it is empty.
    """

    def __init__(self, path: Path) -> None:
        """Open the namespace. Raises OSError."""
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.name = str(Path(f"/proc/self/fd/{self._descriptor}").readlink())

    def __del__(self) -> None:
        if hasattr(self, "_descriptor"):
            os.close(self._descriptor)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Namespace) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


def namespaces_of(token: str) -> set[Namespace]:
    """Return the network namespaces of this run's processes, except our own."""
    seen = set()
    for pid in processes_of(token):
        try:
            seen.add(Namespace(Path(f"/proc/{pid}/ns/net")))
        except OSError:
            continue
    return seen - {Namespace(Path("/proc/self/ns/net"))}


def host_interfaces() -> set[str]:
    """Return the names of the interfaces of this network namespace."""
    lines = subprocess.run(
        ["ip", "-o", "link"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    return {line.split(": ")[1] for line in lines}


def assert_nothing_left(token: str, namespaces: set[Namespace], interfaces: set[str]) -> None:
    """Wait until the kernel has cleaned up; then no process, namespace of the run, or new interface
    remains.
    """
    names = {namespace.name for namespace in namespaces}
    wait_until(lambda: not processes_of(token), f"the end of {processes_of(token)}")
    wait_until(lambda: not names & network_namespaces(), "the end of the run's network namespaces")
    assert host_interfaces() <= interfaces


def wait_until(condition: Callable[[], bool], what: str, patience_s: float = PATIENCE_S) -> None:
    """Wait for a condition that gives no notification."""
    deadline = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < deadline, f"waited {patience_s} s for {what}"
        time.sleep(0.01)
