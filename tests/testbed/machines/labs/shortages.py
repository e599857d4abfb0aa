"""Shortages on a lab machine: an occupied port, a full disk."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from io import FileIO

import pytest

from tests.testbed.machines.labs.machine import ENVIRONMENT, LabMachine
from tests.testbed.machines.labs.observation import mounts_of

HOLD_UDP_PORT = """\
import socket, sys
holder = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
holder.bind(("0.0.0.0", int(sys.argv[1])))
print("held", flush=True)
sys.stdin.read()
"""
ROOM_BYTES = 8 << 20
"""Room for other writers while a folder is filled."""


@contextlib.contextmanager
def occupied_udp_port(machine: LabMachine, port: int) -> Iterator[None]:
    """Let another process on the machine hold this UDP port during the block."""
    holder = subprocess.Popen(
        machine.inside(["python3", "-c", HOLD_UDP_PORT, str(port)]),
        env=ENVIRONMENT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with holder:  # which ends with its input, and nsenter only after it
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        yield


def limit_folder(machine: LabMachine, size_bytes: int) -> None:
    """Limit the size of the inventory's folder to this: a small disk, or the present one made smaller or
    larger (not below its used size).
    """
    size = f"size={size_bytes}"
    mounted = machine.folder in {where for where, _ in mounts_of(machine.pid)}
    kind = ["-o", f"remount,{size}"] if mounted else ["-t", "tmpfs", "-o", f"{size},mode=755", "tmpfs"]
    machine.run(["mkdir", "-p", machine.folder])
    machine.run(["mount", *kind, machine.folder])


def fill_folder(machine: LabMachine) -> None:
    """Fill the folder, which must have been limited before."""
    disk = os.statvfs(machine.path(machine.folder))
    limit_folder(machine, (disk.f_blocks - disk.f_bfree) * disk.f_frsize + ROOM_BYTES)
    filler = machine.path(f"{machine.folder}/filler").open("ab", buffering=0)
    with filler, pytest.raises(OSError, match=r"No space left on device"):
        _write_for_ever(filler, bytes(disk.f_frsize))


def _write_for_ever(file: FileIO, piece: bytes) -> None:
    """Write until an OSError is raised."""
    while True:
        file.write(piece)
