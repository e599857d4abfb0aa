"""The tcpdump command of each capture, with its buffer size and privileges."""

import os
from dataclasses import dataclass
from pathlib import Path

from experiments.planned.plan import CapturePlan

SNAPLEN_MAX = 262_144
"""tcpdump's limit for whole packets: more than an offloaded frame of 64 KiB."""
BUFFER_KIB = 8192
"""Kernel buffer of each capture: more than two seconds of a busy host at the main job's load (3 MB/s)."""
BUFFER_KIB_MIN = 512
BUFFERS_SHARE = 8
"""All buffers together take at most this part (1/8) of memory. The kernel cannot swap them out."""
BUFFERS_BYTES_MAX = 1 << 30
"""The sum of all buffers: new memory costs up to 4 ms/MiB on a virtual machine, and delays the start."""
CONFINED = (
    *("setpriv", "--no-new-privs", "--bounding-set=-all,+net_raw,+dac_override,+setuid,+setgid,+setpcap"),
    *("--inh-caps=-all,+net_raw", "--ambient-caps=-all,+net_raw", "--"),
)
"""Starts tcpdump with only the capabilities to listen and to write its file.

If tcpdump runs as root, it sets its user and group again, which needs setuid and setgid.
"""


@dataclass(frozen=True, slots=True)
class TcpdumpPoint:
    """A planned capture's interface in the network namespace at `netns` (None: the sandbox's)."""

    capture: CapturePlan
    netns: str | None
    interface: str


def memory_bytes() -> int:
    """Return the memory of this machine in bytes."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def buffer_kib(captures: int, memory: int) -> int:
    """Return the kernel buffer of each of `captures` captures on a machine with `memory` bytes."""
    share_kib = min(memory // BUFFERS_SHARE, BUFFERS_BYTES_MAX) // max(1, captures) >> 10
    return max(BUFFER_KIB_MIN, min(BUFFER_KIB, share_kib))


def tcpdump_command(
    point: TcpdumpPoint, path: Path, *, snaplen_bytes: int | None, root: bool, buffer_kib: int = BUFFER_KIB
) -> list[str]:
    """Return the argument list of one capture.

    As root, `-Z root` keeps tcpdump from changing to another user, who could not write into the run
    directory.
    """
    enter = [*(["nsenter", f"--net={point.netns}", "--"] if point.netns else []), *CONFINED]
    listen = ["tcpdump", "-i", point.interface, "-n", "-p", "--time-stamp-precision=nano"]
    sizes = ["-s", str(snaplen_bytes or SNAPLEN_MAX), "-B", str(buffer_kib)]
    user = ["-Z", "root"] if root else []
    return [*enter, *listen, *sizes, *user, "-w", str(path)]
