"""Slow disks: holds back the calls with which processes wait for their disks, while a fault says so.

The processes that a plan gives slow disks suspend these calls themselves (`node.tcp.sync_filter`). A thread
lets each go on, at once or as much later as the disk is slower then; what is asked for during a fault is held
for all of its time, also beyond the fault's end.
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

PIDFD_GETFD = 438  # of all architectures
NOTIFICATION_BYTES = 80  # struct seccomp_notif: its first eight bytes are the call's id
RECEIVE = 0xC0502100  # SECCOMP_IOCTL_NOTIF_RECV
SEND = 0xC0182101  # SECCOMP_IOCTL_NOTIF_SEND
GO_ON = 1  # SECCOMP_USER_NOTIF_FLAG_CONTINUE
WAIT_S_MAX = 3600.0  # of an epoll, which takes no more than some days


def slow_disks(plan: Plan) -> frozenset[str]:
    """The processes whose disks become slow at some time."""
    changes = (each for each in plan.changes if isinstance(each, ProcessChange))
    return frozenset(each.process for each in changes if each.action is ProcessAction.SLOW_DISK)


class SlowDisks:
    """The disks of processes, and by how much each is slower now. Close it at the end.

    names: of `slow_disks`. on_problem: is told of a process that nothing can be decided for.
    """

    def __init__(self, names: frozenset[str], on_problem: Callable[[str], None]) -> None:
        self._known = names
        self._on_problem = on_problem
        self._lock = threading.Lock()  # of what each is slower by
        self._slower_us: defaultdict[str, dict[str, int]] = defaultdict(dict)  # by process and fault
        self._names: dict[int, str] = {}  # by listener
        self._held: list[tuple[int, int, int]] = []  # until when (monotonic), a listener, the call's id
        self._poll = select.epoll()
        self._wakeup, self._notify = os.pipe()
        self._poll.register(self._wakeup, select.EPOLLIN)
        self._thread = threading.Thread(target=self._answer, name="slow disks", daemon=True)
        if names:
            self._thread.start()

    def take(self, name: str, holder: int, descriptor: int) -> None:
        """Decide for a process that has started: its listener is this descriptor of the process `holder`."""
        try:
            listener = _taken(holder, descriptor)
        except OSError as error:
            self._on_problem(f"{name} cannot have a slow disk: pidfd_getfd: {error.strerror}")
            return
        self._names[listener] = name
        self._poll.register(listener, select.EPOLLIN)

    def slow(self, name: str, fault: str, slower_us: int) -> None:
        """Let a process's disk be slower by this until `fault` is over. Raises TestbedError."""
        if name not in self._known:
            raise TestbedError(f"nothing holds back what {name} waits for")
        with self._lock:
            self._slower_us[name][fault] = slower_us

    def restore(self, name: str, fault: str | None) -> None:
        """One fault of a process's disk is over."""
        with self._lock:
            self._slower_us[name].pop(fault or "", None)

    def restore_all(self, name: str) -> None:
        """A process gets another disk."""
        with self._lock:
            self._slower_us[name].clear()

    def close(self) -> None:
        """Decide for nobody any more: what still waits fails."""
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
                elif events & (select.EPOLLHUP | select.EPOLLERR):  # all have ended that were suspended by it
                    self._poll.unregister(descriptor)
            while self._held and self._held[0][0] <= time.monotonic_ns():
                _, listener, call = heapq.heappop(self._held)
                with contextlib.suppress(OSError):  # it was killed meanwhile
                    fcntl.ioctl(listener, SEND, struct.pack("=QqiI", call, 0, 0, GO_ON))

    def _receive(self, listener: int) -> None:
        notification = bytearray(NOTIFICATION_BYTES)
        try:
            fcntl.ioctl(listener, RECEIVE, notification)
        except OSError:  # it was killed meanwhile
            return
        (call,) = struct.unpack_from("=Q", notification)
        with self._lock:
            slower_us = max(self._slower_us[self._names[listener]].values(), default=0)
        heapq.heappush(self._held, (time.monotonic_ns() + slower_us * 1000, listener, call))


def _taken(holder: int, descriptor: int) -> int:
    """A copy of another process's descriptor. Raises OSError."""
    process = os.pidfd_open(holder)
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        taken: int = libc.syscall(PIDFD_GETFD, process, descriptor, 0)
    finally:
        os.close(process)
    if taken < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return taken
