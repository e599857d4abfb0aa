"""Applies changes that wait until a process has sent something.

The process tells when it has, and stands still from then on (`node.tcp.watching`). The change is applied, and
the process goes on; if the change was that it is stopped, once it is continued. How long it stood still is
how late the change was, as of any other: the record has both times, and a change that is late is a problem of
the run.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

from testbed.faults.application import AppliedChange, Change, Numbered, apply_one
from testbed.links.emulator import Applied
from testbed.processes import NodeProcess, Processes


def waits(change: Change) -> bool:
    """Whether a change has no time of its own."""
    return change.when is not None


async def apply_triggered(
    changes: Sequence[Numbered],
    until_ns: Mapping[int, int],
    processes: Processes,
    apply: Callable[[Change], Awaitable[Applied]],
    record: Callable[[AppliedChange], None],
) -> None:
    """Apply each of these changes, which wait, when its process says so, until this is cancelled. until_ns:
    by number, when it is too late for it.
    """
    known = dict(changes)
    reached: asyncio.Queue[tuple[NodeProcess, int, int]] = asyncio.Queue()
    processes.on_reached = lambda *told: reached.put_nowait(told)
    try:
        while True:
            node, index, time_ns = await reached.get()
            change = known.pop(index, None)  # once: a process that is started again counts anew
            try:
                if change is not None and time_ns < until_ns[index]:
                    record(await apply_one(index, change, time_ns, apply))
            finally:
                processes.go_on(node)
    finally:
        processes.on_reached = None
        while not reached.empty():
            processes.go_on(reached.get_nowait()[0])
