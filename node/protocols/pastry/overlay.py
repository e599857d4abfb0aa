"""Pastry: a ring of nodes, each message routed to the live one whose id is closest to its key.

Section 2 of both Scribe papers: routing by prefix (`route`), joins through a node that is known, which fill
the routing table row by row. Leaf sets agree as in MSPastry (DSN 2004, figure 2): each change is confirmed by
a probe of the node concerned, probes carry leaf sets and failures, and a node takes messages only when all of
its leaf set has answered. A message that would have to go to a node which is being probed waits for the
probe's end, so that no two nodes deliver for one key while a third one merely is slow.

No message goes round in a loop: as long as it is routed by prefix, each node shares more digits with the key
or is closer to it; as soon as a leaf set covers the key, each node is closer (`Phase`).

How nodes are reached is `reachability`'s; what is delivered is the application's. Time and randomness come
from outside.
"""

from bisect import insort
from collections import deque
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import Any, Protocol

from node.core import machine as m
from node.core.peer_pool import Address, PeerEffect
from node.protocols.pastry import hops
from node.protocols.pastry.candidates import Candidates
from node.protocols.pastry.hops import Hops
from node.protocols.pastry.ids import NodeHandle, closest, distance, shared_digits
from node.protocols.pastry.last_leaf_set import LastLeafSet
from node.protocols.pastry.leaf_set import LeafSet
from node.protocols.pastry.messages import (
    Belief,
    Believed,
    Heartbeat,
    JoinLeaves,
    JoinRing,
    JoinRows,
    LeafAnswer,
    LeafProbe,
    Phase,
    Ping,
    Pong,
    Relay,
    Route,
    Routed,
    Unheard,
)
from node.protocols.pastry.parameters import PastryParameters
from node.protocols.pastry.reachability import Reachability, Relays
from node.protocols.pastry.routing_table import RoutingTable

HOPS_MAX = 255
WAITING_MAX = 1_024  # messages that wait for a probe, or for this node to have joined
CONSIDERED_MAX = 128  # nodes that are remembered as measured
TICK: m.Timer = ("pastry",)
JOINING: m.Timer = ("join",)
QUIET_US = 1_000_000  # between looks, where there are no heartbeats
LAST_ASKED = 4  # nodes of the last leaf set that are asked at a time
WAITS_MAX = 4  # times `join_timeout`, until a node asks anew that was sent a leaf set
ALONE_AFTER = 5  # attempts of a node that returns


class Application(Protocol):
    """What stands on Pastry: the upcalls of its API (2002, section 2.3)."""

    def receive(self, sender: Address, message: Any) -> None:
        """A message of the application's came from a node, not by its key."""

    def deliver(self, message: Any, key: int) -> None:
        """This node is the closest one to the message's key."""

    def forward(self, message: Any, key: int, following: NodeHandle) -> Any | None:
        """The message is about to go to `following`: as it is, changed, or not at all (None)."""

    def new_leafs(self, leaf_set: LeafSet) -> None:
        """The leaf set has changed."""

    def failed(self, node: NodeHandle) -> None:
        """A node that was known gives no answer any more."""


class Pastry:
    """One node of the overlay. `is_active`: it has joined, and its leaf set has answered."""

    def __init__(
        self,
        own: NodeHandle,
        parameters: PastryParameters,
        rng: m.Randomness,
        emit: Callable[[PeerEffect], None],
        application: Application,
    ) -> None:
        self.own = own
        self.is_active = False
        self.leaf_set = LeafSet(own, parameters.leaf_set)
        self.table = RoutingTable(own.id, parameters.b)
        self.neighbourhood: list[tuple[int, NodeHandle]] = []  # the nearest ones, with their round-trip times
        self.reach = Reachability(own, parameters, rng, emit, self)
        self._parameters = parameters
        self._rng = rng
        self._emit = emit
        self._application = application
        self._contacts: Sequence[Address] = ()
        self._last: deque[NodeHandle] = deque()  # an earlier life's leaf set
        self._attempts = self._waits = 0
        self._memory = LastLeafSet(own, parameters.remember_us if parameters.heartbeat_us else 0)
        self._candidates = Candidates(self.leaf_set, parameters.leaf_set)
        self._has_leaves = False  # was sent a leaf set to begin with
        self._failed: dict[Address, NodeHandle] = {}
        self._considered: set[Address] = set()
        self._waiting: deque[Route] = deque(maxlen=WAITING_MAX)
        self._hops = Hops(parameters.probe_timeout_us, emit)
        self._carry: dict[type, Callable[[Address, Any, Relays | None], None]] = {
            Route: self._route,
            Routed: lambda address, message, relays: self._hops.routed(message.number),
            JoinRows: self._join_rows,
            JoinLeaves: self._join_leaves,
            LeafProbe: self._leaf_probe,
            LeafAnswer: self._leaf_answer,
            Ping: self._ping,
            Pong: self.reach.ponged,
            Heartbeat: lambda address, message, relays: None,  # that it was heard is all
            Relay: self._relay,
            Unheard: self._unheard,
        }

    # --- What an application calls

    def start(self, contacts: Sequence[Address], now_us: int, stored: Iterable[m.StoredSegment] = ()) -> None:
        """Join through one of these nodes, and through those of the leaf set that is stored if there is no
        answer; without any this is the first node of a ring.
        """
        self.reach.now_us = now_us
        self._contacts = [each for each in contacts if each != self.own.address]
        self._last.extend(self._memory.restored(stored))
        self._emit(m.SetTimer(TICK, now_us + self._parameters.heartbeat_us or QUIET_US))
        if self._contacts or self._last:
            self._join()
        else:
            self._become_active()

    def route(self, message: Any, key: int) -> None:
        """To the live node whose id is closest to the key."""
        self._pass_on(Route(key, 0, 0, Phase.PREFIX, message))

    def route_aside(self, message: Any, key: int, avoided: Container[Address] = ()) -> bool:
        """As `route`, but first to any other node that will do, by chance; whether there is one.

        A message that gets nowhere the usual way may get there so (2002, IV.E; draft of 2001, 3.4.1 and 3.5).
        """
        others = [node for node in self._detours(key) if node.address not in avoided]
        if not others or not self.is_active:
            return False
        phase = Phase.LEAF_SET if self.leaf_set.covers(key) else Phase.PREFIX
        following = others[self._rng.randrange(len(others))]
        self._hand_to(following, Route(key, 0, 0, phase, message), phase)
        return True

    def measure(self, node: NodeHandle, told: Callable[[int], None]) -> None:
        """How far away a node is, as a round-trip time in microseconds; without an answer nobody is told."""
        self.reach.ping(node.address, told)

    def send(self, message: Any, address: Address) -> None:
        """To a node, through relays if it takes some."""
        self.reach.send(address, message)

    def miss(self, node: NodeHandle) -> None:
        """An application misses something from a node: find out whether it lives, and by which way."""
        self.reach.probe(node, is_missed=True)

    def is_missed(self, node: NodeHandle | None) -> bool:
        """Whether it is being found out by which way a node is reached, if at all."""
        return node is not None and self.reach.is_suspect(node)

    def known(self) -> Iterable[NodeHandle]:
        """All nodes in the leaf set and the routing table; some may be given twice."""
        return chain(self.leaf_set.smaller, self.leaf_set.larger, self.table)

    # --- Inputs

    def take(self, address: Address, message: Any, now_us: int) -> None:
        """A message came from an address."""
        self.reach.now_us = now_us
        self._take(address, message, None)

    def _take(self, address: Address, message: Any, relays: Relays | None) -> None:
        self.reach.heard(address, relays)
        carry = self._carry.get(type(message))
        if carry is not None:
            carry(address, message, relays)
        else:
            self._application.receive(address, message)

    def timer(self, timer: m.Timer, now_us: int) -> bool:
        """A timer fired; whether it is one of Pastry's."""
        self.reach.now_us = now_us
        if timer == TICK:
            self._tick()
        elif timer == JOINING:
            if not self.is_active:
                self._join_again()
        elif timer[0] == "probe":
            self.reach.timed_out(int(timer[1]))
        elif timer[0] == hops.TIMER:
            self._hop_is_late(int(timer[1]))
        else:
            return False
        return True

    def unreachable(self, address: Address, now_us: int) -> None:
        """A connection was lost."""
        self.reach.now_us = now_us
        for node in self.known():
            if node.address == address:
                self.miss(node)
                return

    # --- Routing

    def following(self, key: int, phase: int) -> tuple[NodeHandle, int]:
        """To whom a message for a key goes next (this node itself: it is delivered), and how.

        Leaf set, routing table, and the rare case, in this order (2001, section 2).
        """
        if phase == Phase.LEAF_SET or self.leaf_set.covers(key):
            return self.leaf_set.closest(key), Phase.LEAF_SET
        entry = self.table.entry(key)
        if entry is not None and not self.reach.is_suspect(entry):
            return entry, Phase.PREFIX
        b, own = self._parameters.b, self.own.id
        row, far = shared_digits(own, key, b), distance(own, key)
        closer = (
            node
            for node in self.known()
            if distance(node.id, key) < far
            and shared_digits(node.id, key, b) >= row
            and not self.reach.is_suspect(node)
        )
        return min(closer, key=lambda node: distance(node.id, key), default=self.own), Phase.PREFIX

    def _before(self, joining: NodeHandle, key: int) -> tuple[NodeHandle, int]:
        """To whom a join goes where the joining node is known already: it came back, or sent a probe."""
        others = [node for node in self.known() if node.address != joining.address]
        if self.leaf_set.covers(key):
            others = [node for node in others if node in self.leaf_set]
            return closest(key, (self.own, *others)), Phase.LEAF_SET
        row, far = shared_digits(self.own.id, key, self._parameters.b), distance(self.own.id, key)
        closer = [
            node
            for node in others
            if distance(node.id, key) < far
            and shared_digits(node.id, key, self._parameters.b) >= row
            and not self.reach.is_suspect(node)
        ]
        return min(closer, key=lambda node: distance(node.id, key), default=self.own), Phase.PREFIX

    def _detours(self, key: int) -> list[NodeHandle]:
        """All known nodes to which a message for a key may go next without going round in a loop."""
        b, own = self._parameters.b, self.own.id
        row, far, is_near = shared_digits(own, key, b), distance(own, key), self.leaf_set.covers(key)
        known = dict.fromkeys(chain(self.known(), (node for _, node in self.neighbourhood)))
        return [
            node
            for node in known
            if (
                (distance(node.id, key) < far and (is_near or shared_digits(node.id, key, b) >= row))
                or (not is_near and shared_digits(node.id, key, b) > row)
            )
            and not self.reach.is_suspect(node)
        ]

    def _route(self, address: Address, route: Route, relays: Relays | None) -> None:
        if route.number:
            self.reach.answer(address, relays, Routed(route.number))
            if not self._hops.is_new(address, route.number):
                return
        self._pass_on(Route(route.key, 0, route.hops, route.phase, route.message))

    def _hop_is_late(self, number: int) -> None:
        late = self._hops.late(number)
        if late is not None:
            self.miss(late.node)
            self._pass_on(late.route)

    def _pass_on(self, route: Route) -> None:
        if route.hops >= HOPS_MAX:
            return
        if not self.is_active:
            self._waiting.append(route)
            return
        following, phase = self.following(route.key, route.phase)
        if isinstance(route.message, JoinRing) and following.address == route.message.address:
            following, phase = self._before(following, route.key)
        if self.reach.is_suspect(following):
            self._waiting.append(route)
            return
        if isinstance(route.message, JoinRing):
            self._help_to_join(route, route.message, is_last=following is self.own)
            route = replace(route, message=self._with_rows(route.message))
        elif following is self.own:
            self._application.deliver(route.message, route.key)
            return
        if following is not self.own:
            self._hand_to(following, route, phase)

    def _hand_to(self, following: NodeHandle, route: Route, phase: int) -> None:
        message = route.message
        if not isinstance(message, JoinRing):
            message = self._application.forward(message, route.key, following)
            if message is None:
                return
        onward = Route(route.key, route.number, route.hops, phase, message)
        if self._parameters.heartbeat_us:
            onward = self._hops.hand(following, onward, self.reach.now_us)
        else:
            onward = Route(route.key, 0, route.hops + 1, phase, message)
        self.reach.send(following.address, onward)

    def _pass_on_waiting(self) -> None:
        waiting = list(self._waiting)
        self._waiting.clear()
        for route in waiting:
            self._pass_on(route)

    # --- Joining

    def _join(self) -> None:
        """Ask a contact; without an answer another one, and some of the last leaf set.

        Whoever comes back and is told of nobody may be the first to do so: then all of these are gone, too.
        They are asked again now and then, like all that have failed. Where very many come back at the same
        time, joins lead to nodes that are joining themselves: each begins with who was next to it, then.
        """
        self._attempts += 1
        if self._attempts > ALONE_AFTER and (self._last or not self._contacts):
            self._become_active()
            for node in self._last:
                self.reach.probe(node)
            return
        asked = [self._contacts[self._rng.randrange(len(self._contacts))]] if self._contacts else []
        if not asked or self._attempts > 1:
            asked += [node.address for node in islice(self._last, LAST_ASKED)]
            self._last.rotate(-LAST_ASKED)
        join = JoinRing(self.own.id, self.own.address, 0)
        for address in dict.fromkeys(asked):
            self.reach.send(address, Route(self.own.id, 0, 0, Phase.PREFIX, join))
        self._emit(m.SetTimer(JOINING, self.reach.now_us + self._parameters.join_timeout_us))

    def _join_again(self) -> None:
        """Whoever was sent a leaf set waits for its nodes; if none of them is left, or it takes too long, all
        begins anew.
        """
        self._waits += 1
        if self._has_leaves and self._candidates.wanted and self._waits % WAITS_MAX:
            self._probe_candidates()
            self._emit(m.SetTimer(JOINING, self.reach.now_us + self._parameters.join_timeout_us))
        else:
            self._join()

    def _help_to_join(self, route: Route, join: JoinRing, *, is_last: bool) -> None:
        """The rows that no node before had, up to what both ids share: row i comes from the i-th hop. The
        first node, which is near, also gives its neighbourhood set, the last one its leaf set.
        """
        if join.address == self.own.address:
            return
        rows = [node for number in range(join.rows, self._rows(join.id)) for node in self.table.row(number)]
        if not route.hops:
            rows += (node for _, node in self.neighbourhood)
        self.reach.send(join.address, JoinRows(self.own.id, tuple(dict.fromkeys((self.own, *rows)))))
        if is_last:
            self.reach.send(join.address, JoinLeaves(self.own.id, tuple(self.leaf_set.members)))

    def _rows(self, joining: int) -> int:
        """How many rows of the table are of use to a node with this id."""
        return shared_digits(self.own.id, joining, self._parameters.b) + 1

    def _with_rows(self, join: JoinRing) -> JoinRing:
        return replace(join, rows=min(max(join.rows, self._rows(join.id)), 255))

    def _join_rows(self, address: Address, message: JoinRows, relays: Relays | None) -> None:
        for node in message.nodes:
            self._consider(node)

    def _join_leaves(self, address: Address, message: JoinLeaves, relays: Relays | None) -> None:
        if self.is_active:
            return
        self._has_leaves = True
        self._candidates.hear((NodeHandle(message.id, address), *message.nodes))
        self._probe_candidates(address)
        self._become_active_if_joined()

    def _become_active_if_joined(self) -> None:
        """The leaf set is as those in it say: what else is being probed was in it, and is watched anyway."""
        is_known = self._has_leaves and self.leaf_set.members
        if not self.is_active and is_known and not self._candidates.wanted:
            self._become_active()

    def _become_active(self) -> None:
        self.is_active = True
        self._emit(m.CancelTimer(JOINING))
        for node in set(self.known()):
            self._consider(node)
        self._application.new_leafs(self.leaf_set)
        self._pass_on_waiting()

    # --- The leaf set (MSPastry)

    def probe(self, number: int) -> LeafProbe:
        """See `reachability.Watcher`."""
        return LeafProbe(self.own.id, number, self._beliefs())

    def _beliefs(self) -> tuple[Believed, ...]:
        alive = (Believed(node.id, node.address, Belief.ALIVE) for node in self.leaf_set.members)
        failed = (Believed(node.id, node.address, Belief.FAILED) for node in self._failed.values())
        return (*alive, *failed)

    def _leaf_probe(self, address: Address, message: LeafProbe, relays: Relays | None) -> None:
        if not self.reach.is_to_be_answered(address, message.number):
            return
        node = NodeHandle(message.id, address)
        self._learn(node, message.nodes)
        self._consider(node)
        self.reach.answer(address, relays, LeafAnswer(self.own.id, message.number, self._beliefs()))

    def _leaf_answer(self, address: Address, message: LeafAnswer, relays: Relays | None) -> None:
        node = NodeHandle(message.id, address)
        self._learn(node, message.nodes)
        self.reach.answered(node, message.number, relays)
        self._consider(node)

    def _learn(self, node: NodeHandle, beliefs: Iterable[Believed]) -> None:
        """What a node's message says of it, and of others."""
        self._failed.pop(node.address, None)
        changed = self.leaf_set.add(node)
        told = []
        for each in beliefs:
            other = NodeHandle(each.id, each.address)
            if each.belief == Belief.FAILED:
                if other in self.leaf_set:
                    self.reach.probe(other)
            elif other.address not in self._failed and self.leaf_set.would_take(other):
                told.append(other)
        if told:
            self._candidates.hear(told)
            self._probe_candidates(node.address)
        if changed and self.is_active:
            self._application.new_leafs(self.leaf_set)

    def _probe_candidates(self, told_by: Address | None = None) -> None:
        for node in self._candidates.wanted:
            self.reach.probe(node, told_by)

    def failed(self, node: NodeHandle) -> None:
        """See `reachability.Watcher`."""
        was_leaf = self.leaf_set.remove(node)
        if node in self._candidates:
            self._candidates.fail(node)
            self._failed[node.address] = node
            self._probe_candidates()
        self.table.remove(node)
        self.neighbourhood = [each for each in self.neighbourhood if each[1] != node]
        for rtt_us, near in self.neighbourhood:  # the slot of the one that failed may be theirs
            self.table.offer(near, rtt_us)
        if was_leaf:
            self._failed[node.address] = node
            for member in self.leaf_set.members:
                self.reach.probe(member)
            if self.is_active:
                self._application.new_leafs(self.leaf_set)
        self._application.failed(node)
        self.answered()

    def answered(self) -> None:
        """See `reachability.Watcher`."""
        if self.is_active:
            self._pass_on_waiting()
        else:
            self._become_active_if_joined()

    def settled(self) -> None:
        """See `reachability.Watcher`: now the leaf set is what has answered."""
        if self.leaf_set.is_complete or not self._failed:
            self._failed.clear()
        if self.is_active:
            self._candidates.clear()
            self._pass_on_waiting()
        else:
            self._become_active_if_joined()

    # --- The routing table

    def relays(self) -> Iterable[NodeHandle]:
        """See `reachability.Watcher`."""
        return self.known()

    def _consider(self, node: NodeHandle) -> None:
        """Measure a node that may be of use in the routing table, and that was not measured lately."""
        if self._is_worth_measuring(node):
            self._remember_considered(node)
            self.reach.ping(node.address)

    def _is_worth_measuring(self, node: NodeHandle) -> bool:
        return self.table.is_wanted(node) and node.address not in self._considered

    def _remember_considered(self, node: NodeHandle) -> None:
        if len(self._considered) >= CONSIDERED_MAX:
            self._considered.clear()
        self._considered.add(node.address)

    def measured(self, node: NodeHandle, rtt_us: int) -> None:
        """See `reachability.Watcher`."""
        self._remember_considered(node)
        self.table.offer(node, rtt_us)
        size, known = self._parameters.neighbourhood, self.neighbourhood
        if len(known) < size or rtt_us < known[-1][0]:
            others = [each for each in known if each[1].id != node.id]
            insort(others, (rtt_us, node), key=lambda each: (each[0], each[1].id))
            self.neighbourhood = others[:size]

    def _ping(self, address: Address, message: Ping, relays: Relays | None) -> None:
        """An answer; where this node wants to know as well, that asks back."""
        node = NodeHandle(message.id, address)
        back = 0
        if relays is None and self._is_worth_measuring(node):
            self._remember_considered(node)
            back = self.reach.ping_back(address)
        self.reach.answer(address, relays, Pong(self.own.id, message.number, back))

    # --- Others

    def _relay(self, address: Address, message: Relay, relays: Relays | None) -> None:
        if message.target == self.own.address:
            self._take(message.source, message.message, self.reach.way_back(message))
        else:
            self.reach.pass_on(message)

    def _unheard(self, address: Address, message: Unheard, relays: Relays | None) -> None:
        if relays is not None:
            self.reach.unheard(address, relays)

    def _tick(self) -> None:
        period_us = self._parameters.heartbeat_us or QUIET_US
        self._emit(m.SetTimer(TICK, self.reach.now_us + period_us))
        self.reach.tick()
        if not self.leaf_set.is_complete:
            for node in (*self.leaf_set.smaller[-1:], *self.leaf_set.larger[-1:]):
                self.reach.probe(node)
        if not self.is_active or not self._parameters.heartbeat_us:
            return
        for effect in self._memory.write(self.leaf_set.members, self.reach.now_us):
            self._emit(effect)
        for left in self.leaf_set.smaller[:1]:
            self.reach.send(left.address, Heartbeat(self.own.id))
        for right in self.leaf_set.larger[:1]:
            if self.reach.is_silent(right.address, self._parameters.heartbeat_timeout_us):
                self.miss(right)
