"""Starts processes while the run is on: again after their end, or for the first time.

A start counts as done once the process exists. It is told to go when it is ready, which may take a while (a
replica first requests what it lacks) and is not awaited: later faults are on time, and a process that ends
before it is ready delays nothing.
"""

import asyncio
import shutil
import time
from types import TracebackType
from typing import Self

from testbed.errors import TestbedError
from testbed.processes import NodeProcess
from testbed.runner.run_context import RunContext

END_TIMEOUT_S = 20.0
"""For a process that was killed just now to be gone."""
START_TIMEOUT_S = 20.0
READY_TIMEOUT_S = 20.0


class ProcessStarter:
    """A context manager. Leaving it abandons processes that are not ready yet, as nothing may start to run
    then.
    """

    def __init__(self, context: RunContext) -> None:
        self._stage = context
        self._waiting: set[asyncio.Task[None]] = set()  # never gone through, only kept alive

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        waiting = tuple(self._waiting)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    async def start(self, name: str, *, on_empty_disk: bool = False) -> None:
        """Start a process that does not run. Raises TestbedError if it still runs, or does not start.

        on_empty_disk: its storage is removed first.
        """
        processes = self._stage.processes
        before = processes.nodes.get(name)
        if before is not None and not await processes.wait_progress(
            lambda: not before.running, END_TIMEOUT_S
        ):
            raise TestbedError(f"{name} still runs")
        if on_empty_disk:
            shutil.rmtree(self._stage.specs[name]["storage"], ignore_errors=True)  # there may be none
        node = processes.start(self._stage.specs[name])
        if not await processes.wait_progress(lambda: node.pid is not None, START_TIMEOUT_S):
            raise TestbedError(f"{name} did not start")
        task = asyncio.create_task(self._go_when_ready(node))
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)

    async def _go_when_ready(self, node: NodeProcess) -> None:
        processes = self._stage.processes
        ready_or_ended = await processes.wait_progress(
            lambda: node.ready or node.exit is not None, READY_TIMEOUT_S
        )
        if node.running and node.ready:
            processes.go(time.time_ns(), node.name)
        elif not ready_or_ended:
            self._stage.record.problem(
                f"{node.name} was not ready {READY_TIMEOUT_S:.0f} s after it was started"
            )
