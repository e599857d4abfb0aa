"""How a peer knows that what it passed on has come everywhere: waves, and their way back.

A wave spreads over a region from zone to zone, and each zone answers when all those to which it passed it on
have answered, and all subscribers that it notified (Dijkstra and Scholten's detection of termination). The
answer says how many points of the region were visited from there on: since zones are split and taken over
while waves spread, and peers learn of it one after the other, only a sum that is the whole region's proves
that nobody was left out (`region.points_in`). A wave of which that is not so is sent out once more, by
whoever began it.

Who does not answer in time is left out of the sum; where processors are short, that is later. Subscribers
that do not may only be out of reach: after half of that time the overlay is asked to find a way to them, and
as soon as there is one they are notified once more. Likewise zones, whose answers take longer, if nothing at
all comes from there. Subscribers that do not answer all the same are told to the publisher, which looks after
them itself, so that a zone never has to wait for one that may be gone. Nor may a publisher that sent
something out once more have heard the answer: a way to it is looked for, too.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from node.core.peers.peer_pool import Address
from node.protocols.meghdoot.layers import Mail
from node.protocols.meghdoot.messages import Confirm, EventName, RootConfirm, Subscriber, Undelivered, Visited
from node.protocols.meghdoot.parameters import Parameters
from node.protocols.meghdoot.region import PRIME

WAVES_MAX = 65_536
ROWS_MAX = 1_000
Key = tuple[int, int, int, int]
"""Of a wave at a zone: whose it is, its number, its attempt, the zone."""
Again = Callable[[Address, int, int], None]
"""Notifies a subscriber, of a life, once more, so many microseconds after the wave came."""
Onward = Callable[[int, int], Any]
"""The message by which something is passed on to a zone, by its id, so many microseconds after it came."""


@dataclass(slots=True)
class Wave:
    """A wave at one zone. children: zones to which it was passed on and that have not answered, with who has
    them; told: subscribers that have not, with their lives. passed_us, told_us: when any of them was sent it
    once more; again, onward: by what; is_looking: a way to the subscribers is looked for.
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
        """Whether nobody has to answer any more."""
        return not self.children and not self.told


class Waves:
    """All that are under way at a peer. answers: what `flush` sends, by to whom."""

    def __init__(self, parameters: Parameters, mail: Mail) -> None:
        self._parameters = parameters
        self._silent_us = parameters.heartbeat_us * 5 // 4
        self._mail = mail
        self._waves: dict[Key, Wave] = {}
        self._senders: dict[Key, Wave] = {}  # by the child's key
        self._waiting: dict[tuple[Address, int, int], list[Wave]] = {}  # by subscriber and event
        self.answers: dict[tuple[Address, bool], list[Visited]] = {}

    def answer(self, wave: Wave) -> None:
        """Tell whoever passed the wave on, soon."""
        origin, number, attempt, zone = wave.key
        points = wave.points % PRIME
        late_us = max(wave.late_us, self._mail.own_late_us)
        doubts = min(wave.doubts, 65_535)
        visited = Visited(origin, number, attempt, zone, points, wave.undelivered, doubts, late_us)
        self.answers.setdefault((wave.parent, wave.is_root), []).append(visited)

    def is_open(self, key: Key, parent: Address) -> bool:
        """Whether a wave is under way that this parent passed on: it will be answered."""
        wave = self._waves.get(key)
        return wave is not None and wave.parent == parent

    def begin(self, wave: Wave) -> None:
        """A wave has come, and was passed on; if there is nobody to wait for, that is the answer."""
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
        """A child's answer."""
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
        """A subscriber has an event that was for one of its lives."""
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
        """Wait no longer for those who are late: for zones, and, less long, for subscribers."""
        now_us = self._mail.now_us - self._mail.late_us
        timeout_us, patience_us = self._parameters.wave_timeout_us, self._parameters.retransmit_us
        for wave in list(self._begun_before(now_us + timeout_us - patience_us // 2)):
            begun_us = wave.until_us - timeout_us
            if wave.children and wave.onward is not None:
                self._pass_on_again(wave, wave.onward, begun_us)
            if wave.told:
                self._tell_again(wave, begun_us)
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

    def _pass_on_again(self, wave: Wave, onward: Onward, begun_us: int) -> None:
        """To zones to which a way was found since; it is looked for where not even a heartbeat came."""
        since_us = max(begun_us, wave.passed_us)
        for zone, address in wave.children.items():
            if self._mail.has_way_since(address, since_us):
                wave.passed_us = self._mail.now_us
                self._mail.send(address, onward(zone, self._mail.now_us - begun_us))
            elif self._mail.is_silent(address, self._silent_us) and not self._mail.is_failed(address):
                self._mail.miss(address)

    def _tell_again(self, wave: Wave, begun_us: int) -> None:
        """Those to whom a way was found since they were told; it is looked for once."""
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
        rows = tuple(Subscriber(address, life) for address, life in wave.told.items())
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

    def flush(self) -> None:
        """Send all answers, one message for each peer."""
        while self.answers:
            address, is_root = key = next(iter(self.answers))
            self._send(address, self.answers.pop(key), is_root=is_root)

    def flush_to(self, address: Address) -> None:
        """Send the answers for one peer, to which something goes anyway."""
        for is_root in (False, True):
            rows = self.answers.pop((address, is_root), None)
            if rows:
                self._send(address, rows, is_root=is_root)

    def _send(self, address: Address, rows: list[Visited], *, is_root: bool) -> None:
        for first in range(0, len(rows), ROWS_MAX):
            part = tuple(rows[first : first + ROWS_MAX])
            self._mail.send(address, RootConfirm(part) if is_root else Confirm(part))
