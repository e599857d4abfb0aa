"""CAN: nodes divide a space among them; a message is routed to the node whose zone contains its point.

Source: Ratnasamy, Francis, Handley, Karp, Shenker: A Scalable Content-Addressable Network (SIGCOMM 2001),
section 2. The paper's space wraps; this one does not (see `zones`). Each hop is nearer to the point
(`claims.nearest`) and is acknowledged if heartbeats are on. A message waits if no neighbour is nearer,
because a zone is being taken over, or if its next node is being probed.

Other modules of a node: `territory` (zones and claims), `grants` (transfer of zones), `takeover` (zones of
failed nodes), `boundary` (unknown neighbours), `reachability` (liveness and relays). The application
processes what is delivered. Time and randomness come from outside.
"""

from collections.abc import Callable, Iterable, Iterator, Set
from typing import Any

from node.core import machine as m
from node.core.peers.peer_pool import Address, PeerEffect, SendTo
from node.protocols.can import boundary, grants, joining, takeover
from node.protocols.can import messages as wire
from node.protocols.can.boundary import BoundaryWatch
from node.protocols.can.claims import ZoneClaims, ZoneHolder
from node.protocols.can.grants import Grants
from node.protocols.can.joining import ZoneJoining
from node.protocols.can.layers import CanApplication
from node.protocols.can.parameters import CanParameters
from node.protocols.can.replicas import Replicas
from node.protocols.can.takeover import TakeoverProtocol
from node.protocols.can.territory import Territory
from node.protocols.can.zones import Point, Zone, whole_space
from node.protocols.reachability.carrier import RoutingNode, TakeMessage
from node.protocols.reachability.messages import Ping, Pong, Routed
from node.protocols.reachability.nodes import NodeHandle
from node.protocols.reachability.reachability import Reachability, Relays

HOPS_MAX = 1_024
FORCED_EACH = 4
"""Each nth heartbeat is always sent, for its sequence; the others only if nothing else was sent."""
TICK: m.Timer = ("can",)
ACKNOWLEDGE: m.Timer = ("acknowledge",)


class Can(RoutingNode[wire.Route]):
    """One node of the overlay. `is_active`: it has a zone.

    `claims` is its knowledge: `claims.own.versions` its own zones, `claims.table` these and all neighbours'
    zones as arrays.
    """

    def __init__(
        self,
        own: NodeHandle,
        dimensions: int,
        parameters: CanParameters,
        rng: m.Randomness,
        *,
        emit: Callable[[PeerEffect], None],
        application: CanApplication,
    ) -> None:
        """Create a node. own: with a different id in each process generation."""
        super().__init__(parameters, emit, application.receive)
        self.own = own
        self.claims = ZoneClaims(own, dimensions)
        self.reach = Reachability(own, parameters, rng, emit, self, is_watching=bool(parameters.heartbeat_us))
        self._parameters = parameters
        self._application = application
        self.territory = Territory(
            self.claims, self.reach, application, emit, homeless=self._rejoin, failed=self.failed
        )
        self._takeover = TakeoverProtocol(self.claims, self.territory, self.reach, parameters, rng, emit)
        self._boundary = BoundaryWatch(
            self.claims, self.territory, self._takeover, self.reach, parameters, rng, emit
        )
        self._grants = Grants(self.claims, self.territory, self.reach, parameters, emit)
        self.territory.orphans, self.territory.boundary = self._takeover, self._boundary
        self.territory.introduce = self._introduce
        self._replicas = Replicas(self.claims, self._takeover, self.reach, application, self._rejoin)
        self._takeover.adopt = self._replicas.adopt
        self._joining = ZoneJoining(
            self.claims,
            self._grants,
            self._replicas,
            self.territory,
            reach=self.reach,
            application=application,
            parameters=parameters,
            rng=rng,
            emit=emit,
        )
        self._is_leaving = False
        # nodes that gave zones to this node since it started to leave: they leave, too
        self._givers: set[NodeHandle] = set()
        self._turn = self._ticks = 0
        self._taken: dict[Address, list[int]] = {}  # numbers to acknowledge
        takes: dict[type, TakeMessage] = {
            wire.Route: self._route,
            wire.Join: lambda address, message, relays: self._join(address, message),
            wire.Claim: self._claim,
            wire.Successors: lambda address, message, relays: self.territory.successors_received(message),
            wire.Grant: self._grant,
            wire.Granted: lambda address, message, relays: self._grants.granted(message),
            wire.Copy: lambda address, message, relays: self._copy(address),
            wire.Disown: self._disown,
            wire.Heartbeat: self._heartbeat,
            wire.ClaimRequest: lambda address, message, relays: self._answer_claim_request(address),
            wire.Probe: self._probe,
            wire.Alive: self._alive,
            wire.Report: lambda address, message, relays: self._takeover.report(address, message),
            wire.Find: lambda address, message, relays: self._boundary.find(address, message),
            Ping: self._ping,
        }
        self._dispatch(self.reach, takes)

    @property
    def is_active(self) -> bool:
        """Whether this node has a zone or copies of one."""
        return bool(self.claims.held)

    @property
    def zones(self) -> tuple[Zone, ...]:
        """Zones of this node."""
        return tuple(self.claims.own.versions)

    # --- Calls of the application

    def start(
        self,
        contacts: Iterable[Address],
        now_us: int,
        point: Point | None = None,
        *,
        is_direct: bool = False,
    ) -> None:
        """Join through one of the contacts, at the given point or at a random one.

        Without contacts this is the first node and has the whole space. is_direct: ask the contacts
        themselves for part of their zones.
        """
        self.reach.now_us = now_us
        contacts = list(contacts)
        if self._parameters.heartbeat_us:
            self._emit(m.SetTimer(TICK, now_us + self._parameters.heartbeat_us))
        if contacts:
            self._joining.start(contacts, point, is_direct=is_direct)
        else:
            self.claims.own.sequence = now_us
            self.territory.gain({whole_space(self.claims.table.dimensions): 0}, None)

    def leave(self) -> None:
        """Give all zones to neighbours (2.3), together with the application data, as with any transfer.

        The node may stop once `has_left` is true.
        """
        self._is_leaving = True
        self._give_all()

    @property
    def has_left(self) -> bool:
        """Whether this node has no zone any more and the receivers have confirmed its former zones."""
        return self._is_leaving and not (self.is_active or self._grants.is_giving)

    def _give_all(self) -> None:
        successors = self._successors(self._givers) or self._successors(frozenset())
        if successors:
            for zone, version in list(self.claims.own.versions.items()):
                self._grants.to_neighbour(successors[0], zone, version)
        elif not self.claims.others:
            self.territory.give(whole_space(self.claims.table.dimensions), self.own)

    def _successors(self, without: Set[NodeHandle]) -> list[NodeHandle]:
        candidates = (*self.claims.own.replicas, *self._takeover.successors(without))
        return [node for node in candidates if node not in without and not self.reach.is_suspect(node)]

    def route(self, message: Any) -> None:
        """Route a message to the node whose zone contains the message's `CanApplication.point_of`."""
        self._pass_on(wire.Route(0, 0, message))

    def miss(self, address: Address) -> None:
        """Probe a node from which the application expects something."""
        holder = self.claims.others.get(address)
        self.reach.probe(holder.node if holder else NodeHandle(0, address), is_missed=True)

    # --- Inputs

    def timer(self, timer: m.Timer, now_us: int) -> bool:
        """Process a timer; return whether it belongs to CAN."""
        self.reach.now_us = now_us
        if timer == TICK:
            self._tick()
        elif timer == ACKNOWLEDGE:
            for address in list(self._taken):
                self.acknowledge(address)
        elif timer == joining.TIMER:
            if not self.is_active:
                self._joining.try_again()
        elif timer == boundary.TIMER:
            self._boundary.timed_out()
        elif timer[0] == takeover.TIMER:
            self._takeover.timed_out(int(timer[1]))
        elif timer[0] == grants.TIMER:
            self._grants.timed_out(int(timer[1]))
        else:
            return super().timer(timer, now_us)
        return True

    def _known(self, address: Address) -> NodeHandle | None:
        holder = self.claims.others.get(address)
        return holder.node if holder else None

    # --- Routing

    def _acknowledge(self, address: Address, number: int, relays: Relays | None) -> None:
        """Acknowledge a message: soon, with other messages, or at once if it came through relays."""
        if relays is not None or not self._parameters.acknowledge_us:
            super()._acknowledge(address, number, relays)
            return
        if not self._taken:
            self._emit(m.SetTimer(ACKNOWLEDGE, self.reach.now_us + self._parameters.acknowledge_us))
        self._taken.setdefault(address, []).append(number)

    @property
    def has_answers(self) -> bool:
        """Whether an acknowledgement is pending for some node."""
        return bool(self._taken)

    def acknowledge(self, address: Address) -> None:
        """Send pending acknowledgements to a node, together with other messages to it."""
        numbers = self._taken.pop(address, None)
        if numbers:
            self._emit(SendTo(address, tuple(map(Routed, numbers))))

    def _point_of(self, message: Any) -> Point:
        return (
            wire.point_of(message.point)
            if type(message) is wire.Join
            else self._application.point_of(message)
        )

    def _pass_on(self, route: wire.Route) -> None:
        if route.hops >= HOPS_MAX:
            self._emit(m.Log("too_many_hops", {}, "warning"))
            return
        if not self.is_active and not (self._is_leaving and self.claims.others):
            self._waiting.append(route)
            return
        if isinstance(route.message, wire.Join):
            self._meet_joining(route.message)
        point = self._point_of(route.message)
        holder, zone = self.claims.nearest(point)
        if holder is not self.claims.own:
            self._pass_to(holder, route, is_last=zone.contains(point))
        elif not zone.contains(point):
            self._waiting.append(route)
            self._boundary.doubt()
        elif isinstance(route.message, wire.Join):
            self._joining.admit(route.message)
        else:
            self._application.deliver(route.message)

    def _pass_to(self, holder: ZoneHolder, route: wire.Route, *, is_last: bool) -> None:
        """Forward a message to a zone's holder; in the last hop, to the holder and its replicas in turn."""
        following, message = holder.node, route.message
        if is_last and not isinstance(message, wire.Join) and self._application.is_shared(message):
            if following.address == self.claims.original:
                self._application.deliver(message)
                return
            if holder.replicas:
                self._turn += 1
                nodes = (following, *holder.replicas)
                following = nodes[self._turn % len(nodes)]
        if self.reach.is_suspect(following):
            self._waiting.append(route)
        else:
            self._hand_to(following, route)

    # --- Joining

    def _meet_joining(self, join: wire.Join) -> None:
        self.territory.joins(NodeHandle(join.id, join.address), join.sequence)

    def _join(self, address: Address, message: wire.Join) -> None:
        """Admit a joining node unless the application forwards the request.

        A request that a replica of this node forwarded is not forwarded again, since it could circulate
        forever.
        """
        self._meet_joining(message)
        is_of_replica = any(node.address == address for node in self.claims.own.replicas)
        if self.is_active and (is_of_replica or not self._application.sends_on(message)):
            self.admit(message)

    def admit(self, join: wire.Join) -> None:
        """Give a joining node part of this node's zones or copies of them."""
        self._meet_joining(join)
        if self.claims.own.versions:
            self._joining.admit(join)
        elif self.claims.original is not None:
            self.reach.send(self.claims.original, join)

    def _grant(self, address: Address, message: wire.Grant, relays: Relays | None) -> None:
        is_joining, is_replica = not self.is_active, self.claims.original is not None
        if self._is_leaving:
            self._givers.add(NodeHandle(message.id, address))
        if self._grants.take(address, message, is_joining=is_joining):
            if is_joining:
                self._joining.given(address)
            if is_joining or is_replica:
                self.territory.drop_strangers()
            self._pass_on_waiting()

    def _rejoin(self) -> None:
        """Join again after all zones went to other nodes; keep those nodes for routing."""
        self._replicas.dismiss()
        if self._is_leaving:
            return
        self._joining.start(list(self.claims.others), None)

    # --- Neighbours

    def _introduce(self, holder: ZoneHolder, sender: Address) -> None:
        self._grants.introduce(holder, sender)
        self._replicas.introduce(holder)

    def _copy(self, address: Address) -> None:
        self._emit(m.CancelTimer(joining.TIMER))
        self._replicas.follow(address)

    def _disown(self, address: Address, message: wire.Disown, relays: Relays | None) -> None:
        node = NodeHandle(message.id, address)
        self._replicas.disowned(node)
        self.territory.check_sequence(node, message.sequence)

    def _claim(self, address: Address, message: wire.Claim, relays: Relays | None) -> None:
        self.territory.claim_received(message, address, is_introduced=self._joining.is_given_by(address))
        if message.address == address:
            self._replicas.claimed(NodeHandle(message.id, address), message.count)
        self._pass_on_waiting()

    def _heartbeat(self, address: Address, message: wire.Heartbeat, relays: Relays | None) -> None:
        self._replicas.addressed(address)
        self.territory.check_sequence(NodeHandle(message.id, address), message.sequence)

    def _answer_claim_request(self, address: Address) -> None:
        messages: list[Any] = list(self.claims.own.claim_messages())
        named = self._takeover.successors_message()
        if named is not None:
            messages.append(named)
        self.reach.send(address, *messages)

    # --- Liveness

    def probe(self, number: int) -> wire.Probe:
        """See `reachability.ReachabilityWatcher`."""
        return wire.Probe(self.own.id, number, self.claims.own.sequence)

    def relays(self) -> Iterator[NodeHandle]:
        """See `reachability.ReachabilityWatcher`."""
        yield from (holder.node for holder in self.claims.others.values())
        yield from self.claims.own.replicas
        yield from self.claims.acquaintances.values()

    def _probe(self, address: Address, message: wire.Probe, relays: Relays | None) -> None:
        if self.reach.is_to_be_answered(address, message.number):
            alive = wire.Alive(self.own.id, message.number, self.claims.own.sequence)
            self.reach.answer(address, relays, alive)
            self.territory.check_sequence(NodeHandle(message.id, address), message.sequence)

    def _alive(self, address: Address, message: wire.Alive, relays: Relays | None) -> None:
        node = NodeHandle(message.id, address)
        self.reach.answered(node, message.number, relays)
        self.territory.check_sequence(node, message.sequence)

    def failed(self, node: NodeHandle) -> None:
        """See `reachability.ReachabilityWatcher`."""
        holder = self.claims.forget(node.address)
        self.claims.acquaintances.pop(node.address, None)
        self._replicas.remove(node)
        if holder is not None and self.claims.original in {None, node.address}:
            self._takeover.failed(holder)
            self._boundary.doubt()
        self._grants.failed(node)
        self._hand_on_anew(node)
        self._pass_on_waiting()

    def _ping(self, address: Address, message: Ping, relays: Relays | None) -> None:
        self.reach.answer(address, relays, Pong(self.own.id, message.number, 0))

    def _tick(self) -> None:
        self._emit(m.SetTimer(TICK, self.reach.now_us + self._parameters.heartbeat_us))
        self.reach.tick()
        self._replicas.look_after()
        if not self.is_active:
            return
        heartbeat = wire.Heartbeat(self.own.id, self.claims.own.sequence)
        silent_us = self._parameters.heartbeat_timeout_us
        recently_us = self._parameters.heartbeat_us // 2
        self._ticks += 1
        for node, since_us in self._watched():
            if self._ticks % FORCED_EACH == 0 or not self.reach.has_sent(node.address, recently_us):
                self.reach.send(node.address, heartbeat)
            is_new = self.reach.now_us - since_us < silent_us
            if not is_new and self.reach.is_silent(node.address, silent_us):
                self.reach.probe(node, is_missed=True)
        self._pass_on_waiting()
        if self.claims.original is not None:
            return
        self._takeover.announce_successors()
        self.territory.contend()
        self._boundary.look_beyond()
        if self._is_leaving:
            self._give_all()  # zones that came back because the receiver failed

    def _watched(self) -> list[tuple[NodeHandle, int]]:
        """Return the nodes to exchange heartbeats with, and since when each is known."""
        if self.claims.original is not None:
            followed = self.claims.others.get(self.claims.original)
            return [(followed.node, followed.since_us)] if followed else []
        neighbours = [(holder.node, holder.since_us) for holder in self.claims.others.values()]
        return neighbours + [(node, 0) for node in self.claims.own.replicas]
