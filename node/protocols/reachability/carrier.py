"""Dispatch of the messages that reach an overlay node, directly or through relays, and queue of waiting ones.

Each message is for a layer of the overlay or for the application. A relayed message is processed like a
direct one, with the relays for its answer. A routed message waits while its next node is being probed, and is
sent to another node if a hop times out.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from node.core import machine as m
from node.core.peers.peer_pool import Address, PeerEffect, Unreachable
from node.protocols.reachability import hops
from node.protocols.reachability.hops import HopAcknowledgements, Routable
from node.protocols.reachability.messages import Relay, Routed, Unheard
from node.protocols.reachability.nodes import NodeHandle
from node.protocols.reachability.parameters import ReachabilityParameters
from node.protocols.reachability.reachability import Reachability, Relays

WAITING_MAX = 1_024
"""Maximum of messages that wait for a probe or for the end of the join; beyond it the oldest are lost."""
R = TypeVar("R", bound=Routable)
TakeMessage = Callable[[Address, Any, Relays | None], None]
"""Handler of a message: sender, message, and the relays through which it came."""


class MessageDispatch(Generic[R]):
    """Dispatch for one node. `takes` sets `reach` and the handlers."""

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
        """Create a dispatcher without handlers.

        pass_on: forwards a routed message. receive: processes all messages for the application. known:
        returns the node at an address, if it is known.
        """
        self.hops = HopAcknowledgements[R](parameters.probe_timeout_us, emit)
        self.waiting: deque[R] = deque(maxlen=WAITING_MAX)
        self._pass_on = pass_on
        self._receive = receive
        self._known = known
        self._takes: dict[type, TakeMessage] = {}

    def takes(self, reach: Reachability, takes: dict[type, TakeMessage]) -> None:
        """Set how this node reaches others, and the handlers by message type."""
        self.reach, self.hops.lateness = reach, reach.lateness
        self._takes = {
            Routed: self._routed,
            Relay: self._relay,
            Unheard: self._unheard,
            **takes,
        }

    def take(self, address: Address, messages: Sequence[Any], now_us: int) -> None:
        """Process messages from an address, in order; none if only part of a long message has arrived."""
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
        """Process a connection that was lost or could not be opened.

        Unacknowledged messages to the node wait for a probe's answer or go another way. The node recognizes
        repetitions by their numbers.
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
        """Process a timer; return whether it belongs to a probe or a hop."""
        if timer[0] == "probe":
            self.reach.timed_out(int(timer[1]))
        elif timer[0] == hops.TIMER:
            self._hop_is_late(int(timer[1]))
        else:
            return False
        return True

    # --- Messages in transit

    def hand(self, node: NodeHandle, route: R) -> None:
        """Send a message to the next node, with a number for its acknowledgement."""
        self.reach.send(node.address, self.hops.hand(node, route, self.reach.now_us))

    def _routed(self, address: Address, message: Routed, relays: Relays | None) -> None:
        self.hops.routed(address, message.number, self.reach.now_us, is_direct=relays is None)

    def _hop_is_late(self, number: int) -> None:
        late = self.hops.late(number, self.reach.now_us, self.reach.is_coming)
        if late is not None:
            self.reach.probe(late.node, is_missed=True)
            self._pass_on(late.route)

    def hand_on_anew(self, node: NodeHandle) -> None:
        """Forward again all unacknowledged messages to a node that failed or whose connection is lost."""
        for handed in self.hops.handed_to(node):
            self._pass_on(handed.route)

    def wait(self, route: R) -> None:
        """Queue a message until `pass_on_waiting`."""
        self.waiting.append(route)

    def pass_on_waiting(self) -> None:
        """Forward all queued messages; some may be queued again."""
        if self.waiting:
            waiting = list(self.waiting)
            self.waiting.clear()
            for route in waiting:
                self._pass_on(route)
