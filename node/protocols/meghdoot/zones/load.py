"""How loaded a peer is, and which others are, so that those who join come where they are needed (4.1, 4.2).

Passing an event on is the work of a zone whatever it stores; matching it is more, the more subscriptions it
stores. A peer counts both, lets what is long ago count less, and tells its neighbours now and then, with the
most loaded peers it has heard of (`loadedPeerList`). Who is asked to admit a peer starts from the most loaded
one it knows, which sends it on to a neighbour with more to do, until there is none (hill climbing).
"""

from collections import deque
from dataclasses import dataclass

import numpy as np

from node.core.peers.peer_pool import Address
from node.protocols.can.messages import Join, coordinates_of
from node.protocols.can.zone_table import Floats
from node.protocols.can.zones import Zone
from node.protocols.meghdoot.layers import Mail
from node.protocols.meghdoot.messages import Climb, Load, Loaded
from node.protocols.meghdoot.parameters import Parameters
from node.protocols.meghdoot.publishing.event import SeenEvent
from node.protocols.meghdoot.zones.held_zones import HeldZones

KEPT = 0.5
"""Of what was counted, from one exchange to the next."""
CLIMBS_MAX = 64
TOLD_MAX = 16
"""Neighbours that are told at a time."""
RECENT = 128
"""Events that are remembered."""
OLD = 3
"""Exchanges after which what was told of a peer is forgotten."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What a peer's load was, and when that was told."""

    load: float
    at_us: int


class LoadBook:
    """Of one peer. events, matches: counted, with what was before."""

    def __init__(self, parameters: Parameters, mail: Mail, held: HeldZones) -> None:
        self.events = self.matches = 0.0
        self.most: dict[Address, Heard] = {}
        self._parameters = parameters
        self._mail = mail
        self._held = held
        self._neighbours: dict[Address, float] = {}
        self._due_us = parameters.load_us
        self._turn = 0
        self._recent: deque[SeenEvent] = deque(maxlen=RECENT)

    @property
    def load(self) -> float:
        """In visits: matching a subscription costs `match_cost` of one."""
        return self.events + self._parameters.match_cost * self.matches

    def visited(self, event: SeenEvent, subscriptions: int) -> None:
        """An event came to a zone with so many subscriptions."""
        self.events += 1
        self.matches += subscriptions
        self._recent.append(event)

    def recent_points(self, zone: Zone) -> Floats | None:
        """Those of events that came lately, and would come to a zone, a row for each dimension."""
        points = [event.point for event in self._recent if event.region.touches(zone)]
        return np.array(points).T if points else None

    def is_less_with_copies(self, both: float) -> bool:
        """Whether two peers with copies of a zone have less to do than two with halves of it.

        both: the part of the events that would come to both halves. Of two copies each event comes to one,
        and is held against all subscriptions; at each half to which it comes, against half of them. A split
        that leaves both halves in the way of the same events spares nobody anything (4.1).
        """
        matching = self._parameters.match_cost * self.matches
        return self.events + matching <= (1 + both) * (self.events + matching / 2)

    def halve(self) -> None:
        """Another peer has a half of it now."""
        self.events, self.matches = self.events / 2, self.matches / 2

    # --- Exchange

    def tick(self) -> None:
        """Tell neighbours, when it is time."""
        now_us = self._mail.now_us
        if self._parameters.load_us and now_us >= self._due_us:
            self._due_us = now_us + self._parameters.load_us
            self._forget()
            self.tell()

    def tell(self) -> None:
        """Tell some neighbours now, the next ones each time: there may be hundreds, and what they hear of the
        most loaded peers they tell others.
        """
        rows = tuple(Loaded(address, heard.load) for address, heard in self.most.items())
        told = Load(self.load, rows)
        around = self._held.around
        for number in range(min(len(around), TOLD_MAX)):
            self._mail.send(around[(self._turn + number) % len(around)], told)
        self._turn += TOLD_MAX
        self.events, self.matches = self.events * KEPT, self.matches * KEPT

    def _forget(self) -> None:
        old_us = self._mail.now_us - OLD * self._parameters.load_us
        for address in [address for address, heard in self.most.items() if heard.at_us < old_us]:
            del self.most[address]

    def heard(self, sender: Address, message: Load) -> None:
        """What a neighbour says of itself, and of others: that is older, counts less, and renews nothing, so
        that peers do not remind each other for ever of one that is gone.
        """
        self._neighbours[sender] = message.load
        self._merge(sender, message.load)
        most, room = self.most, self._parameters.loaded_peers
        least = min([each.load for each in most.values()]) if len(most) >= room else -1.0
        for each in message.peers:
            if KEPT * each.load >= least and each.address not in most:
                self._merge(each.address, KEPT * each.load)

    def _merge(self, address: Address, load: float) -> None:
        """Keep the most loaded ones, by what was told last."""
        most = self.most
        if address == self._mail.own:
            return
        if address not in most and len(most) >= self._parameters.loaded_peers:
            least = min([(heard.load, each) for each, heard in most.items()])
            if (load, address) < least:
                return
            del most[least[1]]
        most[address] = Heard(load, self._mail.now_us)

    # --- Joins

    def sends_on(self, join: Join) -> bool:
        """Whether a join is sent to a peer with more to do; not where nobody has anything to do yet."""
        wanted = max(self.most, key=lambda each: (self.most[each].load, each), default=None)
        if self._parameters.join != "by-load" or wanted is None or self.most[wanted].load <= self.load:
            return False
        self._send_on(wanted, Climb(join.id, join.address, join.sequence, 0, self.load))
        return True

    def climb(self, sender: Address, message: Climb) -> Join | None:
        """A peer wants to join where there is more to do: the join, if that is here."""
        self._neighbours[sender] = message.load
        if sender in self.most:
            self._merge(sender, message.load)
        heard = self._neighbours
        known = {address: load for address in self._held.around if (load := heard.get(address))}
        steepest = max(known, key=lambda each: (known[each], each), default=None)
        if steepest is not None and known[steepest] > self.load and message.hops < CLIMBS_MAX:
            onward = Climb(message.id, message.address, message.sequence, message.hops + 1, self.load)
            self._send_on(steepest, onward)
            return None
        zone = max(self._held.by_id.values(), key=lambda each: each.zone.volume, default=None)
        if zone is None:
            return None
        return Join(message.id, message.address, message.sequence, coordinates_of(zone.zone.middle))

    def _send_on(self, address: Address, message: Climb) -> None:
        """Who is sent a peer has less to do soon: the next one goes elsewhere, until it is heard of again."""
        self._mail.send(address, message)
        if address in self._neighbours:
            self._neighbours[address] /= 2
        if address in self.most:
            heard = self.most[address]
            self.most[address] = Heard(heard.load / 2, heard.at_us)
