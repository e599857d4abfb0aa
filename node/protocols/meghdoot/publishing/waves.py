"""Detection that a message has spread over a whole region: waves, and their confirmations.

A wave spreads over a region from zone to zone, and each zone answers when all zones to which it forwarded the
wave, and all subscribers that it notified, have answered (Dijkstra and Scholten's termination detection). The
answer contains the number of points of the region visited from there on. Zones are split and taken over while
waves spread, and peers learn of it one after the other; so only a sum equal to the number of points of the
whole region proves that no zone was left out (`region.points_in`). Otherwise the origin sends the wave again.

A zone that does not answer in time is left out of the sum; on busy processors the timeout is longer.
Subscribers that do not answer may only be out of reach: after half of that time the overlay is asked to find
a way to them, and then they are notified once more. The same holds for zones, whose answers take longer, if
nothing at all arrives from there. Subscribers that still do not answer are reported to the publisher, which
notifies them itself, so that a zone never waits for one that may have failed. A publisher that sends a wave
again may have missed the answer: a way to it is searched, too.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from node.core.peers.peer_pool import Address
from node.protocols.meghdoot.collected_answers import CollectedAnswers
from node.protocols.meghdoot.messages import (
    Confirm,
    EventName,
    RootConfirm,
    SubscriberGeneration,
    Undelivered,
    Visited,
)
from node.protocols.meghdoot.parameters import MeghdootParameters
from node.protocols.meghdoot.region import PRIME
from node.protocols.meghdoot.transport import OverlayTransport

WAVES_MAX = 65_536
Key = tuple[int, int, int, int]
"""A wave at a zone: origin, number, attempt, zone."""
Again = Callable[[Address, int, int], None]
"""Notifies a subscriber (address, process generation) again, some microseconds after the wave arrived."""
Onward = Callable[[int, int], Any]
"""Returns the message to forward to a zone (id), some microseconds after the wave arrived."""


@dataclass(slots=True)
class Wave:
    """A wave at one zone.

    children: zones to which it was forwarded and that have not answered, with their holders; told:
    subscribers that have not answered, with their process generations. passed_us, told_us: time of the last
    repetition to any of them; again, onward: functions for that; is_looking: the overlay searches a way to
    the subscribers.
    """

    key: Key
    parent: Address
    is_root: bool
    publisher: Address
    until_us: int
    points: int
    doubts: int
    children: dict[int, Address] = field(default_factory=dict)
    told: dict[Address, int] = field(default_factory=dict)
    passed_us: int = 0
    told_us: int = 0
    again: Again | None = None
    onward: Onward | None = None
    is_looking: bool = False
    undelivered: int = 0
    late_us: int = 0

    @property
    def is_done(self) -> bool:
        """Whether all have answered."""
        return not self.children and not self.told


class Waves:
    """All pending waves of a peer. answers: to those that forwarded them."""

    def __init__(
        self, parameters: MeghdootParameters, mail: OverlayTransport, answers: CollectedAnswers
    ) -> None:
        self._parameters = parameters
        self._silent_us = parameters.heartbeat_us * 5 // 4
        self._mail = mail
        self._waves: dict[Key, Wave] = {}
        self._senders: dict[Key, Wave] = {}  # by the child's key
        self._waiting: dict[tuple[Address, int, int], list[Wave]] = {}  # by subscriber and event
        self._answers = answers

    def answer(self, wave: Wave) -> None:
        """Queue the answer to the peer that forwarded the wave."""
        origin, number, attempt, zone = wave.key
        points = wave.points % PRIME
        late_us = max(wave.late_us, self._mail.own_late_us)
        doubts = min(wave.doubts, 65_535)
        visited = Visited(origin, number, attempt, zone, points, wave.undelivered, doubts, late_us)
        self._answers.add(wave.parent, RootConfirm if wave.is_root else Confirm, visited)

    def is_open(self, key: Key, parent: Address) -> bool:
        """Return whether a wave that this parent forwarded is pending, so that an answer will follow."""
        wave = self._waves.get(key)
        return wave is not None and wave.parent == parent

    def begin(self, wave: Wave) -> None:
        """Add a wave that was received and forwarded; answer at once if all have answered."""
        if wave.key[2] and wave.is_root:
            self._mail.miss(wave.publisher)
        if wave.is_done or len(self._waves) >= WAVES_MAX:
            self.answer(wave)
            return
        self._waves[wave.key] = wave
        origin, number, attempt, _ = wave.key
        for child in wave.children:
            self._senders[origin, number, attempt, child] = wave
        for address in wave.told:
            self._waiting.setdefault((address, origin, number), []).append(wave)

    def confirmed(self, visited: Visited) -> None:
        """Process a child's answer."""
        key = visited.stream, visited.first_seq, visited.attempt, visited.zone
        wave = self._senders.pop(key, None)
        if wave is not None:
            wave.children.pop(visited.zone, None)
            wave.points += visited.points
            wave.undelivered += visited.undelivered
            wave.doubts += visited.doubts
            wave.late_us = max(wave.late_us, visited.late_us)
            self._end_if_done(wave)

    def notified(self, subscriber: Address, event: EventName) -> None:
        """Process that a subscriber has an event that was for one of its process generations."""
        key = subscriber, event.stream, event.first_seq
        for wave in self._waiting.pop(key, ()):
            if wave.told.get(subscriber, 0) > event.life:
                self._waiting.setdefault(key, []).append(wave)
            else:
                wave.told.pop(subscriber, None)
                self._end_if_done(wave)

    def _end_if_done(self, wave: Wave) -> None:
        if wave.is_done and self._waves.pop(wave.key, None) is not None:
            self.answer(wave)

    # --- Time

    def tick(self) -> None:
        """Stop waiting for late zones, and, after a shorter time, for late subscribers."""
        now_us = self._mail.now_us - self._mail.late_us
        timeout_us, patience_us = self._parameters.wave_timeout_us, self._parameters.retransmit_us
        for wave in list(self._begun_before(now_us + timeout_us - patience_us // 2)):
            begun_us = wave.until_us - timeout_us
            if wave.children and wave.onward is not None:
                self._forward_again(wave, wave.onward, begun_us)
            if wave.told:
                self._notify_again(wave, begun_us)
                if now_us >= max(begun_us + patience_us, wave.told_us + patience_us // 2):
                    self._give_up_subscribers(wave)
            if wave.until_us <= now_us:
                self._give_up_children(wave)
            self._end_if_done(wave)

    def _begun_before(self, until_us: int) -> Iterator[Wave]:
        for wave in self._waves.values():
            if wave.until_us > until_us:
                return
            yield wave

    def _forward_again(self, wave: Wave, onward: Onward, begun_us: int) -> None:
        """Forward again to zones to which a way was found since; search a way to silent ones."""
        since_us = max(begun_us, wave.passed_us)
        for zone, address in wave.children.items():
            if self._mail.has_way_since(address, since_us):
                wave.passed_us = self._mail.now_us
                self._mail.send(address, onward(zone, self._mail.now_us - begun_us))
            elif self._mail.is_silent(address, self._silent_us) and not self._mail.is_failed(address):
                self._mail.miss(address)

    def _notify_again(self, wave: Wave, begun_us: int) -> None:
        """Notify again subscribers to which a way was found since; search a way once."""
        since_us = max(begun_us, wave.told_us)
        for address, life in wave.told.items():
            if self._mail.has_way_since(address, since_us):
                if wave.again is not None:
                    wave.told_us = self._mail.now_us
                    wave.again(address, life, self._mail.now_us - begun_us)
            elif not wave.is_looking:
                self._mail.miss(address)
        wave.is_looking = True

    def _give_up_subscribers(self, wave: Wave) -> None:
        origin, number, attempt, zone = wave.key
        rows = tuple(SubscriberGeneration(address, life) for address, life in wave.told.items())
        for each in rows:
            self._mail.miss(each.address)
            waiting = self._waiting.get((each.address, origin, number), [])
            if wave in waiting:
                waiting.remove(wave)
            if not waiting:
                self._waiting.pop((each.address, origin, number), None)
        wave.told.clear()
        wave.undelivered += len(rows)
        if attempt:
            self._mail.miss(wave.publisher)
        self._mail.send(wave.publisher, Undelivered(origin, number, attempt, zone, rows))

    def _give_up_children(self, wave: Wave) -> None:
        origin, number, attempt, _ = wave.key
        for child in wave.children:
            self._senders.pop((origin, number, attempt, child), None)
        wave.children.clear()
