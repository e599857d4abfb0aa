"""Slow disks: delays the calls with which processes wait for their disks, during faults.

Processes with slow disks in the plan suspend these calls themselves (`node.tcp.sync_filter`). A thread
continues each call at once, or after the current delay of the disk. A call made during a fault is held for
the full delay, even beyond the fault's end.
"""

import contextlib
import ctypes
import fcntl
import heapq
import os
import select
import struct
import threading
import time
from collections import defaultdict
from collections.abc import Callable

from experiments.planned.changes import ProcessAction, ProcessChange
from experiments.planned.plan import Plan
from testbed.errors import TestbedError

PIDFD_GETFD = 438  # on all architectures
NOTIFICATION_BYTES = 80  # struct seccomp_notif: its first eight bytes are the call's id
RECEIVE = 0xC0502100  # SECCOMP_IOCTL_NOTIF_RECV
SEND = 0xC0182101  # SECCOMP_IOCTL_NOTIF_SEND
GO_ON = 1  # SECCOMP_USER_NOTIF_FLAG_CONTINUE
WAIT_S_MAX = 3600.0  # epoll takes at most some days


def slow_disks(plan: Plan) -> frozenset[str]:
    """Return the processes whose disks become slow at some time."""
    changes = (each for each in plan.changes if isinstance(each, ProcessChange))
    return frozenset(each.process for each in changes if each.action is ProcessAction.SLOW_DISK)


class SlowDisks:
    """The disks of processes, and the current delay of each. Must be closed.

    names: from `slow_disks`. on_problem: called if the calls of a process cannot be delayed.
    """

    def __init__(self, names: frozenset[str], on_problem: Callable[[str], None]) -> None:
        self._known = names
        self._on_problem = on_problem
        self._lock = threading.Lock()  # protects _slower_us
        self._slower_us: defaultdict[str, dict[str, int]] = defaultdict(dict)  # by process and fault
        self._names: dict[int, str] = {}  # by listener
        self._held: list[tuple[int, int, int]] = []  # due time (monotonic), listener, id of the call
        self._poll = select.epoll()
        self._wakeup, self._notify = os.pipe()
        self._poll.register(self._wakeup, select.EPOLLIN)
        self._thread = threading.Thread(target=self._answer, name="slow disks", daemon=True)
        if names:
            self._thread.start()

    def take(self, name: str, holder: int, descriptor: int) -> None:
        """Delay calls of a started process: its listener is this descriptor of the process `holder`."""
        try:
            listener = _copied_descriptor(holder, descriptor)
        except OSError as error:
            self._on_problem(f"{name} cannot have a slow disk: pidfd_getfd: {error.strerror}")
            return
        self._names[listener] = name
        self._poll.register(listener, select.EPOLLIN)

    def slow(self, name: str, fault: str, slower_us: int) -> None:
        """Delay the syncs of a process's disk by this until `fault` is over. Raises TestbedError."""
        if name not in self._known:
            problem = "only those of processes with a `slow-disk` in the experiment's file are"
            raise TestbedError(f"the disk calls of {name} are not intercepted: {problem}")
        with self._lock:
            self._slower_us[name][fault] = slower_us

    def restore(self, name: str, fault: str | None) -> None:
        """End one fault of a process's disk."""
        with self._lock:
            self._slower_us[name].pop(fault or "", None)

    def restore_all(self, name: str) -> None:
        """End all faults of a process's disk, because it is replaced."""
        with self._lock:
            self._slower_us[name].clear()

    def close(self) -> None:
        """Stop delaying calls. Calls that still wait fail."""
        if self._thread.is_alive():
            os.write(self._notify, b"\0")
            self._thread.join()
        for descriptor in (*self._names, self._wakeup, self._notify):
            os.close(descriptor)
        self._poll.close()

    def _answer(self) -> None:
        while True:
            due_s = (self._held[0][0] - time.monotonic_ns()) / 1e9 if self._held else WAIT_S_MAX
            for descriptor, events in self._poll.poll(min(max(0.0, due_s), WAIT_S_MAX)):
                if descriptor == self._wakeup:
                    return
                if events & select.EPOLLIN:
                    self._receive(descriptor)
                elif events & (
                    select.EPOLLHUP | select.EPOLLERR
                ):  # all processes of this listener have ended
                    self._poll.unregister(descriptor)
            while self._held and self._held[0][0] <= time.monotonic_ns():
                _, listener, call = heapq.heappop(self._held)
                with contextlib.suppress(OSError):  # its process was killed meanwhile
                    fcntl.ioctl(listener, SEND, struct.pack("=QqiI", call, 0, 0, GO_ON))

    def _receive(self, listener: int) -> None:
        notification = bytearray(NOTIFICATION_BYTES)
        try:
            fcntl.ioctl(listener, RECEIVE, notification)
        except OSError:  # its process was killed meanwhile
            return
        (call,) = struct.unpack_from("=Q", notification)
        with self._lock:
            slower_us = max(self._slower_us[self._names[listener]].values(), default=0)
        heapq.heappush(self._held, (time.monotonic_ns() + slower_us * 1000, listener, call))


def _copied_descriptor(holder: int, descriptor: int) -> int:
    """Return a copy of another process's descriptor. Raises OSError."""
    process = os.pidfd_open(holder)
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        taken: int = libc.syscall(PIDFD_GETFD, process, descriptor, 0)
    finally:
        os.close(process)
    if taken < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return taken
