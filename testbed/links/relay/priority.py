"""Raises this process's scheduling priority as far as the user's privileges allow.

Exact timers (the default slack adds 50 us to every wait), no garbage collection in the middle of a burst,
and a better scheduling class. Measured beside two busy processes on two cores, lateness at p99: default
3.7 ms, niceness -20 0.5 to 2.7 ms (and receivers starve), SCHED_FIFO 0.2 ms. So SCHED_FIFO where that is
allowed (root, or a limit on real-time priority above 0); it leaves the processor whenever nothing is due.
Else a short slice (Linux 6.12 and later), which needs no privilege and lets a woken process overtake busy
ones sooner.
"""

import ctypes
import gc
import os
import platform

PR_SET_TIMERSLACK = 29
FIFO_PRIORITY = 1
SLICE_NS = 100_000  # the shortest that the kernel takes
SYS_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}


class _SchedAttr(ctypes.Structure):
    """struct sched_attr of sched_setattr(2)."""

    _fields_ = [
        ("size", ctypes.c_uint32),
        ("sched_policy", ctypes.c_uint32),
        ("sched_flags", ctypes.c_uint64),
        ("sched_nice", ctypes.c_int32),
        ("sched_priority", ctypes.c_uint32),
        ("sched_runtime", ctypes.c_uint64),
        ("sched_deadline", ctypes.c_uint64),
        ("sched_period", ctypes.c_uint64),
    ]


def raise_priority() -> str:
    """Reduce timer slack, freeze garbage collection and raise the priority; returns what the scheduler
    granted.
    """
    gc.collect()
    gc.freeze()
    gc.disable()
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(FIFO_PRIORITY))
    except PermissionError:
        return "short slice" if _shorten_slice(libc) else "ordinary"
    return "SCHED_FIFO"


def _shorten_slice(libc: ctypes.CDLL) -> bool:
    number = SYS_SCHED_SETATTR.get(platform.machine())
    niceness = os.getpriority(os.PRIO_PROCESS, 0)
    attributes = _SchedAttr(size=ctypes.sizeof(_SchedAttr), sched_nice=niceness, sched_runtime=SLICE_NS)
    return number is not None and libc.syscall(number, 0, ctypes.byref(attributes), 0) == 0
