"""Transfer of zones from one node to another: to one that joins, and from one that leaves.

The giver gives up the zone when it sends GRANT, so that no other node considers it the owner, and what it
forwards follows the GRANT. It repeats GRANT until it receives GRANTED. If the receiver fails first, it takes
the zone back.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from node.core import machine as m
from node.core.peers.peer_pool import Address
from node.protocols.can.claims import VERSION_MAX, ZoneClaims, ZoneHolder
from node.protocols.can.messages import Claim, Grant, Granted, Join, Successors, sides_of, zone_of
from node.protocols.can.parameters import CanParameters
from node.protocols.can.territory import Territory
from node.protocols.can.zones import Zone
from node.protocols.reachability.nodes import NodeHandle
from node.protocols.reachability.numbers import MessageNumbers
from node.protocols.reachability.reachability import Reachability

TIMER = "grant"
TAKEN_MAX = 256
RECENT_MAX = 64
RECENT_US = 2_000_000  # longer than claims after another split take to arrive


@dataclass(frozen=True, slots=True)
class _Given:
    """A granted zone that is not confirmed yet."""

    to: NodeHandle
    zone: Zone
    version: int


@dataclass(slots=True, eq=False)
class Grants:
    """Transfers of zones from and to one node."""

    claims: ZoneClaims
    territory: Territory
    reach: Reachability
    parameters: CanParameters
    emit: Callable[[m.Effect], None]
    _numbers: MessageNumbers = field(default_factory=MessageNumbers)
    _given: dict[int, _Given] = field(default_factory=dict)
    _recent: dict[int, tuple[_Given, int]] = field(default_factory=dict)
    # latest grants received, oldest first
    _taken: dict[tuple[Address, int], None] = field(default_factory=dict)

    @property
    def is_giving(self) -> bool:
        """Whether a grant is not confirmed."""
        return bool(self._given)

    # --- Giver

    def has_just_given(self, node: NodeHandle) -> bool:
        """Return whether the node was granted a zone recently, possibly after it sent its request."""
        since_us = self.reach.now_us - RECENT_US
        recent = (given for given, given_us in self._recent.values() if given_us >= since_us)
        return any(given.to == node for given in (*self._given.values(), *recent))

    def to_joining(self, join: Join, zone: Zone, version: int) -> None:
        """Grant a zone to a node that has none, and announce it to all neighbours of the zone."""
        node = NodeHandle(join.id, join.address)
        own = self.claims.own.node
        introduced = Claim(join.id, join.address, join.sequence, 1, version, sides_of(zone))
        successors = Successors(join.id, join.address, 0, (own,))
        number = self._number(node, zone, version)
        neighbours = self._about(zone)
        self._send(number)
        self.reach.send(node.address, *neighbours)
        self.territory.give(zone, node, introduced, successors)
        self.reach.send(node.address, *self.claims.own.claim_messages())
        self.territory.claim_received(introduced, own.address, is_introduced=True)
        self.territory.successors_received(successors)

    def to_neighbour(self, node: NodeHandle, zone: Zone, version: int) -> None:
        """Grant a zone to a node that already has zones."""
        number = self._number(node, zone, version)
        neighbours = self._about(zone)
        self._send(number)
        self.reach.send(node.address, *neighbours)
        self.territory.give(zone, node)

    def _about(self, zone: Zone) -> list[Any]:
        """Return the claims of the zone's neighbours, for its new owner."""
        beside = dict.fromkeys(holder for holder, _ in self.claims.adjacent(zone))
        messages: list[Any] = []
        for holder in beside:
            messages += (*holder.claim_messages(), *holder.successor_messages())
        return messages

    def _number(self, node: NodeHandle, zone: Zone, version: int) -> int:
        number = self._numbers.following(self.reach.now_us)
        self._given[number] = given = _Given(node, zone, version)
        self._recent[number] = given, self.reach.now_us
        if len(self._recent) > RECENT_MAX:
            del self._recent[next(iter(self._recent))]
        return number

    def _send(self, number: int) -> None:
        given = self._given[number]
        own = self.claims.own.node.id
        self.reach.send(given.to.address, Grant(own, number, given.version, sides_of(given.zone)))
        timer = (TIMER, str(number))
        self.emit(m.SetTimer(timer, self.reach.now_us + self.parameters.join_timeout_us))

    def granted(self, message: Granted) -> None:
        """Process the confirmation of a grant."""
        if self._given.pop(message.number, None) is not None:
            self.emit(m.CancelTimer((TIMER, str(message.number))))

    def timed_out(self, number: int) -> None:
        """Repeat an unconfirmed grant and probe the receiver."""
        given = self._given.get(number)
        if given is not None:
            self._send(number)
            self.reach.send(given.to.address, *self.claims.own.claim_messages())
            self.reach.probe(given.to, is_missed=True)

    def failed(self, node: NodeHandle) -> None:
        """Take back zones that the failed node had not confirmed."""
        for number in [number for number, given in self._given.items() if given.to == node]:
            given = self._given.pop(number)
            self.emit(m.CancelTimer((TIMER, str(number))))
            version = min(given.version + 1, VERSION_MAX)
            self.territory.gain({given.zone: version}, None)

    def introduce(self, holder: ZoneHolder, sender: Address) -> None:
        """Forward news of a node to receivers of recent grants next to its zones.

        That node and a receiver may not know each other yet.
        """
        since_us = self.reach.now_us - RECENT_US
        for number, (given, given_us) in list(self._recent.items()):
            if given_us < since_us:
                del self._recent[number]
            elif given.to.address not in {holder.node.address, sender} and any(
                zone.adjacent(given.zone) for zone in holder.versions
            ):
                self.reach.send(given.to.address, *holder.claim_messages())

    # --- Receiver

    def take(self, sender: Address, message: Grant, *, is_joining: bool) -> bool:
        """Accept a zone; return whether the grant is new. The giver announces a node's first zone."""
        self.reach.send(sender, Granted(message.number))
        if (sender, message.number) in self._taken:
            return False
        self._taken[sender, message.number] = None
        if len(self._taken) > TAKEN_MAX:
            del self._taken[next(iter(self._taken))]
        giver = NodeHandle(message.id, sender)
        versions = {zone_of(message.sides): message.version}
        self.territory.gain(versions, giver, is_announced=is_joining)
        return True
