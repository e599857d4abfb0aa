"""Drops the capabilities that a process has beyond its user's, for itself and its children (capabilities(7)).

In a sandbox everything runs as root of its namespaces: without this, a node could change links, faults and
other hosts' processes, and, in a run that real root started, the machine. Calls prctl(2) and capset(2).
"""

import ctypes
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from node.tcp.libc import check, libc

CAP_CHOWN: Final = 0  # linux/capability.h
CAP_DAC_OVERRIDE: Final = 1
CAP_FOWNER: Final = 3
CAP_FSETID: Final = 4
CAP_KILL: Final = 5
CAP_SETGID: Final = 6
CAP_SETUID: Final = 7
CAP_SETPCAP: Final = 8
CAP_NET_BIND_SERVICE: Final = 10
CAP_SYS_CHROOT: Final = 18
OF_PROGRAMS: Final = frozenset(
    {CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID, CAP_KILL, CAP_SETGID, CAP_SETUID, CAP_SETPCAP}
    | {CAP_NET_BIND_SERVICE, CAP_SYS_CHROOT}
)
"""Capabilities that servers started as root need before they change their user; none affects the network."""

CAPABILITIES_MAX: Final = 64
_VERSION_3: Final = 0x20080522
_PR_CAPBSET_READ, _PR_CAPBSET_DROP = 23, 24
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
GIVE_UP: Final = "give up capabilities"


class _CapabilityHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Sets(ctypes.Structure):
    """One half of each set, the low one first."""

    _fields_ = (
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    )


def limit_bounding_set(kept: frozenset[int]) -> None:
    """Limit the bounding set to these capabilities, for this process and its children.

    Needs CAP_SETPCAP; a process without it cannot pass capabilities on anyway.
    """
    for number in range(CAPABILITIES_MAX):
        if number not in kept and libc.prctl(_PR_CAPBSET_READ, number, 0, 0, 0) == 1:
            libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0)


def drop_capabilities(kept: frozenset[int]) -> None:
    """Keep only these of the permitted capabilities, and gain none by execve(2).

    Raises OSError.
    """
    permitted = _masks()[1] & _mask(kept)
    check(libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), GIVE_UP)
    libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    _set(permitted, permitted, 0)


def drop_capabilities_keeping_access(written: Iterable[Path], read: Iterable[Path]) -> None:
    """Drop all capabilities unless access to these folders, existing or not, needs CAP_DAC_OVERRIDE.

    That is so when root works in another user's folder which others cannot enter. Raises OSError.
    """
    limit_bounding_set(frozenset())
    _, permitted, _ = _masks()
    _set(0, permitted, 0)
    checks = [(path, os.R_OK | os.X_OK) for path in read] + [(path, os.W_OK | os.X_OK) for path in written]
    reached = all(os.access(_existing(path), mode, effective_ids=True) for path, mode in checks)
    _set(permitted, permitted, 0)
    drop_capabilities(frozenset() if reached else frozenset({CAP_DAC_OVERRIDE}))


def _existing(path: Path) -> Path:
    """Return the path itself, or its nearest existing parent."""
    return next(each for each in (path.absolute(), *path.absolute().parents) if os.path.lexists(each))


def _mask(numbers: Iterable[int]) -> int:
    return sum(1 << number for number in numbers)


def _masks() -> tuple[int, int, int]:
    """Return the effective, permitted and inheritable capabilities of this thread. Raises OSError."""
    low_and_high = (_Sets * 2)()
    check(libc.capget(ctypes.byref(_CapabilityHeader(_VERSION_3, 0)), low_and_high), GIVE_UP)
    low, high = low_and_high
    return (
        low.effective | high.effective << 32,
        low.permitted | high.permitted << 32,
        low.inheritable | high.inheritable << 32,
    )


def _set(effective: int, permitted: int, inheritable: int) -> None:
    """Set the capabilities of this thread. Raises OSError."""
    low = [each & 0xFFFFFFFF for each in (effective, permitted, inheritable)]
    high = [each >> 32 for each in (effective, permitted, inheritable)]
    both = (_Sets * 2)(_Sets(*low), _Sets(*high))
    check(libc.capset(ctypes.byref(_CapabilityHeader(_VERSION_3, 0)), both), GIVE_UP)
