"""Files without a place on the machine: in a tmpfs that is mounted for a moment in the sandbox.

Files that are bound elsewhere or open last as long as their users, so that nothing is left, however the
sandbox ends.
"""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from testbed.errors import MachineError

PASSING_MOUNT = Path("/sys/kernel")
"""A folder of the sandbox's own /sys, which can be hidden by a temporary mount for a moment."""


@contextmanager
def passing_mount() -> Iterator[Path]:
    """Yield an empty folder, which is nowhere when the block ends. Raises MachineError."""
    mount("-t", "tmpfs", "-o", "mode=755", "cutset", str(PASSING_MOUNT))
    try:
        yield PASSING_MOUNT
    finally:
        mount("-l", str(PASSING_MOUNT), program="umount")


def mount(*arguments: str, program: str = "mount") -> None:
    """Run mount(8) or umount(8). Raises MachineError."""
    try:
        subprocess.run([program, "-n", *arguments], check=True, capture_output=True, text=True)
    except subprocess.CalledProcessError as error:
        raise MachineError(f"cannot {program} a file of the run: {error.stderr.strip()}") from error
