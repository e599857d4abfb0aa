"""Barriers at which the machines that execute one plan wait for each other.

Each machine reports its arrival and continues when `testbed.machines.coordinator` releases it. The
coordinator waits for no machine longer than its lease. A machine that is never released does not continue,
because it would be alone: its wait ends with the run, which the machine's supervisor stops when the lease has
expired. A run on this machine alone does not wait.
"""

import asyncio
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from testbed.execution.record import Post


class Barrier(StrEnum):
    """The barriers of a run, in order."""

    NETWORK = "network"  # the network is up: probes may be sent
    PROBED = "probed"  # the network is probed: nodes may use it
    SERVING = "serving"  # programs that serve are ready: clients may start; our own nodes do not wait here
    READY = "ready"  # the nodes are ready: released with `zero_ns`, time 0 by this machine's clock
    DRAINED = "drained"  # the publishers are silent: released with `drained`, whether everything is delivered
    FINISHED = "finished"  # the nodes have ended: probes may be sent again
    MEASURED = "measured"  # probed again: captures and network may be removed


class Barriers:
    """The barriers as one machine passes them. alone: no other machine executes the plan."""

    def __init__(self, post: Post, *, alone: bool) -> None:
        self._post = post
        self._answers: dict[str, asyncio.Future[Mapping[str, Any]]] = {}
        self.alone = alone

    async def wait(self, barrier: Barrier, timeout_s: float | None = None) -> Mapping[str, Any]:
        """Report the arrival and wait for the others; return the release message, empty on timeout."""
        if self.alone:
            return {}
        self._post({"did": "waits", "at": barrier})
        try:
            async with asyncio.timeout(timeout_s):
                return await asyncio.shield(self._answer(barrier))
        except TimeoutError:
            return {}

    def release(self, message: Mapping[str, Any]) -> None:
        """Pass the barrier `message["at"]`; repeated messages have no effect."""
        answer = self._answer(message["at"])
        if not answer.done():
            answer.set_result(message)

    def _answer(self, barrier: str) -> "asyncio.Future[Mapping[str, Any]]":
        if barrier not in self._answers:
            self._answers[barrier] = asyncio.get_running_loop().create_future()
        return self._answers[barrier]
