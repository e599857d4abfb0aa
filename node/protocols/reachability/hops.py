"""What was handed to the next node on its way, until that says that it has it; and what came twice.

A node may be gone, or out of reach, without anybody having noticed: the routing table is repaired lazily. So
each hop is acknowledged (MSPastry, 3.2): what was not is handed on anew, to another node or through a relay,
under the same number.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from node.core import machine as m
from node.core.peers.peer_pool import Address, PeerEffect
from node.protocols.reachability.lateness import Lateness
from node.protocols.reachability.nodes import NodeHandle
from node.protocols.reachability.numbers import Numbers

TAKEN_MAX = 1_024
TIMER = "hop"
DOUBLED_MAX = 4


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
    """A message, and to whom it was handed; due_us: when it is late."""

    node: NodeHandle
    route: R
    due_us: int


@dataclass(slots=True)
class First:
    """To whom a message was handed first, and when; times: how often it was handed on since."""

    address: Address
    at_us: int
    times: int = 0


class Hops(Generic[R]):
    """Of one node. `timeout_us` is after how long a message without an answer is handed on anew; where
    somebody is late, that is later (`lateness`, which the node's other timeouts share).
    """

    def __init__(self, timeout_us: int, emit: Callable[[PeerEffect], None]) -> None:
        self.lateness = Lateness(timeout_us)
        self._timeout_us = timeout_us
        self._emit = emit
        self._numbers = Numbers()
        self._handed: dict[int, Handed[R]] = {}
        self._first: dict[int, First] = {}  # oldest first
        self._taken: dict[tuple[Address, int], None] = {}  # the latest ones, oldest first

    def hand(self, node: NodeHandle, route: R, now_us: int) -> R:
        """The message as it is sent to a node, with its number: a new one, unless it was handed on before.

        What is handed on again and again waits twice as long each time.
        """
        if not route.number:
            route = replace(route, number=self._numbers.following(now_us))
        times = self._note(node, route.number, now_us).times
        due_us = now_us + (self._patience_us(now_us) << min(times, DOUBLED_MAX))
        self._handed[route.number] = Handed(node, route, due_us)
        self._emit(m.SetTimer((TIMER, str(route.number)), due_us))
        return replace(route, hops=route.hops + 1)

    def _patience_us(self, now_us: int) -> int:
        return self._timeout_us + self.lateness.at(now_us)

    def _note(self, node: NodeHandle, number: int, now_us: int) -> First:
        first = self._first.get(number)
        if first is not None:
            first.times += 1
            return first
        first = self._first[number] = First(node.address, now_us)
        if len(self._first) > TAKEN_MAX:
            del self._first[next(iter(self._first))]
        return first

    def routed(self, sender: Address, number: int, now_us: int, *, is_direct: bool = True) -> None:
        """It is another's now. The one to whom it was handed first may only have been late; one that answers
        through a relay was out of reach.
        """
        first = self._first.pop(number, None)
        if is_direct and first is not None and first.address == sender:
            self.lateness.note(now_us - first.at_us - self._timeout_us, now_us)
        if self._handed.pop(number, None) is not None:
            self._emit(m.CancelTimer((TIMER, str(number))))

    def late(self, number: int, now_us: int, is_coming: Callable[[Address], bool]) -> Handed[R] | None:
        """What has no answer, to be handed on anew; not if it is this node that is late, or if the other one
        gets a long message from us, which this may be, or stand behind (is_coming).
        """
        handed = self._handed.get(number)
        if handed is None:
            return None
        is_late = now_us > handed.due_us + self._timeout_us // 4
        if is_late or is_coming(handed.node.address):
            if is_late:
                self.lateness.note(now_us - handed.due_us, now_us)
            due_us = now_us + self._patience_us(now_us)
            self._handed[number] = replace(handed, due_us=due_us)
            self._emit(m.SetTimer((TIMER, str(number)), due_us))
            return None
        return self._handed.pop(number)

    def handed_to(self, node: NodeHandle) -> list[Handed[R]]:
        """What a node that failed, or that lost its connection, has not acknowledged: to be handed on."""
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
