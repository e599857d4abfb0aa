"""Barriers at which the machines that carry out one plan wait for each other.

Each machine reports that it has arrived, and goes on when `testbed.machines.coordinator` releases it, which
waits for no machine longer than its lease. A machine that is never released does not go on, for it would be
alone: the wait ends with the run, which the machine's supervisor stops when the lease has expired. A run on
this machine alone does not wait.
"""

import asyncio
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from testbed.runner.record import Listener


class Barrier(StrEnum):
    """The barriers of a run, in order."""

    NETWORK = "network"  # the network is up: probes may cross it
    PROBED = "probed"  # it has been measured: nodes may use it
    SERVING = "serving"  # programs that serve are ready: clients may start; our own nodes do not wait here
    READY = "ready"  # the nodes are ready: released with `zero_ns`, time 0 by this machine's clock
    DRAINED = "drained"  # the publishers are silent: released with `drained`, whether everything is delivered
    FINISHED = "finished"  # the nodes have ended: probes may cross again
    MEASURED = "measured"  # probed again: captures and network may be removed


class Barriers:
    """The barriers as one machine passes them. alone: no other machine takes part."""

    def __init__(self, channel: Listener, *, alone: bool) -> None:
        self._channel = channel
        self._told: dict[str, asyncio.Future[Mapping[str, Any]]] = {}
        self.alone = alone

    async def wait(self, barrier: Barrier, timeout_s: float | None = None) -> Mapping[str, Any]:
        """Report that this machine has arrived and wait for the others; returns the release message, empty on
        timeout.
        """
        if self.alone:
            return {}
        self._channel.post({"did": "waits", "at": barrier})
        try:
            async with asyncio.timeout(timeout_s):
                return await asyncio.shield(self._answer(barrier))
        except TimeoutError:
            return {}

    def release(self, message: Mapping[str, Any]) -> None:
        """Pass the barrier `message["at"]`; repeated messages count once."""
        answer = self._answer(message["at"])
        if not answer.done():
            answer.set_result(message)

    def _answer(self, barrier: str) -> "asyncio.Future[Mapping[str, Any]]":
        if barrier not in self._told:
            self._told[barrier] = asyncio.get_running_loop().create_future()
        return self._told[barrier]
