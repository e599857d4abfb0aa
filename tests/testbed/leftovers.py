"""What a run has left behind: processes that carry its token, and whatever its machine had not before.

Processes are found by the environment that every process of a run inherits, so this sees those in other PID
namespaces too, as long as the caller may read them.
"""

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from testbed.sandbox.outside import RUN_VARIABLE

PATIENCE_S = 20.0


def processes_of(token: str) -> dict[int, list[str]]:
    """PID and command line of each process that carries this token; the dead that nobody has reaped are
    left out.
    """
    wanted = f"{RUN_VARIABLE}={token}".encode()
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                found[int(entry.name)] = (entry / "cmdline").read_text().split("\0")[:-1]
        except OSError:
            continue  # it ended meanwhile, or belongs to somebody else
    return found


def process_running(token: str, *beginning: str) -> int:
    """The PID of the run's process whose command line begins with these words, waiting for it to come."""
    found: list[int] = []

    def look() -> bool:
        lines = processes_of(token).items()
        found[:] = [pid for pid, line in lines if tuple(line[: len(beginning)]) == beginning]
        return bool(found)

    wait_until(look, f"a process of {token} that begins with {beginning}")
    return min(found)


def network_namespaces() -> set[str]:
    """Every network namespace that has a process."""
    seen = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                seen.add(str((entry / "ns/net").readlink()))
            except OSError:
                continue
    return seen


class Namespace:
    """A network namespace that is held on to: else the kernel would give its number to the next one that
    somebody makes, as soon as it is empty.
    """

    def __init__(self, path: Path) -> None:
        """Raises OSError."""
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
    """The network namespaces in which processes of this run are, other than our own."""
    seen = set()
    for pid in processes_of(token):
        try:
            seen.add(Namespace(Path(f"/proc/{pid}/ns/net")))
        except OSError:
            continue
    return seen - {Namespace(Path("/proc/self/ns/net"))}


def host_interfaces() -> set[str]:
    """The names of the interfaces of this network namespace."""
    lines = subprocess.run(
        ["ip", "-o", "link"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    return {line.split(": ")[1] for line in lines}


def assert_nothing_left(token: str, namespaces: set[Namespace], interfaces: set[str]) -> None:
    """Once the kernel has cleaned up: no process, nobody in a namespace of the run, no new interface here."""
    names = {namespace.name for namespace in namespaces}
    wait_until(lambda: not processes_of(token), f"the end of {processes_of(token)}")
    wait_until(lambda: not names & network_namespaces(), "the end of the run's network namespaces")
    assert host_interfaces() <= interfaces


def wait_until(condition: Callable[[], bool], what: str, patience_s: float = PATIENCE_S) -> None:
    """Wait for something that nothing can tell us of."""
    deadline = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < deadline, f"waited {patience_s} s for {what}"
        time.sleep(0.01)
