"""Seccomp filter that lets another process delay the calls with which a process waits for its disk.

These are fsync, fdatasync, sync, syncfs and msync, of the process and its children. The filter suspends each
call until the holder of its listener answers (seccomp(2), seccomp_unotify(2)); the kernel then executes it.
Without a holder the calls fail with ENOSYS. Writes to files opened with O_SYNC or O_DSYNC, and those of
io_uring, are not suspended. A signal whose handler does not restart calls may interrupt one before the holder
has received it (EINTR); before Linux 5.19, until it is answered.
"""

import ctypes
import os
import platform
import struct
from typing import Final

from node.tcp.libc import libc

SET_MODE_FILTER: Final = 1  # linux/seccomp.h
NEW_LISTENER: Final = 1 << 3
WAIT_KILLABLE_RECV: Final = 1 << 5  # a signal that stops the process does not restart a call
ALLOW: Final = 0x7FFF0000
USER_NOTIF: Final = 0x7FC00000
LOAD_WORD: Final = 0x20  # linux/bpf_common.h: BPF_LD | BPF_W | BPF_ABS
JUMP_EQUAL: Final = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
RETURN: Final = 0x06  # BPF_RET | BPF_K
NUMBER_AT, ARCHITECTURE_AT = 0, 4  # in struct seccomp_data

MACHINES: Final = {
    "x86_64": (0xC000003E, 317, (74, 75, 162, 306, 26)),
    "aarch64": (0xC00000B7, 277, (82, 83, 81, 267, 227)),
}
"""By uname -m: AUDIT_ARCH, and the numbers of seccomp and of the calls."""


def suspend_syncs() -> int:
    """Install the filter for the calling process; return its listener.

    The process needs CAP_SYS_ADMIN and must have one thread. Raises OSError if the kernel does not support
    it.
    """
    try:
        architecture, seccomp, calls = MACHINES[platform.machine()]
    except KeyError:
        raise OSError(f"slow disks are not supported on {platform.machine()}") from None
    steps = _filter(architecture, calls)
    code = ctypes.create_string_buffer(steps, len(steps))
    program = ctypes.create_string_buffer(struct.pack("@HP", len(steps) // 8, ctypes.addressof(code)))
    for flags in (NEW_LISTENER | WAIT_KILLABLE_RECV, NEW_LISTENER):
        listener: int = libc.syscall(seccomp, SET_MODE_FILTER, flags, program)
        if listener >= 0:
            return listener
    number = ctypes.get_errno()
    raise OSError(number, f"cannot suspend disk syncs (seccomp): {os.strerror(number)}")


def _filter(architecture: int, calls: tuple[int, ...]) -> bytes:
    """Encode the steps as struct sock_filter: code, jump offsets if true and if false, and a value."""
    to_allow = len(calls) + 1
    steps = [(LOAD_WORD, 0, 0, ARCHITECTURE_AT), (JUMP_EQUAL, 0, to_allow, architecture)]
    steps += [(LOAD_WORD, 0, 0, NUMBER_AT)]
    steps += [(JUMP_EQUAL, len(calls) - place, 0, call) for place, call in enumerate(calls)]
    steps += [(RETURN, 0, 0, ALLOW), (RETURN, 0, 0, USER_NOTIF)]
    return b"".join(struct.pack("=HBBI", *step) for step in steps)
