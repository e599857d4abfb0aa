"""A subscriber: it sends and repeats its subscriptions, and processes events.

It sends a subscription until it is confirmed, and again periodically. An event counts once, whichever zone
notifies of it, and only if this process generation has subscribed to it: zones may have a subscription that
has ended, or that of an earlier process generation.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from operator import attrgetter

from node.core.deliveries import RecordKind
from node.core.epochs import epoch_of
from node.core.peers.peer_pool import Address
from node.core.specification import PlannedSubscription as Asked
from node.protocols.meghdoot.collected_answers import CollectedAnswers
from node.protocols.meghdoot.messages import EventName, Notified, Notify, Store, StorePurpose, UpdateName
from node.protocols.meghdoot.parameters import MeghdootParameters
from node.protocols.meghdoot.publishing.event import EventReader
from node.protocols.meghdoot.publishing.window import CongestionWindow
from node.protocols.meghdoot.space import Range, Space
from node.protocols.meghdoot.subscriptions import Packing, SubscriptionStore, SubscriptionUpdate, version_of
from node.protocols.meghdoot.transport import OverlayTransport

DELIVERED_MAX = 1 << 20
"""Events of a stream that are remembered as delivered, if publishers do not report what is settled."""
AGAIN_MAX = 8
"""Maximum interval of repetitions, in units of `retransmit`."""
FIRST, LEAST, MOST = 8, 1, 64
"""Initial, minimum and maximum number of unanswered updates. Others wait."""
LATE_US = 1_000_000
"""Time after a confirmed end of a subscription within which the computed publication time of an event may
lie.
"""


@dataclass(slots=True)
class OwnSubscription:
    """A subscription of this peer.

    count: its updates in this process generation. ended_us: time of its confirmed end.
    """

    asked: Asked
    count: int
    is_on: bool
    asked_us: int
    due_us: int
    wait_us: int = 0
    is_confirmed: bool = False
    ended_us: int | None = None


@dataclass(slots=True)
class PublisherHistory:
    """Events of one process generation of a publisher delivered here; earlier ones than `settled` never
    arrive.
    """

    settled: int = 0
    delivered: dict[int, None] = field(default_factory=dict)

    def forget(self) -> None:
        """Make room: forget settled events, then the oldest."""
        self.delivered = {seq: None for seq in self.delivered if seq >= self.settled}
        while len(self.delivered) >= DELIVERED_MAX:
            del self.delivered[next(iter(self.delivered))]


Interest = Callable[[RecordKind, Asked], None]
Deliver = Callable[[Notify], None]


class MeghdootSubscriber:
    """Subscriptions of a peer. interest, deliver: called with what is to be recorded."""

    def __init__(
        self,
        parameters: MeghdootParameters,
        mail: OverlayTransport,
        space: Space,
        reader: EventReader,
        answers: CollectedAnswers,
        *,
        life: int,
        interest: Interest,
        deliver: Deliver,
    ) -> None:
        self.own: dict[int, OwnSubscription] = {}
        self._parameters = parameters
        self._mail = mail
        self._reader = reader
        self._life = life
        self._interest = interest
        self._deliver = deliver
        self._packing = Packing(len(space.attributes))
        self._updates = SubscriptionStore(space)
        # subscriptions with an unanswered update, and the time of the last one
        self._unanswered: dict[int, int] = {}
        self._window = CongestionWindow(FIRST, LEAST, MOST)
        self._known: dict[tuple[int, int], PublisherHistory] = {}
        self._answers = answers

    # --- Subscriptions

    def subscribe(self, asked: Asked) -> None:
        """Start or end a subscription."""
        known = self.own.get(asked.number)
        now_us = self._mail.now_us
        kind = RecordKind.SUBSCRIBING if asked.on else RecordKind.UNSUBSCRIBING
        count = known.count + 1 if known else 0
        if known is None or asked.on:
            self.own[asked.number] = OwnSubscription(asked, count, asked.on, now_us, now_us)
            self._updates.remove((self._mail.own, asked.number))
            self._updates.put(self._update_of(self.own[asked.number]))
        else:
            known.count, known.is_on, known.is_confirmed, known.due_us = count, False, False, now_us
            known.wait_us = 0
        self._interest(kind, asked)
        self._send_if_room(self.own[asked.number])

    def _send_if_room(self, own: OwnSubscription) -> None:
        number, now_us = own.asked.number, self._mail.now_us
        said_us = self._unanswered.get(number)
        if said_us is not None:
            self._window.unanswered(said_us, now_us)
        if said_us is not None or len(self._unanswered) < int(self._window.size):
            self._unanswered[number] = now_us
            self._send_update(own)

    def _send_update(self, own: OwnSubscription) -> None:
        """Send an update to the zone; it is repeated without an answer at increasing intervals."""
        now_us, retransmit_us = self._mail.now_us, self._parameters.retransmit_us
        own.wait_us = min(max(2 * own.wait_us, retransmit_us), AGAIN_MAX * retransmit_us)
        own.due_us = now_us + own.wait_us
        packed = self._packing.pack((self._update_of(own),), now_us)
        self._mail.route(Store(self._mail.own, 0, StorePurpose.INSTALL, packed))

    def _update_of(self, own: OwnSubscription) -> SubscriptionUpdate:
        asked, version = own.asked, version_of(self._life, own.count)
        ranges: tuple[Range, ...] = asked.ranges
        now_us = self._mail.now_us
        return SubscriptionUpdate(self._mail.own, asked.number, version, own.is_on, now_us, ranges)

    def leave(self) -> None:
        """End all subscriptions, since this peer leaves."""
        for own in [own for own in self.own.values() if own.is_on]:
            self.subscribe(replace(own.asked, on=False))

    def confirmed(self, words: Iterable[UpdateName]) -> None:
        """Process confirmations of updates."""
        for word in words:
            own = self.own.get(word.number)
            if own is None or word.version != version_of(self._life, own.count):
                continue
            said_us = self._unanswered.pop(word.number, None)
            if said_us is not None:
                self._window.answered(said_us, self._mail.own_late_since(said_us), self._mail.now_us)
            own.due_us, own.wait_us = self._mail.now_us + self._parameters.refresh_us, 0
            if not own.is_confirmed:
                own.is_confirmed = True
                if not own.is_on:
                    own.ended_us = self._mail.now_us
                kind = RecordKind.SUBSCRIBED if own.is_on else RecordKind.UNSUBSCRIBED
                self._interest(kind, own.asked)

    def tick(self) -> None:
        """Repeat unconfirmed updates, and those due for a refresh.

        Late answers extend the wait. If the window is small, the longest due ones are first; otherwise they
        would expire.
        """
        now_us = self._mail.now_us
        said_by_us = now_us - self._mail.late_us
        self._forget_ended(now_us - self._parameters.gone_us)
        due = [
            own
            for number, own in self.own.items()
            if own.ended_us is None and own.due_us <= (said_by_us if number in self._unanswered else now_us)
        ]
        for own in sorted(due, key=attrgetter("due_us")):
            self._send_if_room(own)

    def _forget_ended(self, until_us: int) -> None:
        for number, own in list(self.own.items()):
            if own.ended_us is not None and own.ended_us < until_us:
                del self.own[number]
                self._updates.remove((self._mail.own, number))

    # --- Events

    def notify(self, sender: Address, message: Notify) -> None:
        """Process an event."""
        if self._parameters.is_confirming:
            self._answers.add(sender, Notified, EventName(message.stream, message.first_seq, message.life))
        if message.life == self._life and self._is_new(message) and self._is_wanted(message):
            life = message.stream, epoch_of(message.first_seq)
            self._known[life].delivered[message.first_seq] = None
            self._deliver(message)

    def _is_new(self, message: Notify) -> bool:
        """Return whether the event did not arrive before; publishers report which events are settled."""
        life = message.stream, epoch_of(message.first_seq)
        known = self._known.setdefault(life, PublisherHistory())
        known.settled = max(known.settled, message.settled)
        if message.first_seq in known.delivered or message.first_seq < known.settled:
            return False
        if len(known.delivered) >= DELIVERED_MAX:
            known.forget()
        return True

    def _is_wanted(self, message: Notify) -> bool:
        """Return whether a subscription matches that was active at the latest possible publication time.

        The message's age does not include transmission delays.
        """
        seen = self._reader.read(bytes(message.payload))
        published_us = self._mail.now_us - message.age_us
        for each in self._updates.matching(seen.values):
            own = self.own[each.number]
            has_asked = own.asked_us <= published_us
            if has_asked and (own.ended_us is None or published_us <= own.ended_us + LATE_US):
                return True
        return False
