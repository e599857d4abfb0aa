"""Decides where a machine's file goes in the run directory. Names from other machines are untrusted.

The output of a host's processes (captures, logs, deliveries, storage, a program's folder) goes where it
would be in a run on this machine, since hosts' names differ between machines. Everything else belongs to the
machine alone and goes into a folder of its own: run.json first, and the log of what ran the hosts.
"""

import re
from pathlib import PurePosixPath

from testbed.machines.shipping.frames import ShippingError

SHARED = frozenset({"captures", "logs", "deliveries", "storage", "programs"})
GROWING = frozenset({"captures", "logs", "deliveries"})
"""Folders of files that only ever grow: where one does not, something is wrong with it."""
HOST_LOG = ".jsonl"
"""How logs of hosts end (`experiments.records.rundir`)."""
MACHINES = "machines"
"""The folder in the run directory that has a folder for each machine."""
AGAIN = ".shipping"
"""How a file's name ends while it is shipped anew beside what was shipped before."""

PATH_BYTES_MAX = 1024
PART_BYTES_MAX = 200  # file systems take 255; leave room for what is appended
DEPTH_MAX = 16
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\\]")


def checked(path: object) -> str:
    """A relative path that stays below its folder. Raises ShippingError."""
    if not isinstance(path, str) or _CONTROL.search(path) or len(path.encode()) > PATH_BYTES_MAX:
        raise ShippingError(f"the name {path!r:.80} cannot be meant")
    parts = path.split("/")
    if len(parts) > DEPTH_MAX or any(
        part in {"", ".", ".."} or len(part.encode()) > PART_BYTES_MAX or part.endswith(AGAIN)
        for part in parts
    ):
        raise ShippingError(f"the name {path!r:.80} leads out of the folder, or is none")
    return path


def destination(machine: str, path: str) -> PurePosixPath:
    """The path of a machine's file relative to the run directory. Raises ShippingError."""
    relative = PurePosixPath(checked(path))
    folder = relative.parts[0] if len(relative.parts) > 1 else ""
    if folder in SHARED and (folder != "logs" or relative.suffix == HOST_LOG):
        return relative
    return PurePosixPath(MACHINES, checked(machine), relative)
