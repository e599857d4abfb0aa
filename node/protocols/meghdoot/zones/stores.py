"""Subscriptions that peers hand to each other, each lot with a number until the other one has it.

What has no answer is given up after a while: whoever sent it does so again when it looks the next time.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from node.core.peers.peer_pool import Address
from node.protocols.can.zones import Point
from node.protocols.meghdoot.layers import Mail
from node.protocols.meghdoot.messages import Purpose, Store, StoreAt
from node.protocols.meghdoot.subscriptions import Packing, Subscription

LOT_MAX = 500
OUTSTANDING_MAX = 65_536
Done = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Lot:
    """What was handed over. done: is told when the other one has it."""

    until_us: int
    done: Done


class Stores:
    """All lots of a peer that have no answer."""

    def __init__(self, mail: Mail, packing: Packing, timeout_us: int) -> None:
        self._mail = mail
        self._packing = packing
        self._timeout_us = timeout_us
        self._last = 0
        self._lots: dict[int, Lot] = {}

    def send(
        self, address: Address, purpose: Purpose, subscriptions: Iterable[Subscription], done: Done
    ) -> int:
        """To a peer; the number of lots that it takes."""
        lots = list(_lots(subscriptions))
        left = [len(lots)]

        def one_done() -> None:
            left[0] -= 1
            if not left[0]:
                done()

        for lot in lots:
            self._mail.send(address, self._store(purpose, lot, one_done))
        return len(lots)

    def route(self, point: Point, subscription: Subscription, done: Done) -> None:
        """One, to whoever has its point."""
        self._mail.route(self._store(Purpose.RECOVERED, (subscription,), done), point)

    def copy(self, place: Point, subscription: Subscription, done: Done) -> None:
        """A copy of one, to whoever has a point."""
        store = self._store(Purpose.COPY, (subscription,), done)
        self._mail.route(
            StoreAt(store.address, store.number, self._packing.at(place, store.subscriptions)), place
        )

    def _store(self, purpose: Purpose, lot: Iterable[Subscription], done: Done) -> Store:
        self._last = self._last % 0xFFFFFFFF + 1
        self._lots[self._last] = Lot(self._mail.now_us + self._timeout_us, done)
        if len(self._lots) > OUTSTANDING_MAX:
            del self._lots[next(iter(self._lots))]
        return Store(self._mail.own, self._last, purpose, self._packing.pack(lot, self._mail.now_us))

    def stored(self, number: int) -> None:
        """The other one has a lot."""
        lot = self._lots.pop(number, None)
        if lot is not None:
            lot.done()

    @property
    def is_silent(self) -> bool:
        """Whether others have all that they were sent."""
        return not self._lots

    def check(self) -> None:
        """Assert that no more has no answer than may."""
        assert len(self._lots) <= OUTSTANDING_MAX, "more lots without an answer than may be"

    def tick(self) -> None:
        """Forget what has no answer."""
        now_us = self._mail.now_us - self._mail.late_us
        while self._lots:
            number, lot = next(iter(self._lots.items()))
            if lot.until_us > now_us:
                return
            del self._lots[number]


def _lots(subscriptions: Iterable[Subscription]) -> Iterable[tuple[Subscription, ...]]:
    every = tuple(subscriptions)
    for first in range(0, len(every), LOT_MAX):
        yield every[first : first + LOT_MAX]
