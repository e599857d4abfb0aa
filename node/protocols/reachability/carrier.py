"""A node that routes messages: dispatch by message type, acknowledgement of hops, queue of waiting messages.

Each message is for a layer of the overlay or for the application. A relayed message is processed like a
direct one, with the relays for its answer. A routed message waits while its next node is being probed, and is
sent to another node if a hop times out.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Generic, TypeVar

from node.core import machine as m
from node.core.peers.peer_pool import Address, PeerEffect, Unreachable
from node.protocols.reachability import hops
from node.protocols.reachability.hops import HopAcknowledgements, Routable
from node.protocols.reachability.messages import Pong, Relay, Routed, Unheard
from node.protocols.reachability.nodes import NodeHandle
from node.protocols.reachability.parameters import ReachabilityParameters
from node.protocols.reachability.reachability import Reachability, Relays

WAITING_MAX = 1_024
"""Maximum of messages that wait for a probe or for the end of the join; beyond it the oldest are lost."""
R = TypeVar("R", bound=Routable)
TakeMessage = Callable[[Address, Any, Relays | None], None]
"""Handler of a message: sender, message, and the relays through which it came."""


class RoutingNode(Generic[R]):
    """The part of a node that is the same in every overlay, which calls `_dispatch` first.

    `reach` is how the node reaches others. It is also the node's `ReachabilityWatcher`, in part.
    """

    own: NodeHandle
    reach: Reachability

    def __init__(
        self,
        parameters: ReachabilityParameters,
        emit: Callable[[PeerEffect], None],
        receive: Callable[[Address, Any], None],
    ) -> None:
        """Create a node without handlers. receive: processes all messages for the application."""
        self._emit = emit
        self._hops = HopAcknowledgements[R](parameters.probe_timeout_us, emit)
        self._waiting: deque[R] = deque(maxlen=WAITING_MAX)
        self._receive = receive
        self._takes: dict[type, TakeMessage] = {}

    def _dispatch(self, reach: Reachability, takes: dict[type, TakeMessage]) -> None:
        """Set how this node reaches others, and the overlay's handlers by message type."""
        self.reach, self._hops.lateness = reach, reach.lateness
        self._takes = {
            Routed: self._routed,
            Relay: self._relay,
            Unheard: self._unheard,
            Pong: reach.ponged,
            **takes,
        }

    def _pass_on(self, route: R) -> None:
        """Deliver a routed message, or forward it."""
        raise NotImplementedError

    def _known(self, address: Address) -> NodeHandle | None:
        """Return the node at an address, if it is known."""
        raise NotImplementedError

    @property
    def is_active(self) -> bool:
        """Whether the node has joined."""
        raise NotImplementedError

    # --- Inputs

    def take(self, address: Address, messages: Sequence[Any], now_us: int) -> None:
        """Process messages from an address, in order; none if only part of a long message has arrived."""
        self.reach.now_us = now_us
        if self.reach.is_watching:
            self.reach.received_from(address, None)
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
            way = message.way[::-1]
            self.reach.received_from(message.source, way)
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
            self._hand_on_anew(node)

    def timer(self, timer: m.Timer, now_us: int) -> bool:
        """Process a timer; return whether it belongs to the overlay."""
        self.reach.now_us = now_us
        if timer[0] == "probe":
            self.reach.timed_out(int(timer[1]))
        elif timer[0] == hops.TIMER:
            self._hop_is_late(int(timer[1]))
        else:
            return False
        return True

    def send(self, message: Any, address: Address) -> None:
        """Send a message to a node, through relays if necessary."""
        self.reach.send(address, message)

    # --- Messages in transit

    def _route(self, address: Address, route: R, relays: Relays | None) -> None:
        if route.number:
            self._acknowledge(address, route.number, relays)
            if not self._hops.is_new(address, route.number):
                return
            route = replace(route, number=0)
        self._pass_on(route)

    def _acknowledge(self, address: Address, number: int, relays: Relays | None) -> None:
        self.reach.answer(address, relays, Routed(number))

    def _hand_to(self, following: NodeHandle, route: R) -> None:
        """Send a message to the next node."""
        if self.reach.is_watching:
            onward = self._hops.hand(following, route, self.reach.now_us)
        else:
            onward = replace(route, hops=route.hops + 1)
        self.reach.send(following.address, onward)

    def _routed(self, address: Address, message: Routed, relays: Relays | None) -> None:
        self._hops.routed(address, message.number, self.reach.now_us, is_direct=relays is None)

    def _hop_is_late(self, number: int) -> None:
        late = self._hops.late(number, self.reach.now_us, self.reach.is_coming)
        if late is not None:
            self.reach.probe(late.node, is_missed=True)
            self._pass_on(late.route)

    def _hand_on_anew(self, node: NodeHandle) -> None:
        """Forward all unacknowledged messages again to a node that failed or whose connection is lost."""
        for handed in self._hops.handed_to(node):
            self._pass_on(handed.route)

    def _pass_on_waiting(self) -> None:
        """Forward all waiting messages; some may wait again."""
        if self._waiting:
            waiting = list(self._waiting)
            self._waiting.clear()
            for route in waiting:
                self._pass_on(route)

    # --- Results of probes

    def answered(self) -> None:
        """See `reachability.ReachabilityWatcher`."""
        self._pass_on_waiting()

    def settled(self) -> None:
        """See `reachability.ReachabilityWatcher`."""
        self._pass_on_waiting()

    def measured(self, node: NodeHandle, rtt_us: int) -> None:
        """See `reachability.ReachabilityWatcher`; most overlays do not use distances."""
