"""`python -m testbed.links.relay DESCRIPTOR`: the relay process, controlled through that socket.

It runs at the highest priority that the user's privileges allow. Lateness at p99, measured beside two busy
processes on two cores: default 3.7 ms, niceness -20 0.5 to 2.7 ms (and receivers starve), SCHED_FIFO 0.2 ms.
The relay therefore uses SCHED_FIFO if allowed (root, or a limit on real-time priority above 0) and yields the
processor whenever no frame is due. Otherwise it requests a short slice (Linux 6.12 and later), which needs no
privilege and lets a woken process preempt busy ones sooner.
"""

import ctypes
import gc
import os
import platform
import resource
import select
import socket
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from random import Random
from typing import Any, TypeVar

from testbed.links.relay.control_socket import ControlSocket, trace_from_json
from testbed.links.relay.ingress import Ingress
from testbed.links.relay.lan_switch import LanSwitch
from testbed.links.relay.link_direction import DelayQueue, LinkDirection
from testbed.links.relay.loop import Loop
from testbed.links.relay.port import Outlet, RelayPort
from testbed.links.relay.ring_sizes import port_blocks
from topologies.link_parameters import LinkParameters

PR_SET_TIMERSLACK = 29
FIFO_PRIORITY = 1
SLICE_NS = 100_000  # the shortest that the kernel accepts
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
    """Raise this process's priority as far as allowed; returns the scheduling that was granted.

    Also makes timers exact (the default slack adds 50 us to every wait) and disables garbage collection,
    which would delay frames.
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


def build_ingresses(order: dict[str, Any], delay_queue: DelayQueue, stack: ExitStack) -> list[Ingress]:
    """Open the ends of every link and create its directions that are emulated here.

    Raises OSError, naming the interface.
    """
    link_directions = [
        (
            link["name"],
            direction,
            link[source],
            link[sink],
            LinkParameters(**link["parameters"][direction]),
            trace_from_json(link["traces"].get(direction)),
        )
        for link in order["links"]
        for direction, source, sink in (("forward", "a", "b"), ("backward", "b", "a"))
        if direction in link["parameters"]
    ]
    links = {source: parameters for _, _, source, _, parameters, _ in link_directions}
    sources = dict(zip(links, port_blocks(list(links.values())), strict=True))
    silent = dict.fromkeys(sink for _, _, _, sink, *_ in link_directions if sink not in sources)
    ports = _opened(lambda interface: RelayPort(interface, sources[interface]), sources, stack)
    outlets = _opened(Outlet, silent, stack)
    ingresses = []
    for name, direction, source, sink, parameters, trace in link_directions:
        out = ports[sink].out if sink in ports else outlets[sink].out
        random = Random(f"{order['seed']}/{name}/{direction}")  # noqa: S311  loss, not secrets
        ingresses.append(
            Ingress(
                name,
                direction,
                ports[source],
                LinkDirection(out, parameters, random, delay_queue, trace),
                delay_queue,
            )
        )
    return ingresses


THREADS_MAX = 96

End = TypeVar("End", RelayPort, Outlet)
Result = TypeVar("Result")


def in_parallel(work: Callable[[Any], Result], items: Iterable[Any]) -> list[Result]:
    """Call `work` for every item and return the results in order.

    All items are tried; raises the error of the first that failed.

    The kernel waits for an RCU grace period, some 10 ms, whenever a receive ring is created or closed;
    concurrent threads share grace periods.
    """
    with ThreadPoolExecutor(THREADS_MAX) as pool:
        futures = [pool.submit(work, item) for item in items]
    return [future.result() for future in futures]


def _opened(open_end: Callable[[str], End], interfaces: Iterable[str], stack: ExitStack) -> dict[str, End]:
    def open_named(interface: str) -> End:
        try:
            return open_end(interface)
        except OSError as error:
            raise OSError(error.errno, f"{error.strerror} (opening {interface})") from error

    names = list(interfaces)
    ends = in_parallel(open_named, names)
    stack.callback(in_parallel, lambda end: end.close(), ends)
    return dict(zip(names, ends, strict=True))


def main(descriptor: int) -> int:
    """Emulate the links of one run. Returns the exit code."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with ExitStack() as stack:
        poll = stack.enter_context(select.epoll())  # first, because `select` accepts descriptors up to 1023
        control = ControlSocket(socket.socket(fileno=descriptor))
        stack.callback(control.close)
        order = control.receive()
        if order is None:
            return 0
        delay_queue = DelayQueue()
        try:
            ingresses = build_ingresses(order, delay_queue, stack)
        except OSError as error:
            control.send({"error": str(error)})
            return 1
        loop = Loop(ingresses, LanSwitch(order["links"], ingresses), delay_queue, control)
        control.send({"did": "start", "scheduling": raise_priority()})
        loop.run(poll)
        return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
