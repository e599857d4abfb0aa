"""Slow disks, in a sandbox: durations of syncs, and the waits of other processes."""

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from node.tcp.sync_filter import suspend_syncs
from testbed.errors import TestbedError
from testbed.runner.disks.slow_disks import SlowDisks
from tests.testbed.sandboxed import sandboxed, sandboxed_as_ordinary_user

pytestmark = pytest.mark.network
NAME = "r0/server-0"
SLOWER_US = 300_000


@contextlib.contextmanager
def synchronising(disks: SlowDisks, path: Path) -> Iterator[socket.socket]:
    """Fork a child that syncs once for each byte it gets, and reports the milliseconds."""
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        ours.close()
        listener = suspend_syncs()
        socket.send_fds(theirs, [b"."], [listener])
        os.close(listener)
        with path.open("ab", buffering=0) as file:
            while said := theirs.recv(1):
                began_s = time.monotonic()
                if said == b"f":
                    file.write(b".")
                    os.fsync(file.fileno())
                else:
                    subprocess.run(["sync"], check=True)
                theirs.send(b"%d" % ((time.monotonic() - began_s) * 1000))
        os._exit(0)
    theirs.close()
    _, (listener,), _, _ = socket.recv_fds(ours, 1, 1)
    disks.take(NAME, os.getpid(), listener)
    os.close(listener)
    with ours:
        yield ours
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def seen(folder: str) -> dict[str, list[bool]]:
    """Return whether the sync at each step took as long as on a slow disk."""
    problems: list[str] = []
    disks, found = SlowDisks(frozenset({NAME}), problems.append), {}
    with synchronising(disks, Path(folder) / "file") as child:

        def is_slow(how: bytes) -> bool:
            child.send(how)
            return int(child.recv(10)) >= SLOWER_US / 1000

        found["as it is"] = [is_slow(b"f"), is_slow(b"s")]
        disks.slow(NAME, "one", SLOWER_US)
        disks.slow(NAME, "two", 1)
        found["slow"] = [is_slow(b"f"), is_slow(b"s")]
        disks.restore(NAME, "one")
        found["a little slow"] = [is_slow(b"f")]
        disks.slow(NAME, "one", SLOWER_US)
        child.send(b"f")
        time.sleep(SLOWER_US / 3e6)
        disks.restore(NAME, "one")
        found["begun while it was slow"] = [int(child.recv(10)) >= SLOWER_US / 1000]
        disks.slow(NAME, "one", SLOWER_US)
        disks.restore_all(NAME)
        found["another disk"] = [is_slow(b"f")]
        disks.slow(NAME, "one", 10**6 * 3600 * 10_000)
        child.send(b"f")  # killed while it waits
    disks.restore_all(NAME)
    with synchronising(disks, Path(folder) / "file") as child:
        found["started again"] = [is_slow(b"f")]
    disks.take(NAME, os.getpid(), 1_000_000)
    found["nothing to take"] = [len(problems) == 1]
    disks.close()
    return found


EXPECTED = {
    "as it is": [False, False],
    "slow": [True, True],
    "a little slow": [False],
    "begun while it was slow": [True],
    "another disk": [False],
    "started again": [False],
    "nothing to take": [True],
}


def test_syncs_take_longer_while_the_disk_is_slow(tmp_path):
    assert sandboxed(seen, str(tmp_path)) == EXPECTED


def test_the_same_holds_for_an_ordinary_user(tmp_path):
    assert sandboxed_as_ordinary_user(seen, str(tmp_path), home=tmp_path) == EXPECTED


def test_a_process_that_does_not_suspend_its_syncs_cannot_be_slowed():
    disks = SlowDisks(frozenset(), print)
    with pytest.raises(TestbedError, match="the disk calls of r0/server-0 are not intercepted"):
        disks.slow(NAME, "one", SLOWER_US)
    disks.close()
