"""What was handed to the next node on its way, until that says that it has it; and what came twice.

A node may be gone, or out of reach, without anybody having noticed: the routing table is repaired lazily. So
each hop is acknowledged (MSPastry, 3.2): what was not is handed on anew, to another node or through a relay,
under the same number.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from node.core import machine as m
from node.core.peer_pool import Address, PeerEffect
from node.protocols.reachability.nodes import NodeHandle
from node.protocols.reachability.numbers import Numbers

TAKEN_MAX = 1_024
TIMER = "hop"


class Routable(Protocol):
    """A message that goes from node to node."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def number(self) -> int:
        """Of the sender's; 0: it has none yet."""

    @property
    def hops(self) -> int:
        """How many nodes passed it on."""


R = TypeVar("R", bound=Routable)


@dataclass(frozen=True, slots=True)
class Handed(Generic[R]):
    """A message, and to whom it was handed."""

    node: NodeHandle
    route: R


class Hops(Generic[R]):
    """Of one node. `timeout_us` is after how long a message without an answer is handed on anew."""

    def __init__(self, timeout_us: int, emit: Callable[[PeerEffect], None]) -> None:
        self._timeout_us = timeout_us
        self._emit = emit
        self._numbers = Numbers()
        self._handed: dict[int, Handed[R]] = {}
        self._taken: dict[tuple[Address, int], None] = {}  # the latest ones, oldest first

    def hand(self, node: NodeHandle, route: R, now_us: int) -> R:
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

    def late(self, number: int) -> Handed[R] | None:
        """What has no answer, to be handed on anew."""
        return self._handed.pop(number, None)

    def handed_to(self, node: NodeHandle) -> list[Handed[R]]:
        """What a node that failed has not acknowledged, to be handed on anew at once."""
        numbers = [number for number, handed in self._handed.items() if handed.node == node]
        for number in numbers:
            self._emit(m.CancelTimer((TIMER, str(number))))
        return [self._handed.pop(number) for number in numbers]

    def is_new(self, sender: Address, number: int) -> bool:
        """Whether a message did not come before."""
        if (sender, number) in self._taken:
            return False
        self._taken[sender, number] = None
        if len(self._taken) > TAKEN_MAX:
            del self._taken[next(iter(self._taken))]
        return True
