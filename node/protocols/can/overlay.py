"""CAN: nodes divide a space among them, each message routed to the one whose zone has its point.

Ratnasamy, Francis, Handley, Karp, Shenker: A Scalable Content-Addressable Network (SIGCOMM 2001), section 2.
The paper's space wraps; this one does not (see `zones`). Each hop is nearer to the point (`claims.nearest`)
and is acknowledged, where something may fail. A message that finds no nearer neighbour, since a zone is
being taken over, waits; so does one whose next node is being probed.

What a node has and hears is `territory`'s affair, what goes from node to node `grants`'s, who takes over what
failed nodes had `takeover`'s, whether all neighbours are known `boundary`'s, how nodes are reached
`reachability`'s; what is delivered is the application's. Time and randomness come from outside.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from typing import Any

from node.core import machine as m
from node.core.peers.peer_pool import Address, PeerEffect, SendTo, Unreachable
from node.protocols.can import boundary, grants, joining, takeover
from node.protocols.can.boundary import BoundaryWatch
from node.protocols.can.claims import Claims, Holder
from node.protocols.can.grants import Grants
from node.protocols.can.joining import Joining
from node.protocols.can.layers import Application
from node.protocols.can.messages import (
    Alive,
    Claim,
    Copy,
    Disown,
    Find,
    Grant,
    Granted,
    Heartbeat,
    Heirs,
    Join,
    Probe,
    Report,
    Route,
    Tell,
    point_of,
)
from node.protocols.can.parameters import CanParameters
from node.protocols.can.replicas import Replicas
from node.protocols.can.takeover import Takeover
from node.protocols.can.territory import Territory
from node.protocols.can.zones import Point, Zone, whole_space
from node.protocols.reachability.carrier import Carrier, Take
from node.protocols.reachability.messages import Ping, Pong, Routed
from node.protocols.reachability.nodes import NodeHandle
from node.protocols.reachability.reachability import Reachability, Relays

HOPS_MAX = 1_024
SAID_EACH = 4
"""Heartbeats: of so many one is said in any case, for its sequence; others where nothing else went."""
TICK: m.Timer = ("can",)
ACKNOWLEDGE: m.Timer = ("acknowledge",)


class Can:
    """One node of the overlay. `is_active`: it has a zone.

    `claims` is what it knows: `claims.own.versions` its own zones, `claims.table` these and all neighbours'
    as arrays.
    """

    def __init__(
        self,
        own: NodeHandle,
        dimensions: int,
        parameters: CanParameters,
        rng: m.Randomness,
        *,
        emit: Callable[[PeerEffect], None],
        application: Application,
    ) -> None:
        """own: with another id in each of its lives."""
        self.own = own
        self.claims = Claims(own, dimensions)
        self.reach = Reachability(own, parameters, rng, emit, self)
        self._parameters = parameters
        self._emit = emit
        self._application = application
        self.territory = Territory(
            self.claims, self.reach, application, emit, homeless=self._rejoin, failed=self.failed
        )
        self._takeover = Takeover(self.claims, self.territory, self.reach, parameters, rng, emit)
        self._boundary = BoundaryWatch(
            self.claims, self.territory, self._takeover, self.reach, parameters, rng, emit
        )
        self._grants = Grants(self.claims, self.territory, self.reach, parameters, emit)
        self.territory.orphans, self.territory.boundary = self._takeover, self._boundary
        self.territory.introduce = self._introduce
        self._replicas = Replicas(self.claims, self._takeover, self.reach, application, self._rejoin)
        self._takeover.adopt = self._replicas.adopt
        self._joining = Joining(
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
        self._givers: set[NodeHandle] = set()  # who gave zones to this node since it leaves: they leave, too
        self._turn = self._ticks = 0
        self._taken: dict[Address, list[int]] = {}  # what is to be acknowledged
        self._carrier = Carrier[Route](
            parameters, emit, pass_on=self._pass_on, receive=application.receive, known=self._known
        )
        takes: dict[type, Take] = {
            Route: self._route,
            Join: lambda address, message, relays: self._join(address, message),
            Claim: self._claim,
            Heirs: lambda address, message, relays: self.territory.hear_heirs(message),
            Grant: self._grant,
            Granted: lambda address, message, relays: self._grants.granted(message),
            Copy: lambda address, message, relays: self._copy(address),
            Disown: self._disown,
            Heartbeat: self._heartbeat,
            Tell: lambda address, message, relays: self._tell(address),
            Probe: self._probe,
            Alive: self._alive,
            Report: lambda address, message, relays: self._takeover.report(address, message),
            Find: lambda address, message, relays: self._boundary.find(address, message),
            Ping: self._ping,
            Pong: self.reach.ponged,
        }
        self._carrier.takes(self.reach, takes)

    @property
    def is_active(self) -> bool:
        """Whether this node has a zone, or copies of one."""
        return bool(self.claims.held)

    @property
    def zones(self) -> tuple[Zone, ...]:
        """This node's."""
        return tuple(self.claims.own.versions)

    # --- What an application calls

    def start(
        self,
        contacts: Iterable[Address],
        now_us: int,
        point: Point | None = None,
        *,
        is_direct: bool = False,
    ) -> None:
        """Join through one of these nodes, at a point, or at any; without contacts this is the first node and
        has the whole space. is_direct: the contacts themselves are asked for a part of their zones.
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
        """Give all zones to neighbours (2.3): what the application has is to be sent to those, as with any
        zone that is given. The node may go when `has_left`.
        """
        self._is_leaving = True
        self._give_all()

    @property
    def has_left(self) -> bool:
        """Whether this node has no zone any more, and others have confirmed that they have what it had."""
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
        """To the node whose zone has the message's point, as `Application.point_of` has it."""
        self._pass_on(Route(0, 0, message))

    def send(self, message: Any, address: Address) -> None:
        """To a node, through relays if it takes some."""
        self.reach.send(address, message)

    def neighbours(self, zone: Zone) -> Iterator[tuple[Zone, tuple[Address, ...]]]:
        """The zones of others that share a face with one of this node's, each with its owner and replicas."""
        for holder, other in self.claims.beside(zone):
            yield other, holder.addresses

    def miss(self, address: Address) -> None:
        """An application misses something from a node: find out whether it lives, and by which way."""
        holder = self.claims.others.get(address)
        self.reach.probe(holder.node if holder else NodeHandle(0, address), is_missed=True)

    # --- Inputs

    def take(self, address: Address, messages: Sequence[Any], now_us: int) -> None:
        """Messages came from an address, in order; none, if only a part of a long one has come."""
        self._carrier.take(address, messages, now_us)

    def timer(self, timer: m.Timer, now_us: int) -> bool:
        """A timer fired; whether it is one of CAN's."""
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
            return self._carrier.timer(timer)
        return True

    def unreachable(self, given: Unreachable, now_us: int) -> None:
        """A connection was lost, or could not be opened."""
        self._carrier.unreachable(given, now_us)

    def _known(self, address: Address) -> NodeHandle | None:
        holder = self.claims.others.get(address)
        return holder.node if holder else None

    # --- Routing

    def _route(self, address: Address, route: Route, relays: Relays | None) -> None:
        if route.number:
            self._acknowledge(address, route.number, relays)
            if not self._carrier.hops.is_new(address, route.number):
                return
        self._pass_on(Route(0, route.hops, route.message))

    def _acknowledge(self, address: Address, number: int, relays: Relays | None) -> None:
        """Soon, with what goes there anyway; at once, where that is the other way round a cut."""
        if relays is not None or not self._parameters.acknowledge_us:
            self.reach.answer(address, relays, Routed(number))
            return
        if not self._taken:
            self._emit(m.SetTimer(ACKNOWLEDGE, self.reach.now_us + self._parameters.acknowledge_us))
        self._taken.setdefault(address, []).append(number)

    @property
    def has_answers(self) -> bool:
        """Whether `acknowledge` has something to send to some node."""
        return bool(self._taken)

    def acknowledge(self, address: Address) -> None:
        """Something goes to a node anyway: what it handed to this one is acknowledged as well."""
        numbers = self._taken.pop(address, None)
        if numbers:
            self._emit(SendTo(address, tuple(map(Routed, numbers))))

    def _point_of(self, message: Any) -> Point:
        return point_of(message.point) if type(message) is Join else self._application.point_of(message)

    def _pass_on(self, route: Route) -> None:
        if route.hops >= HOPS_MAX:
            self._emit(m.Log("too_many_hops", {}, "warning"))
            return
        if not self.is_active and not (self._is_leaving and self.claims.others):
            self._carrier.wait(route)
            return
        if isinstance(route.message, Join):
            self._meet_joining(route.message)
        point = self._point_of(route.message)
        holder, zone = self.claims.nearest(point)
        if holder is not self.claims.own:
            self._pass_to(holder, route, is_last=zone.contains(point))
        elif not zone.contains(point):
            self._carrier.wait(route)
            self._boundary.doubt()
        elif isinstance(route.message, Join):
            self._joining.admit(route.message)
        else:
            self._application.deliver(route.message, point)

    def _pass_to(self, holder: Holder, route: Route, *, is_last: bool) -> None:
        """To who has a zone; where it ends, and a replica will do, to all who have it in turn."""
        following, message = holder.node, route.message
        if is_last and not isinstance(message, Join) and self._application.is_shared(message):
            if following.address == self.claims.original:
                self._application.deliver(message, self._point_of(message))
                return
            if holder.replicas:
                self._turn += 1
                nodes = (following, *holder.replicas)
                following = nodes[self._turn % len(nodes)]
        if self.reach.is_suspect(following):
            self._carrier.wait(route)
        else:
            self._hand_to(following, route)

    def _hand_to(self, following: NodeHandle, route: Route) -> None:
        if self._parameters.heartbeat_us:
            self._carrier.hand(following, route)
        else:
            self.reach.send(following.address, Route(0, route.hops + 1, route.message))

    # --- Joining

    def _meet_joining(self, join: Join) -> None:
        self.territory.joins(NodeHandle(join.id, join.address), join.sequence)

    def _join(self, address: Address, message: Join) -> None:
        """What a replica of this node's was to admit is not sent on any more: it might come back for ever."""
        self._meet_joining(message)
        is_of_replica = any(node.address == address for node in self.claims.own.replicas)
        if self.is_active and (is_of_replica or not self._application.sends_on(message)):
            self.admit(message)

    def admit(self, join: Join) -> None:
        """A node that is to get a part of this one's zones, or copies of them, and of nobody else's."""
        self._meet_joining(join)
        if self.claims.own.versions:
            self._joining.admit(join)
        elif self.claims.original is not None:
            self.reach.send(self.claims.original, join)

    def _grant(self, address: Address, message: Grant, relays: Relays | None) -> None:
        is_joining, is_replica = not self.is_active, self.claims.original is not None
        if self._is_leaving:
            self._givers.add(NodeHandle(message.id, address))
        if self._grants.take(address, message, is_joining=is_joining):
            if is_joining:
                self._joining.given(address)
            if is_joining or is_replica:
                self.territory.drop_strangers()
            self._carrier.pass_on_waiting()

    def _rejoin(self) -> None:
        """All that this node had belongs to others. It still knows those to whom messages go."""
        self._replicas.dismiss()
        if self._is_leaving:
            return
        self._joining.start(list(self.claims.others), None)

    # --- Neighbours

    def _introduce(self, holder: Holder, sender: Address) -> None:
        self._grants.introduce(holder, sender)
        self._replicas.introduce(holder)

    def _copy(self, address: Address) -> None:
        self._emit(m.CancelTimer(joining.TIMER))
        self._replicas.follow(address)

    def _disown(self, address: Address, message: Disown, relays: Relays | None) -> None:
        node = NodeHandle(message.id, address)
        self._replicas.disowned(node)
        self.territory.meet(node, message.sequence)

    def _claim(self, address: Address, message: Claim, relays: Relays | None) -> None:
        self.territory.hear(message, address, is_introduced=self._joining.is_given_by(address))
        if message.address == address:
            self._replicas.claimed(NodeHandle(message.id, address), message.count)
        self._carrier.pass_on_waiting()

    def _heartbeat(self, address: Address, message: Heartbeat, relays: Relays | None) -> None:
        self._replicas.addressed(address)
        self.territory.meet(NodeHandle(message.id, address), message.sequence)

    def _tell(self, address: Address) -> None:
        told: list[Any] = list(self.claims.own.told())
        heirs = self._takeover.heirs()
        if heirs is not None:
            told.append(heirs)
        self.reach.send(address, *told)

    # --- Who lives

    def probe(self, number: int) -> Probe:
        """See `reachability.Watcher`."""
        return Probe(self.own.id, number, self.claims.own.sequence)

    def relays(self) -> Iterator[NodeHandle]:
        """See `reachability.Watcher`."""
        yield from (holder.node for holder in self.claims.others.values())
        yield from self.claims.own.replicas
        yield from self.claims.acquaintances.values()

    def _probe(self, address: Address, message: Probe, relays: Relays | None) -> None:
        if self.reach.is_to_be_answered(address, message.number):
            alive = Alive(self.own.id, message.number, self.claims.own.sequence)
            self.reach.answer(address, relays, alive)
            self.territory.meet(NodeHandle(message.id, address), message.sequence)

    def _alive(self, address: Address, message: Alive, relays: Relays | None) -> None:
        node = NodeHandle(message.id, address)
        self.reach.answered(node, message.number, relays)
        self.territory.meet(node, message.sequence)

    def failed(self, node: NodeHandle) -> None:
        """See `reachability.Watcher`."""
        holder = self.claims.forget(node.address)
        self.claims.acquaintances.pop(node.address, None)
        self._replicas.remove(node)
        if holder is not None and self.claims.original in {None, node.address}:
            self._takeover.failed(holder)
            self._boundary.doubt()
        self._grants.failed(node)
        self._application.failed(node)
        self._carrier.hand_on_anew(node)
        self._carrier.pass_on_waiting()

    def answered(self) -> None:
        """See `reachability.Watcher`."""
        self._carrier.pass_on_waiting()

    def settled(self) -> None:
        """See `reachability.Watcher`."""
        self._carrier.pass_on_waiting()

    def measured(self, node: NodeHandle, rtt_us: int) -> None:
        """See `reachability.Watcher`; distances between nodes are of no use here."""

    def _ping(self, address: Address, message: Ping, relays: Relays | None) -> None:
        self.reach.answer(address, relays, Pong(self.own.id, message.number, 0))

    def _tick(self) -> None:
        self._emit(m.SetTimer(TICK, self.reach.now_us + self._parameters.heartbeat_us))
        self.reach.tick()
        self._replicas.look_after()
        if not self.is_active:
            return
        heartbeat = Heartbeat(self.own.id, self.claims.own.sequence)
        silent_us = self._parameters.heartbeat_timeout_us
        recently_us = self._parameters.heartbeat_us // 2
        self._ticks += 1
        for node, since_us in self._watched():
            if self._ticks % SAID_EACH == 0 or not self.reach.has_sent(node.address, recently_us):
                self.reach.send(node.address, heartbeat)
            is_new = self.reach.now_us - since_us < silent_us
            if not is_new and self.reach.is_silent(node.address, silent_us):
                self.reach.probe(node, is_missed=True)
        self._carrier.pass_on_waiting()
        if self.claims.original is not None:
            return
        self._takeover.name_heirs()
        self.territory.contend()
        self._boundary.look_beyond()
        if self._is_leaving:
            self._give_all()  # what came back, since the one that was to have it failed

    def _watched(self) -> list[tuple[NodeHandle, int]]:
        """Who hears regularly from this node, and it from them; and since when they are known."""
        if self.claims.original is not None:
            followed = self.claims.others.get(self.claims.original)
            return [(followed.node, followed.since_us)] if followed else []
        neighbours = [(holder.node, holder.since_us) for holder in self.claims.others.values()]
        return neighbours + [(node, 0) for node in self.claims.own.replicas]
