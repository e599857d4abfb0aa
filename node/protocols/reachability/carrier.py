"""What comes to a node of an overlay, directly or through relays, and what waits until it can go on.

Whatever shape an overlay has, a message is for one of its layers, or for the application above it; one that
was relayed is taken as if it had come directly, with the relays that its answer goes by. What is on its way
to a place waits while the next node is being probed, and is handed on anew when a hop is late.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from node.core import machine as m
from node.core.peers.peer_pool import Address, PeerEffect, Unreachable
from node.protocols.reachability import hops
from node.protocols.reachability.hops import Hops, Routable
from node.protocols.reachability.messages import Relay, Routed, Unheard
from node.protocols.reachability.nodes import NodeHandle
from node.protocols.reachability.parameters import ReachabilityParameters
from node.protocols.reachability.reachability import Reachability, Relays

WAITING_MAX = 1_024
"""Messages that wait for a probe, or for this node to have joined."""
R = TypeVar("R", bound=Routable)
Take = Callable[[Address, Any, Relays | None], None]
"""Takes a message: from whom, what, and through which relays it came."""


class Carrier(Generic[R]):
    """Of one node. `reach` is set by whoever puts the parts together; `takes` says who takes what."""

    reach: Reachability

    def __init__(
        self,
        parameters: ReachabilityParameters,
        emit: Callable[[PeerEffect], None],
        *,
        pass_on: Callable[[R], None],
        receive: Callable[[Address, Any], None],
        known: Callable[[Address], NodeHandle | None],
    ) -> None:
        """pass_on: takes a message that goes on. receive: takes all that is none of the overlay's. known: the
        node that is known at an address, if one is.
        """
        self.hops = Hops[R](parameters.probe_timeout_us, emit)
        self.waiting: deque[R] = deque(maxlen=WAITING_MAX)
        self._pass_on = pass_on
        self._receive = receive
        self._known = known
        self._takes: dict[type, Take] = {}

    def takes(self, reach: Reachability, takes: dict[type, Take]) -> None:
        """How this node reaches others from now on, and who takes which messages."""
        self.reach, self.hops.lateness = reach, reach.lateness
        self._takes = {
            Routed: self._routed,
            Relay: self._relay,
            Unheard: self._unheard,
            **takes,
        }

    def take(self, address: Address, messages: Sequence[Any], now_us: int) -> None:
        """Messages came from an address, in order; none, if only a part of a long one has come."""
        self.reach.now_us = now_us
        self.reach.heard(address, None)
        if not messages:
            self.reach.part_came(address)
        for message in messages:
            self._take(address, message, None)

    def _take(self, address: Address, message: Any, relays: Relays | None) -> None:
        take = self._takes.get(type(message))
        if take is not None:
            take(address, message, relays)
        else:
            self._receive(address, message)

    def _relay(self, address: Address, message: Relay, relays: Relays | None) -> None:
        if message.target == self.reach.own.address:
            way = self.reach.way_back(message)
            self.reach.heard(message.source, way)
            self._take(message.source, message.message, way)
        else:
            self.reach.pass_on(message)

    def _unheard(self, address: Address, message: Unheard, relays: Relays | None) -> None:
        if relays is not None:
            self.reach.unheard(address, relays)

    def unreachable(self, given: Unreachable, now_us: int) -> None:
        """A connection was lost, or could not be opened: what was handed to the node, and is not known to be
        its own, waits for its answer or goes another way. It knows by its number what came all the same.
        """
        self.reach.now_us = now_us
        if given.is_refused:
            self.reach.refused(given.address)
        node = self._known(given.address)
        if node is not None:
            ask = self.reach.probe if given.is_refused else self.reach.probe_again
            ask(node)
            self.hand_on_anew(node)

    def timer(self, timer: m.Timer) -> bool:
        """A timer fired; whether it is of a probe or a hop."""
        if timer[0] == "probe":
            self.reach.timed_out(int(timer[1]))
        elif timer[0] == hops.TIMER:
            self._hop_is_late(int(timer[1]))
        else:
            return False
        return True

    # --- What is on its way

    def hand(self, node: NodeHandle, route: R) -> None:
        """To the next node, under a number by which it says that it has it."""
        self.reach.send(node.address, self.hops.hand(node, route, self.reach.now_us))

    def _routed(self, address: Address, message: Routed, relays: Relays | None) -> None:
        self.hops.routed(address, message.number, self.reach.now_us, is_direct=relays is None)

    def _hop_is_late(self, number: int) -> None:
        late = self.hops.late(number, self.reach.now_us, self.reach.is_coming)
        if late is not None:
            self.reach.probe(late.node, is_missed=True)
            self._pass_on(late.route)

    def hand_on_anew(self, node: NodeHandle) -> None:
        """What was handed to a node that failed, or whose connection is lost, is passed on once more."""
        for handed in self.hops.handed_to(node):
            self._pass_on(handed.route)

    def wait(self, route: R) -> None:
        """Until `pass_on_waiting`."""
        self.waiting.append(route)

    def pass_on_waiting(self) -> None:
        """What waits may go on, or wait again."""
        if self.waiting:
            waiting = list(self.waiting)
            self.waiting.clear()
            for route in waiting:
                self._pass_on(route)
