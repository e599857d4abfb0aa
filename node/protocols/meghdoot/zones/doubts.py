"""Zones of which a peer may not know all subscriptions, and until when.

A zone that comes from a peer is in doubt until that one says that it has sent all that it had; one that was
taken over, until it is recovered (`recovery`); any, until every subscriber had to speak (`refresh_us`) or is
given up (`gone_us`). What is in doubt and given on is in doubt there as well: when its giver knows more, it
says so once more. What a replica has is in doubt unless the owner said lately that it is all there is. A
peer that did not run for some time cannot know whether others took its zones over meanwhile, and stored there
what it has not: its zones are in doubt until they are recovered as well, or who had one says that it has
sent all, or who had it would have heard long ago that it runs again (`CanParameters.repair_us`).
"""

import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from node.core.machine import Log
from node.core.peers.peer_pool import Address
from node.protocols.can.zones import Zone
from node.protocols.meghdoot.layers import Mail
from node.protocols.meghdoot.messages import Handed
from node.protocols.meghdoot.parameters import Parameters
from node.protocols.meghdoot.space import Space
from node.protocols.meghdoot.zones.held_zones import HeldZone

OWED_MAX = 1_024
ASSURED = 3
"""Times `retransmit` for which a replica believes what it was told last."""


@dataclass(slots=True)
class Doubt:
    """A zone, or part of one. is_given: its giver will say that there is nothing more. is_old: this peer has
    all that there was when it stopped.

    until_us: when every subscriber has spoken. awaited: by their numbers, requests to recover it without an
    answer, and whom they asked (`messages.Where`).
    """

    zone: Zone
    until_us: int
    is_given: bool = False
    is_old: bool = False
    attempt: int = 0
    again_us: int = 0
    awaited: dict[int, int] = field(default_factory=dict)


class Doubts:
    """All of a peer's. hand_over: sends what belongs to a zone to another peer. is_own, is_copy: whether
    this peer is the owner of a zone, or a replica.
    """

    def __init__(
        self,
        parameters: Parameters,
        mail: Mail,
        space: Space,
        hand_over: Callable[[Zone, Address], None],
        *,
        is_own: Callable[[Zone], bool],
        is_copy: Callable[[Zone], bool],
    ) -> None:
        self._doubts: list[Doubt] = []
        self._owed: list[tuple[Zone, Address, int]] = []  # what was given on in doubt, to whom, until when
        self._parameters = parameters
        self._mail = mail
        self._hand_over = hand_over
        self._is_own = is_own
        self._is_copy = is_copy
        self._woke_us: int | None = None
        self._assured: dict[Zone, int] = {}  # what this peer, as a replica, has all of; until when
        self._dimensions = space.dimensions
        self._edges = struct.Struct(f">{2 * space.dimensions}d")

    def __iter__(self) -> Iterator[Doubt]:
        return iter(list(self._doubts))

    def taken_over(self, zone: Zone) -> None:
        """A zone came to this peer without what belongs to it, nor copies that had moved there."""
        self._doubts.append(Doubt(zone, self._until_us()))

    def woke(self, zones: Iterable[Zone]) -> None:
        """This peer, which has these zones, did not run for some time. Who took them over hears of it before
        they are recovered. Owners of what it has copies of may have stored more without it.
        """
        now_us = self._mail.now_us
        self._assured.clear()
        self._woke_us = now_us
        for zone in zones:
            again_us = now_us + self._parameters.wave_timeout_us
            until_us = now_us + self._parameters.repair_us
            self._doubts = [each for each in self._doubts if not (each.is_old and each.zone == zone)]
            self._doubts.append(Doubt(zone, until_us, is_old=True, again_us=again_us))

    def given_by_another(self, zone: Zone) -> None:
        """A zone came from a peer, which sends what belongs to it; without that, as if it were gone."""
        again_us = self._mail.now_us + self._parameters.retransmit_us
        self._doubts.append(Doubt(zone, self._until_us(), is_given=True, again_us=again_us))

    def _until_us(self) -> int:
        """When all have spoken that are reached, and events are kept for the others no more."""
        longest_us = max(self._parameters.refresh_us, self._parameters.gone_us)
        return self._mail.now_us + longest_us + 2 * self._parameters.retransmit_us

    def give(self, zone: Zone, to: Address) -> None:
        """A zone is another's now: it is sent all that belongs to it, and which parts of it are in doubt.
        They stay apart: what two peers had that are gone may be each other's mirror image, and then neither
        is recovered from the other.
        """
        known, doubted = [zone], []
        for each in self:
            if each.zone.intersects(zone):
                self._remove(each, zone)
                part = each.zone.intersection(zone)
                doubted.append((part, to, each.until_us))
                known = [piece for other in known for piece in other.without(part)]
        self._owed = [*self._owed, *doubted][-OWED_MAX:]
        self._hand_over(zone, to)
        for part, _, until_us in doubted:
            self._say(part, to, max(0, until_us - self._mail.now_us))
        for part in known:
            self._say(part, to, 0)

    def _say(self, zone: Zone, to: Address, doubt_us: int) -> None:
        self._mail.send(to, Handed(doubt_us, self.edges_of(zone)))

    def _remove(self, doubt: Doubt, zone: Zone) -> None:
        """What of a doubt is in a zone is none of this peer's any more."""
        self._doubts.remove(doubt)
        self._doubts += [replace(doubt, zone=part, awaited={}) for part in doubt.zone.without(zone)]

    def handed(self, message: Handed) -> None:
        """A giver has sent all that it had; or the owner of a zone of which this peer is a replica."""
        zone = self.zone_of(message.edges)
        if not message.doubt_us and self._is_copy(zone) and not self._is_drowsy:
            # or it was said to this one's life before
            self._assured[zone] = self._mail.now_us + ASSURED * self._parameters.retransmit_us
        until_us = self._mail.now_us + message.doubt_us
        for each in self:
            is_answer = each.is_given or (each.is_old and not message.doubt_us)
            if is_answer and each.zone.intersects(zone):
                self._remove(each, zone)
                if message.doubt_us:
                    part = each.zone.intersection(zone)
                    self._doubts.append(Doubt(part, until_us, is_given=True, again_us=each.again_us))
        if not message.doubt_us:
            self._pay(zone)

    @property
    def _is_drowsy(self) -> bool:
        """Whether what comes may have been said while this peer did not run."""
        return (
            self._woke_us is not None and self._mail.now_us < self._woke_us + self._parameters.retransmit_us
        )

    def end(self, doubt: Doubt, how: str) -> None:
        """All of it is known."""
        self._doubts.remove(doubt)
        self._mail.emit(Log("recovered", {"how": how}))
        self._pay(doubt.zone)

    def _pay(self, zone: Zone) -> None:
        """Whoever was given what was in doubt until now has it, too."""
        owed, self._owed = self._owed, []
        for part, to, until_us in owed:
            if not zone.covers(part):
                self._owed.append((part, to, until_us))
                continue
            self._hand_over(part, to)
            self._say(part, to, 0)

    def count_in(self, held: HeldZone, without: int = 0) -> int:
        """1 if something of a zone is in doubt; but for what is asked for by a request of this peer's: if its
        zone is beside its own mirror image, it asks itself, too.
        """
        if not self._is_own(held.zone):
            return int(not any(zone.covers(held.zone) for zone in self._assured))
        doubts = self._doubts
        return int(any(each.zone.intersects(held.zone) and without not in each.awaited for each in doubts))

    def assure(self, zone: Zone, replica: Address) -> None:
        """A replica has all that this peer has of a zone: say so, if that is all there is."""
        if not any(each.zone.intersects(zone) for each in self._doubts):
            self._say(zone, replica, 0)

    def tick(self) -> None:
        """End what time ends."""
        now_us = self._mail.now_us
        for zone in [zone for zone, until_us in self._assured.items() if until_us <= now_us]:
            del self._assured[zone]
        for each in self:
            if each.until_us <= now_us:
                self.end(each, "refreshed")
        if self._owed:
            self._owed = [each for each in self._owed if each[2] > now_us]

    # --- As messages have them

    def edges_of(self, zone: Zone) -> bytes:
        """A zone's."""
        return self._edges.pack(*zone.low, *zone.high)

    def zone_of(self, edges: bytes) -> Zone:
        """The inverse of `edges_of`."""
        numbers = self._edges.unpack(edges)
        return Zone(numbers[: self._dimensions], numbers[self._dimensions :])
