"""A publisher: it routes its events to their points, and keeps each until it is confirmed everywhere.

The paper's delivery is best effort. Here a publisher learns how much of the region was visited (`waves`). If
some of it was not visited, or was in doubt, or if there is no answer, the event is sent again at increasing
intervals. The number of unconfirmed events is bounded (`window`): the others wait here, and on busy
processors fewer are published. If all zones were visited but some subscribers did not answer, the publisher
sends the event to these itself until they answer or are given up.

A restarted publisher begins a new epoch (`node.core.epochs`). Events that were unconfirmed when it died are
lost with it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from heapq import nsmallest

from node.core.epochs import first_seq_of_epoch
from node.core.peers.peer_pool import Address
from node.protocols.meghdoot.messages import EventName, Notify, Publish, Undelivered, Visited
from node.protocols.meghdoot.parameters import MeghdootParameters
from node.protocols.meghdoot.publishing.event import EventContent, EventReader
from node.protocols.meghdoot.publishing.window import LATE_US, CongestionWindow
from node.protocols.meghdoot.region import all_points
from node.protocols.meghdoot.transport import OverlayTransport

AGAIN_MAX = 8
"""Maximum interval of attempts, in units of `retransmit`."""
ATTEMPT_MAX = 65_535
FIRST, LEAST = 64, 4
"""Initial and minimum window, in events."""
AT_ONCE = 8
"""Divisor of the window: the maximum of events that are repeated at a time."""
EARLY_US = 200_000
"""Delay of a repetition after an incomplete answer, in which peers exchange news of zones."""


@dataclass(slots=True)
class UnconfirmedEvent:
    """An event that is not confirmed everywhere. Attempts are numbered from 0.

    is_answered: some attempt has ended, whatever its result: waiting for a zone in doubt is no load.
    remaining: subscribers that have not answered, with their process generations, once all zones were
    visited. reported: by attempt and zone, reported subscribers; expected: their number in an attempt's
    answer.
    """

    seq: int
    seen: EventContent
    payload: bytes
    published_us: int
    again_us: int
    wait_us: int
    attempt: int = 0
    is_answered: bool = False
    remaining: dict[Address, int] | None = None
    reported: dict[int, dict[int, dict[Address, int]]] = field(default_factory=dict)
    expected: dict[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class MeghdootPublication:
    """A stream published here. last: its newest event; spreading: number of events without an answer."""

    stream: int
    last: int
    window: CongestionWindow
    spreading: int = 0
    heard_us: int = 0
    pending: dict[int, UnconfirmedEvent] = field(default_factory=dict)

    @property
    def settled(self) -> int:
        """The first event that is not confirmed everywhere; 0: none is pending."""
        return next(iter(self.pending), 0)


class MeghdootPublisher:
    """All streams that a peer publishes. epoch: number of its earlier starts.

    acknowledged: called with each event that is confirmed everywhere.
    """

    def __init__(
        self, parameters: MeghdootParameters, mail: OverlayTransport, reader: EventReader, epoch: int
    ) -> None:
        self.publications: dict[int, MeghdootPublication] = {}
        self.acknowledged: Callable[[int, int], None] = lambda stream, seq: None
        self._parameters = parameters
        self._mail = mail
        self._reader = reader
        self._epoch = epoch
        self._wait_max_us = AGAIN_MAX * parameters.retransmit_us
        self._missed: dict[Address, None] = {}  # subscribers that were sent an event again

    def has_room(self, stream: int) -> bool:
        """Return whether another event may be sent now."""
        known = self.publications.get(stream)
        if known is None:
            return True
        return len(known.pending) < self._parameters.window and known.spreading < known.window.size

    def check(self) -> None:
        """Assert that unconfirmed events are in order and counted correctly."""
        for each in self.publications.values():
            spreading = sum([not pending.is_answered for pending in each.pending.values()])
            assert each.spreading == spreading, "wrong number of events without an answer"
            assert list(each.pending) == sorted(each.pending), "events out of order"
            assert not each.pending or next(reversed(each.pending)) <= each.last, (
                "a pending event after the last one"
            )

    @property
    def is_silent(self) -> bool:
        """Whether all events are confirmed, or wait only for subscribers that have failed."""
        return all(
            pending.remaining is not None and all(map(self._mail.is_failed, pending.remaining))
            for publication in self.publications.values()
            for pending in publication.pending.values()
        )

    def publish(self, stream: int, payload: bytes) -> int:
        """Publish an event; return its number."""
        publication = self.publications.get(stream)
        if publication is None:
            window = CongestionWindow(FIRST, LEAST, self._parameters.window)
            publication = MeghdootPublication(stream, first_seq_of_epoch(self._epoch) - 1, window)
            self.publications[stream] = publication
        publication.last += 1
        now_us = self._mail.now_us
        wait_us = self._parameters.wave_timeout_us + self._parameters.retransmit_us // 2
        seen = self._reader.read(payload)
        pending = UnconfirmedEvent(publication.last, seen, payload, now_us, now_us + wait_us, wait_us)
        if self._parameters.is_confirming:
            publication.pending[pending.seq] = pending
            publication.spreading += 1
        self._send(publication, pending)
        return publication.last

    def _send(self, publication: MeghdootPublication, pending: UnconfirmedEvent) -> None:
        age_us = self._mail.now_us - pending.published_us
        message = Publish(
            publication.stream,
            pending.seq,
            pending.attempt,
            publication.settled,
            age_us,
            self._mail.own,
            pending.payload,
        )
        self._mail.route(message)

    # --- Answers

    def confirmed(self, visited: Visited) -> None:
        """Process the result of an attempt, from the zone where the wave began."""
        pending = self._pending(visited.stream, visited.first_seq)
        if pending is None or pending.remaining is not None:
            return
        is_everywhere = visited.points == all_points(pending.seen.steps)
        if is_everywhere or visited.late_us <= LATE_US:
            self._answered(self.publications[visited.stream], pending, visited.late_us)
        if visited.doubts or not is_everywhere:
            if visited.attempt == pending.attempt:
                pending.again_us = min(pending.again_us, self._mail.now_us + self._early_us(pending))
            return
        pending.expected[visited.attempt] = visited.undelivered
        self._settle(visited.stream, pending, visited.attempt)

    def _answered(self, publication: MeghdootPublication, pending: UnconfirmedEvent, late_us: int) -> None:
        """Count a wave as ended: it no longer adds load, though the event may be sent again."""
        publication.heard_us = self._mail.now_us
        if not pending.is_answered:
            pending.is_answered = True
            publication.spreading -= 1
            publication.window.answered(pending.published_us, late_us, self._mail.now_us)

    def _early_us(self, pending: UnconfirmedEvent) -> int:
        return min(EARLY_US << min(pending.attempt, AGAIN_MAX), pending.wait_us)

    def undelivered(self, message: Undelivered) -> None:
        """Process a zone's report of subscribers that did not answer."""
        pending = self._pending(message.stream, message.first_seq)
        if pending is not None and pending.remaining is None:
            lives = {each.address: each.life for each in message.subscribers}
            pending.reported.setdefault(message.attempt, {})[message.zone] = lives
            self._settle(message.stream, pending, message.attempt)

    def _settle(self, stream: int, pending: UnconfirmedEvent, attempt: int) -> None:
        """Notify the remaining subscribers, once all zones were visited and all reports have arrived."""
        zones = pending.reported.get(attempt, {})
        if sum(map(len, zones.values())) != pending.expected.get(attempt, -1):
            return
        pending.remaining = {address: life for told in zones.values() for address, life in told.items()}
        pending.again_us = self._mail.now_us
        pending.wait_us = self._parameters.retransmit_us
        self._end_if_everywhere(stream, pending)

    def notified(self, subscriber: Address, event: EventName) -> None:
        """Process that a subscriber has an event that was for one of its process generations."""
        pending = self._pending(event.stream, event.first_seq)
        if pending is not None and pending.remaining is not None:
            if pending.remaining.get(subscriber, 0) <= event.life:
                pending.remaining.pop(subscriber, None)
            self._end_if_everywhere(event.stream, pending)

    def _end_if_everywhere(self, stream: int, pending: UnconfirmedEvent) -> None:
        if not pending.remaining and self.publications[stream].pending.pop(pending.seq, None) is not None:
            self.acknowledged(stream, pending.seq)

    def _pending(self, stream: int, seq: int) -> UnconfirmedEvent | None:
        publication = self.publications.get(stream)
        return None if publication is None else publication.pending.get(seq)

    # --- Time

    def tick(self) -> None:
        """Send due events again."""
        missed, self._missed = self._missed, {}
        for address in missed:
            self._mail.miss(address)
        for publication, pending in list(self._due()):
            waited_us, pending.wait_us = pending.wait_us, min(2 * pending.wait_us, self._wait_max_us)
            pending.again_us = self._mail.now_us + pending.wait_us
            if pending.remaining is None:
                if publication.heard_us < self._mail.now_us - waited_us:
                    publication.window.unanswered(pending.published_us, self._mail.now_us)
                pending.attempt = min(pending.attempt + 1, ATTEMPT_MAX)
                self._send(publication, pending)
            elif self._mail.now_us - pending.published_us > self._parameters.gone_us:
                publication.pending.pop(pending.seq)
            else:
                self._notify(publication, pending)

    def _due(self) -> Iterator[tuple[MeghdootPublication, UnconfirmedEvent]]:
        """Yield due events, the longest due ones first, and not all at once.

        Late answers extend the wait. The oldest events are due again before the newest have had their turn.
        """
        now_us = self._mail.now_us - self._mail.late_us
        for publication in self.publications.values():
            due = (pending for pending in publication.pending.values() if pending.again_us <= now_us)
            most = max(1, int(publication.window.size / AT_ONCE))
            yield from ((publication, each) for each in nsmallest(most, due, key=lambda each: each.again_us))

    def _notify(self, publication: MeghdootPublication, pending: UnconfirmedEvent) -> None:
        """Notify the remaining subscribers; the overlay probes failed ones until they return."""
        age_us = self._mail.now_us - pending.published_us
        for address, life in (pending.remaining or {}).items():
            if not self._mail.is_failed(address):
                settled = publication.settled
                message = Notify(publication.stream, pending.seq, settled, age_us, life, pending.payload)
                self._missed[address] = None
                self._mail.send(address, message)
