"""Pastry: a ring of nodes; each message is routed to the live node whose id is closest to its key.

Section 2 of both Scribe papers. Leaf sets agree as in MSPastry (DSN 2004, figure 2): each change is confirmed
by a probe of the node concerned, probes carry leaf sets and failures, and a node accepts messages only when
all of its leaf set has answered. A message for a node that is being probed waits for the end of the probe, so
that no two nodes deliver for one key while a third one is merely slow.

Other modules of a node: `known_nodes` (next hop), `joining` (joins), `reachability` (liveness and relays).
The application processes what is delivered. Time and randomness come from outside.
"""

from collections.abc import Callable, Container, Iterable
from typing import Any, Protocol

from node.core import machine as m
from node.core.peers.peer_pool import Address, PeerEffect
from node.protocols.pastry import joining
from node.protocols.pastry import messages as wire
from node.protocols.pastry.candidates import LeafCandidates
from node.protocols.pastry.joining import RingJoining
from node.protocols.pastry.known_nodes import KnownNodes
from node.protocols.pastry.last_leaf_set import LastLeafSet
from node.protocols.pastry.leaf_set import LeafSet
from node.protocols.pastry.parameters import PastryParameters
from node.protocols.reachability.carrier import RoutingNode, TakeMessage
from node.protocols.reachability.messages import Ping, Pong
from node.protocols.reachability.nodes import NodeHandle, id_of
from node.protocols.reachability.reachability import Reachability, Relays

HOPS_MAX = 255
CONSIDERED_MAX = 128  # maximum of remembered nodes whose round-trip time was measured
TICK: m.Timer = ("pastry",)
QUIET_US = 1_000_000  # period without heartbeats


class PastryApplication(Protocol):
    """The application on top of Pastry: the upcalls of its API (2002, section 2.3)."""

    def receive(self, sender: Address, message: Any) -> None:
        """Process an application message that was sent directly to this node."""

    def deliver(self, message: Any, key: int) -> None:
        """Process a routed message: this node is the closest one to its key."""

    def forward(self, message: Any, key: int, following: NodeHandle) -> Any | None:
        """Return the message to forward to `following`, possibly changed; None: drop it."""

    def new_leafs(self, leaf_set: LeafSet) -> None:
        """Process a change of the leaf set."""

    def failed(self, node: NodeHandle) -> None:
        """Process the failure of a known node."""


class Pastry(RoutingNode[wire.Route]):
    """One node of the overlay. `is_active`: it has joined, and its leaf set has answered."""

    is_active = False

    def __init__(
        self,
        own: NodeHandle,
        parameters: PastryParameters,
        rng: m.Randomness,
        emit: Callable[[PeerEffect], None],
        application: PastryApplication,
    ) -> None:
        self._parameters = parameters
        self._rng = rng
        self._application = application
        self._considered: set[Address] = set()
        super().__init__(parameters, emit, application.receive)
        self._set_id(own)

    def _set_id(self, own: NodeHandle) -> None:
        """Take this id and forget all known nodes."""
        parameters, rng, emit = self._parameters, self._rng, self._emit
        self.own = own
        reach = Reachability(own, parameters, rng, emit, self, is_watching=bool(parameters.heartbeat_us))
        self.nodes = KnownNodes(own, parameters, reach.is_suspect)
        self._memory = LastLeafSet(own, parameters.remember_us if parameters.heartbeat_us else 0)
        self._candidates = LeafCandidates(self.nodes, parameters.leaf_set, reach)
        self._joining = RingJoining(
            self.nodes,
            self._candidates,
            reach,
            self._become_active,
            parameters=parameters,
            rng=rng,
            emit=emit,
        )
        self._failed: dict[Address, NodeHandle] = {}
        # pairs of reporter and node reported as failed, since the last tick
        self._doubted: set[tuple[Address, Address]] = set()
        takes: dict[type, TakeMessage] = {
            wire.Route: self._route,
            wire.JoinRows: self._join_rows,
            wire.RowRequest: self._row_request,
            wire.JoinLeaves: self._join_leaves,
            wire.LeafProbe: self._leaf_probe,
            wire.LeafAnswer: self._leaf_answer,
            Ping: self._ping,
            wire.Heartbeat: lambda address, message, relays: None,  # receiving it is enough
            wire.Goodbye: lambda address, message, relays: reach.left(NodeHandle(message.id, address)),
        }
        self._dispatch(reach, takes)

    def check(self) -> None:
        """Assert the invariants of the known nodes."""
        self.leaf_set.check()

    @property
    def leaf_set(self) -> LeafSet:
        """The node's neighbours on the ring."""
        return self.nodes.leaf_set

    # --- Calls of the application

    def start(self, contacts: Iterable[Address], now_us: int, stored: Iterable[m.StoredSegment] = ()) -> None:
        """Join through one of the contacts and, without an answer, through the stored leaf set.

        Without any this is the first node of a ring.
        """
        self.reach.now_us = now_us
        self._emit(m.SetTimer(TICK, now_us + (self._parameters.heartbeat_us or QUIET_US)))
        self._joining.start(contacts, self._memory.restored(stored))

    def route(self, message: Any, key: int) -> None:
        """Route a message to the live node whose id is closest to the key."""
        self._pass_on(wire.Route(key, 0, 0, wire.RoutePhase.PREFIX, message))

    def route_aside(self, message: Any, key: int, avoided: Container[Address] = ()) -> bool:
        """Route a message through another suitable next hop, chosen at random; return whether there is one.

        A message that fails on the usual route may succeed on this one (2002, IV.E; draft of 2001, 3.4.1 and
        3.5).
        """
        others = [node for node in self.nodes.detours(key) if node.address not in avoided]
        if not others or not self.is_active:
            return False
        phase = wire.RoutePhase.LEAF_SET if self.leaf_set.covers(key) else wire.RoutePhase.PREFIX
        following = others[self._rng.randrange(len(others))]
        self._forward(following, wire.Route(key, 0, 0, phase, message), phase)
        return True

    def measure(self, node: NodeHandle, on_rtt: Callable[[int], None]) -> None:
        """Measure the round-trip time to a node in microseconds; without an answer `on_rtt` is not called."""
        self.reach.ping(node.address, on_rtt)

    def leave(self, others: Iterable[Address] = ()) -> None:
        """Announce to all known nodes, and to the others given, that this node stops."""
        known = sorted({node.address for node in self.nodes}.union(others) - {self.own.address})
        for address in known:
            self.reach.send(address, wire.Goodbye(self.own.id))

    def miss(self, node: NodeHandle) -> None:
        """Probe a node from which the application expects something."""
        self.reach.probe(node, is_missed=True)

    def is_missed(self, node: NodeHandle | None) -> bool:
        """Return whether the node is being probed."""
        return node is not None and self.reach.is_suspect(node)

    # --- Inputs

    def timer(self, timer: m.Timer, now_us: int) -> bool:
        """Process a timer; return whether it belongs to Pastry."""
        self.reach.now_us = now_us
        if timer == TICK:
            self._tick()
        elif timer == joining.TIMER:
            if not self.is_active:
                self._joining.timed_out()
        else:
            return super().timer(timer, now_us)
        return True

    def _known(self, address: Address) -> NodeHandle | None:
        return next((node for node in self.nodes if node.address == address), None)

    # --- Routing

    def _pass_on(self, route: wire.Route) -> None:
        if route.hops >= HOPS_MAX:
            return
        if not self.is_active:
            self._waiting.append(route)
            return
        join = route.message if isinstance(route.message, wire.JoinRing) else None
        if join is not None and not self._joining.admits(join):
            return
        following, phase = self.nodes.following(route.key, route.phase)
        if join is not None and following.address == join.address:
            following, phase = self.nodes.before(following, route.key)
        if self.reach.is_suspect(following):
            self._waiting.append(route)
            return
        if join is not None:
            route = self._joining.help(route, join, is_last=following is self.own)
        elif following is self.own:
            self._application.deliver(route.message, route.key)
            return
        if following is not self.own:
            self._forward(following, route, phase)

    def _forward(self, following: NodeHandle, route: wire.Route, phase: int) -> None:
        message = route.message
        if not isinstance(message, wire.JoinRing):
            message = self._application.forward(message, route.key, following)
        if message is not None:
            self._hand_to(following, wire.Route(route.key, route.number, route.hops, phase, message))

    # --- Joining

    def _join_rows(self, address: Address, message: wire.JoinRows, relays: Relays | None) -> None:
        for node in message.nodes:
            self._consider(node)

    def _join_leaves(self, address: Address, message: wire.JoinLeaves, relays: Relays | None) -> None:
        if self.is_active:
            return
        if message.id == self.own.id and address != self.own.address:
            self._take_another_id()
            return
        self._joining.take_leaves(address, message)
        self._become_active_if_joined()

    def _take_another_id(self) -> None:
        """Take another id, since the join ended at a node that has this one (X = Z)."""
        now_us, known = self.reach.now_us, self._joining.known
        self._emit(m.Log("id_taken", {"id": f"{self.own.id:032x}"}, "warning"))
        self._set_id(NodeHandle(id_of(f"{self.own.id:032x}"), self.own.address))
        self.reach.now_us = now_us
        self._considered.clear()
        self._joining.start(*known)

    def _become_active_if_joined(self) -> None:
        """Become active when all members of the leaf set have answered.

        Other nodes that are still being probed belonged to an earlier leaf set; heartbeats watch them.
        """
        is_known = self._joining.has_leaves and self.leaf_set.members
        if not self.is_active and is_known and not self._candidates.wanted:
            self._become_active()

    def _become_active(self) -> None:
        self.is_active = True
        self._emit(m.CancelTimer(joining.TIMER))
        for node in set(self.nodes):
            self._consider(node)
        self._application.new_leafs(self.leaf_set)
        self._pass_on_waiting()

    # --- The leaf set (MSPastry)

    def probe(self, number: int) -> wire.LeafProbe:
        """See `reachability.ReachabilityWatcher`."""
        return wire.LeafProbe(self.own.id, number, self._beliefs())

    def _beliefs(self) -> tuple[wire.Believed, ...]:
        alive = (
            wire.Believed(node.id, node.address, wire.NodeBelief.ALIVE) for node in self.leaf_set.members
        )
        failed = (
            wire.Believed(node.id, node.address, wire.NodeBelief.FAILED) for node in self._failed.values()
        )
        return (*alive, *failed)

    def _leaf_probe(self, address: Address, message: wire.LeafProbe, relays: Relays | None) -> None:
        if not self.reach.is_to_be_answered(address, message.number):
            return
        node = NodeHandle(message.id, address)
        self._learn(node, message.nodes)
        self._consider(node)
        self.reach.answer(address, relays, wire.LeafAnswer(self.own.id, message.number, self._beliefs()))

    def _leaf_answer(self, address: Address, message: wire.LeafAnswer, relays: Relays | None) -> None:
        node = NodeHandle(message.id, address)
        self._learn(node, message.nodes)
        self.reach.answered(node, message.number, relays)
        self._consider(node)

    def _learn(self, node: NodeHandle, beliefs: Iterable[wire.Believed]) -> None:
        """Process a node's leaf set and list of failed nodes.

        Two nodes that consider each other failed, as behind a cut, report it with each answer. Each report
        counts once per tick; otherwise this node would probe both as fast as answers arrive.
        """
        self._failed.pop(node.address, None)
        changed = self.leaf_set.add(node)
        reported = []
        for each in beliefs:
            other = NodeHandle(each.id, each.address)
            if each.belief == wire.NodeBelief.FAILED:
                if other in self.leaf_set and (node.address, other.address) not in self._doubted:
                    self._doubted.add((node.address, other.address))
                    self.reach.probe(other)
            elif other.address not in self._failed and self.leaf_set.would_take(other):
                reported.append(other)
        if reported:
            self._candidates.add(reported, node.address)
        if changed and self.is_active:
            self._application.new_leafs(self.leaf_set)

    def failed(self, node: NodeHandle) -> None:
        """See `reachability.ReachabilityWatcher`."""
        row, _ = self.nodes.table.slot(node.id)
        was_entry = node in self.nodes.table.row(row)
        was_leaf = self.nodes.remove(node)
        if was_entry and self._parameters.row_repair:
            self._ask_for_row(row)
        if self._candidates.fail(node) or was_leaf:
            self._failed[node.address] = node
        if was_leaf:
            for member in self.leaf_set.members:
                self.reach.probe(member)
            if self.is_active:
                self._application.new_leafs(self.leaf_set)
        self._application.failed(node)
        self._hand_on_anew(node)
        self.answered()

    def answered(self) -> None:
        """See `reachability.ReachabilityWatcher`."""
        if self.is_active:
            self._pass_on_waiting()
        else:
            self._become_active_if_joined()

    def settled(self) -> None:
        """See `reachability.ReachabilityWatcher`: the leaf set now consists of nodes that have answered."""
        if self.leaf_set.is_complete or not self._failed:
            self._failed.clear()
        if self.is_active:
            self._candidates.clear()
            self._pass_on_waiting()
        else:
            self._become_active_if_joined()

    # --- The routing table

    def _ask_for_row(self, row: int) -> None:
        """Ask a random node of a row for its row of this number; if the row is empty, a node of the next row
        that has any.

        Section 2.2 of the draft of 2001 repairs tables lazily, as Pastry's own paper details (Rowstron,
        Druschel: Pastry, Middleware 2001, 2.4).
        """
        for number in sorted(each for each in self.nodes.table.rows if each >= row):
            others = [node for node in self.nodes.table.row(number) if not self.reach.is_suspect(node)]
            if others:
                self.reach.send(others[self._rng.randrange(len(others))].address, wire.RowRequest(row))
                return

    def _row_request(self, address: Address, message: wire.RowRequest, relays: Relays | None) -> None:
        nodes = (self.own, *self.nodes.table.row(message.row))
        self.reach.answer(address, relays, wire.JoinRows(self.own.id, nodes))

    def relays(self) -> Iterable[NodeHandle]:
        """See `reachability.ReachabilityWatcher`."""
        return self.nodes

    def _consider(self, node: NodeHandle) -> None:
        """Measure a node that may be useful in the routing table and was not measured lately."""
        if self._is_worth_measuring(node):
            self._remember_considered(node)
            self.reach.ping(node.address)

    def _is_worth_measuring(self, node: NodeHandle) -> bool:
        return self.nodes.table.is_wanted(node) and node.address not in self._considered

    def _remember_considered(self, node: NodeHandle) -> None:
        if len(self._considered) >= CONSIDERED_MAX:
            self._considered.clear()
        self._considered.add(node.address)

    def measured(self, node: NodeHandle, rtt_us: int) -> None:
        """See `reachability.ReachabilityWatcher`."""
        self._remember_considered(node)
        self.nodes.measured(node, rtt_us)

    def _ping(self, address: Address, message: Ping, relays: Relays | None) -> None:
        """Answer a ping, with a ping back if this node needs the round-trip time, too."""
        node = NodeHandle(message.id, address)
        back = 0
        if relays is None and self._is_worth_measuring(node):
            self._remember_considered(node)
            back = self.reach.ping_back(address)
        self.reach.answer(address, relays, Pong(self.own.id, message.number, back))

    # --- Periodic work

    def _tick(self) -> None:
        period_us = self._parameters.heartbeat_us or QUIET_US
        self._emit(m.SetTimer(TICK, self.reach.now_us + period_us))
        self.reach.tick()
        self._doubted.clear()
        if not self.leaf_set.is_complete:
            for node in (*self.leaf_set.smaller[-1:], *self.leaf_set.larger[-1:]):
                self.reach.probe(node)
        if not self.is_active or not self._parameters.heartbeat_us:
            return
        for effect in self._memory.write(self.leaf_set.members, self.reach.now_us):
            self._emit(effect)
        for left in self.leaf_set.smaller[:1]:
            self.reach.send(left.address, wire.Heartbeat(self.own.id))
        for right in self.leaf_set.larger[:1]:
            if self.reach.is_silent(right.address, self._parameters.heartbeat_timeout_us):
                self.miss(right)
