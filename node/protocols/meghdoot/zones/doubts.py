"""Zones whose subscriptions a peer may not know completely, and until when: zones in doubt.

A zone received from a peer is in doubt until the giver confirms that it has sent everything; one that was
taken over, until it is recovered (`recovery`); any zone, until every subscriber must have repeated its
subscriptions (`refresh_us`) or is given up (`gone_us`). A zone that is given away in doubt is in doubt there
as well; when its giver learns more, it confirms once more. A replica's zones are in doubt unless the owner
confirmed lately that they are complete. A peer that did not run for some time cannot know whether others took
its zones over and stored subscriptions there. Its zones are in doubt until they are recovered, or a temporary
owner confirms that it has sent everything, or a temporary owner would have learned long ago that this peer
runs again (`CanParameters.repair_us`).
"""

import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from node.core.machine import Log
from node.core.peers.peer_pool import Address
from node.protocols.can.zones import Zone
from node.protocols.meghdoot.messages import Handed
from node.protocols.meghdoot.parameters import MeghdootParameters
from node.protocols.meghdoot.space import Space
from node.protocols.meghdoot.transport import OverlayTransport
from node.protocols.meghdoot.zones.held_zones import HeldZone

OWED_MAX = 1_024
ASSURED = 3
"""Time for which the owner's last confirmation is valid at a replica, in units of `retransmit`."""


@dataclass(slots=True)
class DoubtfulZone:
    """A zone, or part of one, in doubt.

    is_given: its giver will confirm the end. is_old: this peer had all data when it stopped. until_us: time
    by which every subscriber has repeated its subscriptions. awaited: unanswered recovery requests by number,
    and the zones that they ask (`messages.RecoveryZones`).
    """

    zone: Zone
    until_us: int
    is_given: bool = False
    is_old: bool = False
    attempt: int = 0
    again_us: int = 0
    awaited: dict[int, int] = field(default_factory=dict)


class DoubtfulZones:
    """All doubts of a peer.

    hand_over: sends a zone's data to another peer. is_own, is_copy: whether this peer owns a zone, or
    replicates it.
    """

    def __init__(
        self,
        parameters: MeghdootParameters,
        mail: OverlayTransport,
        space: Space,
        hand_over: Callable[[Zone, Address], None],
        *,
        is_own: Callable[[Zone], bool],
        is_copy: Callable[[Zone], bool],
    ) -> None:
        self._doubts: list[DoubtfulZone] = []
        # zones given away in doubt: zone, receiver, end of the doubt
        self._given_in_doubt: list[tuple[Zone, Address, int]] = []
        self._parameters = parameters
        self._mail = mail
        self._hand_over = hand_over
        self._is_own = is_own
        self._is_copy = is_copy
        self._woke_us: int | None = None
        # complete zones of this peer as a replica, with the end of that confirmation
        self._assured: dict[Zone, int] = {}
        self._dimensions = space.dimensions
        self._edges = struct.Struct(f">{2 * space.dimensions}d")

    def __iter__(self) -> Iterator[DoubtfulZone]:
        return iter(list(self._doubts))

    def taken_over(self, zone: Zone) -> None:
        """Add a zone that came without its data and without copies that had moved there."""
        self._doubts.append(DoubtfulZone(zone, self._until_us()))

    def resumed(self, zones: Iterable[Zone]) -> None:
        """Add this peer's zones, since it did not run for some time.

        A temporary owner learns this before the zones are recovered. Owners of zones that this peer
        replicates may have stored more meanwhile.
        """
        now_us = self._mail.now_us
        self._assured.clear()
        self._woke_us = now_us
        for zone in zones:
            again_us = now_us + self._parameters.wave_timeout_us
            until_us = now_us + self._parameters.repair_us
            self._doubts = [each for each in self._doubts if not (each.is_old and each.zone == zone)]
            self._doubts.append(DoubtfulZone(zone, until_us, is_old=True, again_us=again_us))

    def given_by_another(self, zone: Zone) -> None:
        """Add a zone received from a peer that sends its data. If the data do not arrive, the zone is
        recovered.
        """
        again_us = self._mail.now_us + self._parameters.retransmit_us
        self._doubts.append(DoubtfulZone(zone, self._until_us(), is_given=True, again_us=again_us))

    def _until_us(self) -> int:
        """Return the time by which subscribers have repeated themselves or are given up."""
        longest_us = max(self._parameters.refresh_us, self._parameters.gone_us)
        return self._mail.now_us + longest_us + 2 * self._parameters.retransmit_us

    def give(self, zone: Zone, to: Address) -> None:
        """Send all data of a zone to its new owner, and the parts that are in doubt.

        Parts stay separate: zones of two failed peers may be each other's mirror image, so that neither is
        recovered from the other.
        """
        known, doubted = [zone], []
        for each in self:
            if each.zone.intersects(zone):
                self._remove(each, zone)
                part = each.zone.intersection(zone)
                doubted.append((part, to, each.until_us))
                known = [piece for other in known for piece in other.without(part)]
        self._given_in_doubt = [*self._given_in_doubt, *doubted][-OWED_MAX:]
        self._hand_over(zone, to)
        for part, _, until_us in doubted:
            self._confirm(part, to, max(0, until_us - self._mail.now_us))
        for part in known:
            self._confirm(part, to, 0)

    def _confirm(self, zone: Zone, to: Address, doubt_us: int) -> None:
        self._mail.send(to, Handed(doubt_us, self.edges_of(zone)))

    def _remove(self, doubt: DoubtfulZone, zone: Zone) -> None:
        """Remove the part of a doubt that lies in a zone."""
        self._doubts.remove(doubt)
        self._doubts += [replace(doubt, zone=part, awaited={}) for part in doubt.zone.without(zone)]

    def handed(self, message: Handed) -> None:
        """Process a confirmation of completeness, by a giver or by the owner of a replicated zone."""
        zone = self.zone_of(message.edges)
        if not message.doubt_us and self._is_copy(zone) and not self._woke_lately:
            # or it was sent to an earlier incarnation
            self._assured[zone] = self._mail.now_us + ASSURED * self._parameters.retransmit_us
        until_us = self._mail.now_us + message.doubt_us
        for each in self:
            is_answer = each.is_given or (each.is_old and not message.doubt_us)
            if is_answer and each.zone.intersects(zone):
                self._remove(each, zone)
                if message.doubt_us:
                    part = each.zone.intersection(zone)
                    self._doubts.append(DoubtfulZone(part, until_us, is_given=True, again_us=each.again_us))
        if not message.doubt_us:
            self._complete_given(zone)

    @property
    def _woke_lately(self) -> bool:
        """Whether received confirmations may have been sent while this peer did not run."""
        return (
            self._woke_us is not None and self._mail.now_us < self._woke_us + self._parameters.retransmit_us
        )

    def end(self, doubt: DoubtfulZone, how: str) -> None:
        """End a doubt, because the zone is complete."""
        self._doubts.remove(doubt)
        self._mail.emit(Log("recovered", {"how": how}))
        self._complete_given(doubt.zone)

    def _complete_given(self, zone: Zone) -> None:
        """Send completed zones to the peers that received them in doubt."""
        owed, self._given_in_doubt = self._given_in_doubt, []
        for part, to, until_us in owed:
            if not zone.covers(part):
                self._given_in_doubt.append((part, to, until_us))
                continue
            self._hand_over(part, to)
            self._confirm(part, to, 0)

    def count_in(self, held: HeldZone, without: int = 0) -> int:
        """Return 1 if part of a zone is in doubt, else 0.

        without: a request of this peer whose own doubts do not count: the request may visit the zone that it
        is for, if that is adjacent to its mirror image.
        """
        if not self._is_own(held.zone):
            return int(not any(zone.covers(held.zone) for zone in self._assured))
        doubts = self._doubts
        return int(any(each.zone.intersects(held.zone) and without not in each.awaited for each in doubts))

    def assure(self, zone: Zone, replica: Address) -> None:
        """Confirm to a replica that it has all data of a zone, unless the zone is in doubt."""
        if not any(each.zone.intersects(zone) for each in self._doubts):
            self._confirm(zone, replica, 0)

    def tick(self) -> None:
        """End expired doubts and confirmations."""
        now_us = self._mail.now_us
        for zone in [zone for zone, until_us in self._assured.items() if until_us <= now_us]:
            del self._assured[zone]
        for each in self:
            if each.until_us <= now_us:
                self.end(each, "refreshed")
        if self._given_in_doubt:
            self._given_in_doubt = [each for each in self._given_in_doubt if each[2] > now_us]

    # --- Encoding

    def edges_of(self, zone: Zone) -> bytes:
        """Return the encoded edges of a zone."""
        return self._edges.pack(*zone.low, *zone.high)

    def zone_of(self, edges: bytes) -> Zone:
        """Return the zone of encoded edges; the inverse of `edges_of`."""
        numbers = self._edges.unpack(edges)
        return Zone(numbers[: self._dimensions], numbers[self._dimensions :])
