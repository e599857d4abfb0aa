"""Batches of subscriptions sent to other peers, each with a number for its acknowledgement.

An unacknowledged batch is given up after a timeout: its sender repeats it at the next check.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from node.core.peers.peer_pool import Address
from node.protocols.can.zones import Point
from node.protocols.meghdoot.messages import Store, StoreAt, StorePurpose
from node.protocols.meghdoot.subscriptions import Packing, SubscriptionUpdate
from node.protocols.meghdoot.transport import OverlayTransport

LOT_MAX = 500
OUTSTANDING_MAX = 65_536
Done = Callable[[], None]


@dataclass(frozen=True, slots=True)
class SubscriptionBatch:
    """A batch that was sent. done: called when the other peer has it."""

    until_us: int
    done: Done


class SubscriptionBatches:
    """All unacknowledged batches of a peer."""

    def __init__(self, mail: OverlayTransport, packing: Packing, timeout_us: int) -> None:
        self._mail = mail
        self._packing = packing
        self._timeout_us = timeout_us
        self._last = 0
        self._lots: dict[int, SubscriptionBatch] = {}

    def send(
        self, address: Address, purpose: StorePurpose, subscriptions: Iterable[SubscriptionUpdate], done: Done
    ) -> int:
        """Send subscriptions to a peer; return the number of batches."""
        batches = list(_lots(subscriptions))
        left = [len(batches)]

        def one_done() -> None:
            left[0] -= 1
            if not left[0]:
                done()

        for batch in batches:
            self._mail.send(address, self._store(purpose, batch, one_done))
        return len(batches)

    def route(self, subscription: SubscriptionUpdate, done: Done) -> None:
        """Route one subscription to the peer that has its point."""
        self._mail.route(self._store(StorePurpose.RECOVERED, (subscription,), done))

    def copy(self, place: Point, subscription: SubscriptionUpdate, done: Done) -> None:
        """Route a copy of one subscription to a place."""
        store = self._store(StorePurpose.COPY, (subscription,), done)
        packed = self._packing.at(place, store.subscriptions)
        self._mail.route(StoreAt(store.address, store.number, packed))

    def _store(self, purpose: StorePurpose, batch: Iterable[SubscriptionUpdate], done: Done) -> Store:
        self._last = self._last % 0xFFFFFFFF + 1
        self._lots[self._last] = SubscriptionBatch(self._mail.now_us + self._timeout_us, done)
        if len(self._lots) > OUTSTANDING_MAX:
            del self._lots[next(iter(self._lots))]
        return Store(self._mail.own, self._last, purpose, self._packing.pack(batch, self._mail.now_us))

    def stored(self, number: int) -> None:
        """Process the acknowledgement of a batch."""
        batch = self._lots.pop(number, None)
        if batch is not None:
            batch.done()

    @property
    def is_silent(self) -> bool:
        """Whether all batches are acknowledged."""
        return not self._lots

    def check(self) -> None:
        """Assert the limit of unacknowledged batches."""
        assert len(self._lots) <= OUTSTANDING_MAX, "too many unacknowledged batches"

    def tick(self) -> None:
        """Give up unacknowledged batches after the timeout."""
        now_us = self._mail.now_us - self._mail.late_us
        while self._lots:
            number, batch = next(iter(self._lots.items()))
            if batch.until_us > now_us:
                return
            del self._lots[number]


def _lots(subscriptions: Iterable[SubscriptionUpdate]) -> Iterable[tuple[SubscriptionUpdate, ...]]:
    every = tuple(subscriptions)
    for first in range(0, len(every), LOT_MAX):
        yield every[first : first + LOT_MAX]
