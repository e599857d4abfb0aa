"""What was handed to the next node on its way, until that says that it has it; and what came twice.

A node may be gone, or out of reach, without anybody having noticed: the routing table is repaired lazily. So
each hop is acknowledged (MSPastry, 3.2): what was not is handed on anew, to another node or through a relay,
under the same number.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from node.core import machine as m
from node.core.peer_pool import Address, PeerEffect
from node.protocols.pastry.ids import NodeHandle
from node.protocols.pastry.messages import Route
from node.protocols.pastry.numbers import Numbers

TAKEN_MAX = 1_024
TIMER = "hop"


@dataclass(frozen=True, slots=True)
class Handed:
    """A message, and to whom it was handed."""

    node: NodeHandle
    route: Route


class Hops:
    """Of one node. `timeout_us` is after how long a message without an answer is handed on anew."""

    def __init__(self, timeout_us: int, emit: Callable[[PeerEffect], None]) -> None:
        self._timeout_us = timeout_us
        self._emit = emit
        self._numbers = Numbers()
        self._handed: dict[int, Handed] = {}
        self._taken: dict[tuple[Address, int], None] = {}  # the latest ones, oldest first

    def hand(self, node: NodeHandle, route: Route, now_us: int) -> Route:
        """The message as it is sent to a node, with its number: a new one, unless it was handed on before."""
        if not route.number:
            route = replace(route, number=self._numbers.following(now_us))
        self._handed[route.number] = Handed(node, route)
        self._emit(m.SetTimer((TIMER, str(route.number)), now_us + self._timeout_us))
        return replace(route, hops=route.hops + 1)

    def routed(self, number: int) -> None:
        """It is another's now."""
        if self._handed.pop(number, None) is not None:
            self._emit(m.CancelTimer((TIMER, str(number))))

    def late(self, number: int) -> Handed | None:
        """What has no answer, to be handed on anew."""
        return self._handed.pop(number, None)

    def is_new(self, sender: Address, number: int) -> bool:
        """Whether a message did not come before."""
        if (sender, number) in self._taken:
            return False
        self._taken[sender, number] = None
        if len(self._taken) > TAKEN_MAX:
            del self._taken[next(iter(self._taken))]
        return True
