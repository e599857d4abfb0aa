"""Where the machines that carry out one plan wait for each other.

Each says where it is, and goes on when it is told to by `testbed.machines.conductor`, which waits for no
machine longer than its lease. Who is told nothing does not go on, for it would be alone: the wait ends with
the run, which the machine's supervisor has stopped when nobody was heard of for the lease. A run on this
machine alone waits for nobody.
"""

import asyncio
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from testbed.runner.record import Listener


class MeetingPlace(StrEnum):
    """Where to wait, in order."""

    NETWORK = "network"  # the network stands: probes may cross it
    PROBED = "probed"  # it is measured: nodes may use it
    READY = "ready"  # the nodes are ready: told with `zero_ns`, time 0 by this machine's clock
    DRAINED = "drained"  # the drivers are silent: told with `drained`, whether everything is delivered
    FINISHED = "finished"  # the nodes have ended: probes may cross again
    MEASURED = "measured"  # that is done too: captures and network may go


class Meeting:
    """The places, for one machine. alone: nobody else takes part."""

    def __init__(self, channel: Listener, *, alone: bool) -> None:
        self._channel = channel
        self._told: dict[str, asyncio.Future[Mapping[str, Any]]] = {}
        self.alone = alone

    async def at(self, place: MeetingPlace, timeout_s: float | None = None) -> Mapping[str, Any]:
        """Say that we are here and wait for the others; what was told, nothing if nobody told us in time."""
        if self.alone:
            return {}
        self._channel.post({"did": "waits", "at": place})
        try:
            async with asyncio.timeout(timeout_s):
                return await asyncio.shield(self._answer(place))
        except TimeoutError:
            return {}

    def go_on(self, message: Mapping[str, Any]) -> None:
        """Take the word to go on from `message["at"]`; said twice it counts once."""
        answer = self._answer(message["at"])
        if not answer.done():
            answer.set_result(message)

    def _answer(self, place: str) -> "asyncio.Future[Mapping[str, Any]]":
        if place not in self._told:
            self._told[place] = asyncio.get_running_loop().create_future()
        return self._told[place]
