"""The destination of a machine's file in the run directory. Names from other machines are untrusted.

The output of a host's processes (captures, logs, deliveries, storage, a program's folder) has the same path
as in a run on this machine, since hosts' names differ between machines. Other files, such as run.json and the
runner's log, go into the machine's own folder.
"""

import re
from pathlib import PurePosixPath

from testbed.errors import TestbedError

SHARED = frozenset({"captures", "logs", "deliveries", "storage", "programs"})
GROWING = frozenset({"captures", "logs", "deliveries"})
"""Folders of files that only grow; a file that shrinks or changes there is reported."""
HOST_LOG = ".jsonl"
"""The ending of hosts' logs (`experiments.records.rundir`)."""
MACHINES = "machines"
"""The folder in the run directory that has a folder for each machine."""
AGAIN = ".shipping"
"""The ending of a file's name while the file is shipped again beside its old content."""

PATH_BYTES_MAX = 1024
PART_BYTES_MAX = 200  # file systems accept 255; this leaves room for endings
DEPTH_MAX = 16
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\\]")


class ShippingError(TestbedError, ValueError):
    """The other side violates the protocol. It is also an error of validation."""


def checked(path: object) -> str:
    """Return the path if it is relative and stays below its folder. Raises ShippingError."""
    if not isinstance(path, str) or _CONTROL.search(path) or len(path.encode()) > PATH_BYTES_MAX:
        raise ShippingError(f"the name {path!r:.80} is invalid")
    parts = path.split("/")
    if len(parts) > DEPTH_MAX or any(
        part in {"", ".", ".."} or len(part.encode()) > PART_BYTES_MAX or part.endswith(AGAIN)
        for part in parts
    ):
        raise ShippingError(f"the name {path!r:.80} leads out of the folder, or is invalid")
    return path


def destination(machine: str, path: str) -> PurePosixPath:
    """Return the path of a machine's file relative to the run directory. Raises ShippingError."""
    relative = PurePosixPath(checked(path))
    folder = relative.parts[0] if len(relative.parts) > 1 else ""
    if folder in SHARED and (folder != "logs" or relative.suffix == HOST_LOG):
        return relative
    return PurePosixPath(MACHINES, checked(machine), relative)
