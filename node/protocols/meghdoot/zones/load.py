"""The load of a peer and of others, which direct joining peers to loaded zones (4.1, 4.2).

A zone has work for each event that it forwards, and more for each subscription that it matches (or, with
`load_counts: stored`, that it stores). A peer counts both with exponential decay and periodically sends its
load to neighbours, with the most loaded peers it knows of (`loadedPeerList`). A peer asked to admit another
one forwards it to the most loaded peer it knows, which forwards it to a neighbour with more load, until no
neighbour has more (hill climbing).
"""

from collections import deque
from collections.abc import Sized
from dataclasses import dataclass

import numpy as np

from node.core.peers.peer_pool import Address
from node.protocols.can.messages import Join, coordinates_of
from node.protocols.can.zone_table import Floats
from node.protocols.can.zones import TOP, Point, Zone
from node.protocols.meghdoot.messages import Climb, Load, Loaded
from node.protocols.meghdoot.parameters import MeghdootParameters
from node.protocols.meghdoot.publishing.event import EventContent
from node.protocols.meghdoot.transport import OverlayTransport
from node.protocols.meghdoot.zones.held_zones import HeldZones

DECAY = 0.5
"""Part of the counts that remains after each exchange."""
CLIMBS_MAX = 64
TOLD_MAX = 16
"""Maximum of neighbours that are sent the load at a time."""
RECENT = 128
"""Recent events that are remembered."""
OLD = 3
"""Exchanges after which a peer's reported load is forgotten."""


@dataclass(frozen=True, slots=True)
class ReportedLoad:
    """The load of a peer, and the time of the report."""

    load: float
    at_us: int


class KnownLoads:
    """The load known to one peer. events, matches: counts with decay. stored: the peer's subscriptions."""

    def __init__(
        self, parameters: MeghdootParameters, mail: OverlayTransport, held: HeldZones, stored: Sized
    ) -> None:
        self.events = self.matches = 0.0
        self.most: dict[Address, ReportedLoad] = {}
        self._parameters = parameters
        self._mail = mail
        self._held = held
        self._stored = stored
        self._neighbours: dict[Address, float] = {}
        self._due_us = parameters.load_us
        self._turn = 0
        self._recent: deque[Point] = deque(maxlen=RECENT)

    @property
    def load(self) -> float:
        """Load in visits: that of events and that of subscriptions."""
        return self.events + self.subscription_load

    @property
    def subscription_load(self) -> float:
        """Load due to subscriptions, in visits: each counts as `match_cost` visits."""
        stored = self._parameters.load_counts == "stored"
        return self._parameters.match_cost * (len(self._stored) if stored else self.matches)

    def visited(self, event: EventContent) -> None:
        """Count an event's visit."""
        self.events += 1
        self.matches += len(self._stored)
        self._recent.append(event.point)

    def recent_points(self, zone: Zone) -> Floats | None:
        """Return the points of recent events that would visit a zone, one row per dimension."""
        points = np.array(self._recent)
        if not len(points):
            return None
        low, high = np.array(zone.low[::2]), np.array(zone.high[1::2])
        reaches = (low <= points[:, ::2]) & ((points[:, 1::2] < high) | (high == TOP))
        found: Floats = points[reaches.all(axis=1)].T
        return found if found.size else None

    def is_better_copied(self, both: float) -> bool:
        """Return whether a joining peer should get a copy of a zone rather than half of it.

        both: part of the events that would visit both halves. With two copies each event visits one, which
        matches it against all subscriptions; with halves each visited half matches it against half of them. A
        split saves no work if all events visit both halves (4.1). The paper's rule compares only the two
        kinds of load (4.2).
        """
        if self._parameters.split_rule == "paper":
            return self.events >= self.subscription_load
        matching = self.subscription_load
        return self.events + matching <= (1 + both) * (self.events + matching / 2)

    def halve(self) -> None:
        """Halve the counts, since another peer takes half of the work."""
        self.events, self.matches = self.events / 2, self.matches / 2

    # --- Exchange

    def tick(self) -> None:
        """Send the load to neighbours if the interval has passed."""
        now_us = self._mail.now_us
        if self._parameters.load_us and now_us >= self._due_us:
            self._due_us = now_us + self._parameters.load_us
            self._forget()
            self.send_load()

    def send_load(self) -> None:
        """Send the load to some neighbours, the next ones each time.

        There may be hundreds of neighbours; they pass on what they learn of the most loaded peers.
        """
        rows = tuple(Loaded(address, heard.load) for address, heard in self.most.items())
        told = Load(self.load, rows)
        around = self._held.around
        for number in range(min(len(around), TOLD_MAX)):
            self._mail.send(around[(self._turn + number) % len(around)], told)
        self._turn += TOLD_MAX
        self.events, self.matches = self.events * DECAY, self.matches * DECAY

    def _forget(self) -> None:
        old_us = self._mail.now_us - OLD * self._parameters.load_us
        for address in [address for address, heard in self.most.items() if heard.at_us < old_us]:
            del self.most[address]
        around = set(self._held.around)
        self._neighbours = {each: load for each, load in self._neighbours.items() if each in around}

    def load_received(self, sender: Address, message: Load) -> None:
        """Process a neighbour's report of its own load and of others'.

        The others' loads are older, count less, and renew no entry, so that peers do not report a failed one
        forever.
        """
        self._neighbours[sender] = message.load
        self._merge(sender, message.load)
        most, room = self.most, self._parameters.loaded_peers
        least = min([each.load for each in most.values()]) if len(most) >= room else -1.0
        for each in message.peers:
            if DECAY * each.load >= least and each.address not in most:
                self._merge(each.address, DECAY * each.load)

    def _merge(self, address: Address, load: float) -> None:
        """Keep the most loaded peers, by their latest reports."""
        most = self.most
        if address == self._mail.own:
            return
        if address not in most and len(most) >= self._parameters.loaded_peers:
            least = min([(heard.load, each) for each, heard in most.items()])
            if (load, address) < least:
                return
            del most[least[1]]
        most[address] = ReportedLoad(load, self._mail.now_us)

    # --- Joins

    def sends_on(self, join: Join) -> bool:
        """Return whether a join was forwarded to a peer with more load; not if no peer has load yet."""
        wanted = max(self.most, key=lambda each: (self.most[each].load, each), default=None)
        if self._parameters.join != "by-load" or wanted is None or self.most[wanted].load <= self.load:
            return False
        self._forward(wanted, Climb(join.id, join.address, join.sequence, 0, self.load))
        return True

    def climb(self, sender: Address, message: Climb) -> Join | None:
        """Process a peer's search for the highest load; return its join if that is here."""
        self._neighbours[sender] = message.load
        if sender in self.most:
            self._merge(sender, message.load)
        heard = self._neighbours
        near = (each for each in heard.keys() & self._held.around if heard[each])
        steepest = max(near, key=lambda each: (heard[each], each), default=None)
        if steepest is not None and heard[steepest] > self.load and message.hops < CLIMBS_MAX:
            onward = Climb(message.id, message.address, message.sequence, message.hops + 1, self.load)
            self._forward(steepest, onward)
            return None
        zone = max(self._held.by_id.values(), key=lambda each: each.zone.volume, default=None)
        if zone is None:
            return None
        return Join(message.id, message.address, message.sequence, coordinates_of(zone.zone.middle))

    def _forward(self, address: Address, message: Climb) -> None:
        """Forward a joining peer, and halve the receiver's assumed load until its next report."""
        self._mail.send(address, message)
        if address in self._neighbours:
            self._neighbours[address] /= 2
        if address in self.most:
            heard = self.most[address]
            self.most[address] = ReportedLoad(heard.load / 2, heard.at_us)
