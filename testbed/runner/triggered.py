"""Application of changes that wait until a process has sent a message.

The process reports the message and is stopped from then on (`node.tcp.watching`). The change is applied, and
the process continues; if the change is a stop, it continues when it is continued. The time for which it was
stopped is the delay of the change, as for any other: the record has both times, and a late change is a
problem of the run.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

from testbed.faults.application import AppliedChange, Change, Numbered, apply_one
from testbed.links.emulator import Applied
from testbed.processes import NodeProcess, Processes


def waits(change: Change) -> bool:
    """Return whether a change has no time of its own."""
    return change.when is not None


async def apply_triggered(
    changes: Sequence[Numbered],
    until_ns: Mapping[int, int],
    processes: Processes,
    apply: Callable[[Change], Awaitable[Applied]],
    record: Callable[[AppliedChange], None],
) -> None:
    """Apply each of these waiting changes when its process reports the message, until cancelled.

    until_ns: by index, when it is too late for the change.
    """
    known = dict(changes)
    reached: asyncio.Queue[tuple[NodeProcess, int, int]] = asyncio.Queue()
    processes.on_reached = lambda *report: reached.put_nowait(report)
    try:
        while True:
            node, index, time_ns = await reached.get()
            change = known.pop(index, None)  # once, although a restarted process counts again
            try:
                if change is not None and time_ns < until_ns[index]:
                    record(await apply_one(index, change, time_ns, apply))
            finally:
                processes.resume(node)
    finally:
        processes.on_reached = None
        while not reached.empty():
            processes.resume(reached.get_nowait()[0])
