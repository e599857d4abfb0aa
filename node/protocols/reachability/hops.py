"""Acknowledgement of each hop: messages sent to the next node and not acknowledged, and repetitions.

A node may have failed or be unreachable before any node notices: the routing table is repaired lazily. So
each hop is acknowledged (MSPastry, 3.2). An unacknowledged message is sent again with the same number, to
another node or through a relay.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from node.core import machine as m
from node.core.peers.peer_pool import Address, PeerEffect
from node.protocols.reachability.lateness import Lateness
from node.protocols.reachability.nodes import NodeHandle
from node.protocols.reachability.numbers import MessageNumbers

TAKEN_MAX = 1_024
TIMER = "hop"
DOUBLED_MAX = 4


class Routable(Protocol):
    """A message that is routed from node to node."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def number(self) -> int:
        """Number given by the sender; 0: none yet."""

    @property
    def hops(self) -> int:
        """Number of nodes that forwarded it."""


R = TypeVar("R", bound=Routable)


@dataclass(frozen=True, slots=True)
class UnacknowledgedMessage(Generic[R]):
    """A message and the node that it was sent to; due_us: time of the timeout."""

    node: NodeHandle
    route: R
    due_us: int


@dataclass(slots=True)
class FirstReceiver:
    """The first node that a message was sent to, and when; times: number of repetitions."""

    address: Address
    at_us: int
    times: int = 0


class HopAcknowledgements(Generic[R]):
    """Unacknowledged messages of one node. `timeout_us` is the timeout of a hop.

    The timeout grows with the lateness of other nodes (`lateness`, shared with the node's other timeouts).
    """

    def __init__(self, timeout_us: int, emit: Callable[[PeerEffect], None]) -> None:
        self.lateness = Lateness(timeout_us)
        self._timeout_us = timeout_us
        self._emit = emit
        self._numbers = MessageNumbers()
        self._handed: dict[int, UnacknowledgedMessage[R]] = {}
        self._first: dict[int, FirstReceiver] = {}  # oldest first
        self._taken: dict[tuple[Address, int], None] = {}  # latest ones, oldest first

    def hand(self, node: NodeHandle, route: R, now_us: int) -> R:
        """Return the message to send, with a new number unless it is a repetition.

        The timeout doubles with each repetition, up to `DOUBLED_MAX` times.
        """
        if not route.number:
            route = replace(route, number=self._numbers.following(now_us))
        times = self._note(node, route.number, now_us).times
        due_us = now_us + (self._patience_us(now_us) << min(times, DOUBLED_MAX))
        self._handed[route.number] = UnacknowledgedMessage(node, route, due_us)
        self._emit(m.SetTimer((TIMER, str(route.number)), due_us))
        return replace(route, hops=route.hops + 1)

    def _patience_us(self, now_us: int) -> int:
        return self._timeout_us + self.lateness.at(now_us)

    def _note(self, node: NodeHandle, number: int, now_us: int) -> FirstReceiver:
        first = self._first.get(number)
        if first is not None:
            first.times += 1
            return first
        first = self._first[number] = FirstReceiver(node.address, now_us)
        if len(self._first) > TAKEN_MAX:
            del self._first[next(iter(self._first))]
        return first

    def routed(self, sender: Address, number: int, now_us: int, *, is_direct: bool = True) -> None:
        """Process an acknowledgement.

        If the first node that got the message answers directly after a timeout, it was only late; one that
        answers through a relay was unreachable.
        """
        first = self._first.pop(number, None)
        if is_direct and first is not None and first.address == sender:
            self.lateness.note(now_us - first.at_us - self._timeout_us, now_us)
        if self._handed.pop(number, None) is not None:
            self._emit(m.CancelTimer((TIMER, str(number))))

    def late(
        self, number: int, now_us: int, is_coming: Callable[[Address], bool]
    ) -> UnacknowledgedMessage[R] | None:
        """Return the message of an expired timeout, to be sent again.

        Return None and wait longer if this node itself is late, or if the other one receives a long message
        from here (is_coming), which this may be or may queue behind.
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

    def handed_to(self, node: NodeHandle) -> list[UnacknowledgedMessage[R]]:
        """Remove and return the unacknowledged messages to a node that failed or lost its connection."""
        numbers = [number for number, handed in self._handed.items() if handed.node == node]
        for number in numbers:
            self._emit(m.CancelTimer((TIMER, str(number))))
        return [self._handed.pop(number) for number in numbers]

    def is_new(self, sender: Address, number: int) -> bool:
        """Return whether the message is not a repetition."""
        if (sender, number) in self._taken:
            return False
        self._taken[sender, number] = None
        if len(self._taken) > TAKEN_MAX:
            del self._taken[next(iter(self._taken))]
        return True
