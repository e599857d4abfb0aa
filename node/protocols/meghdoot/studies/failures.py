"""Missed and late events when part of all peers fails at once: the paper does not cover failures.

Peers join and subscribe; then all timers run, events are published at a steady rate, and at one moment some
peers are killed, except publishers. Each remaining subscriber must get every event that one of its
subscriptions matches. Variants: the paper's best effort without copies, with mirror images, and as by
default, with publishers that keep events until they are confirmed everywhere, and subscribers that repeat
their subscriptions. A subscription is counted as lost if no peer has a copy after the failure; events for it
are missed until it is repeated.
"""

from collections.abc import Callable, Mapping
from copy import deepcopy
from itertools import islice
from typing import Any

import numpy as np

from node.core import machine as m
from node.core.content.content_matching import EventIndex
from node.core.content.event_values import EventValues
from node.core.content.subscription_draws import SubscriptionDraws
from node.core.deliveries import RecordKind
from node.core.machine import Randomness
from node.core.peers.peer_pool import Address
from node.core.study import StudyContext
from node.protocols.meghdoot.parameters import MeghdootParameters
from node.protocols.meghdoot.studies.parameters import FailuresParameters
from node.protocols.meghdoot.studies.peers import Peers, quotes
from node.sim.quiet import cyclic_gc_disabled

SECOND_US = 1_000_000
WARM_S = 5
"""Time with all timers running, before the first event."""
GRACE_S = 60
"""Time for the last events to arrive: longer than subscribers take to repeat what was lost."""
SHORT_US = 100_000
"""Longer than a join or a subscription takes without failures."""
LATE_US = 1_000_000
"""Longer than an event takes without failures."""
PUBLISHERS = 10
"""Number of publishers: the first peers."""
_USUAL = MeghdootParameters()
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "no copies": {"delivery": "best-effort", "mirror": False},
    "mirror": {"delivery": "best-effort", "mirror": True},
    "mirror, confirmed, repeated": {
        name: getattr(_USUAL, name) for name in ("delivery", "mirror", "refresh_us", "expire_us")
    },
}


def execute(parameters: FailuresParameters, given: StudyContext) -> None:
    """Run all variants, with the same peers, subscriptions, events and failing peers."""
    with cyclic_gc_disabled():
        for number, (name, variant) in enumerate(VARIANTS.items()):

            def tell(doing: str, done: float, number: int = number, name: str = name) -> None:
                given.report(f"{name}: {doing}", (number + done) / len(VARIANTS))

            scenario = _Scenario(parameters, given, deepcopy(given.rng), variant)
            scenario.run(tell)
            given.write("events", {"variant": [name] * len(scenario.published_us), **scenario.events()})
            given.put(**{f"{key} {name}": value for key, value in scenario.numbers().items()})


class _Scenario:
    """One variant. published_us: publication time of each event."""

    def __init__(
        self,
        parameters: FailuresParameters,
        given: StudyContext,
        rng: Randomness,
        variant: Mapping[str, Any],
    ) -> None:
        self._parameters = parameters
        self._rng = np.random.default_rng(given.seed)
        workload, rows = quotes(False, parameters.file, given)
        self._events = EventValues(workload, given.seed, rows=rows)
        drawn = SubscriptionDraws(workload, self._events).draw(parameters.subscriptions, self._rng)
        self._drawn = drawn.first(parameters.subscriptions)
        beats = {
            "heartbeat_us": parameters.heartbeat_us,
            "heartbeat_timeout_us": 3 * parameters.heartbeat_us,
            "tick_us": SECOND_US // 2,
        }
        self._peers = Peers(workload, rng, {**beats, **variant}, self._on_effect, quiet_us=SHORT_US)
        self._subscribers: list[Address] = []
        self._names: list[tuple[int, int]] = []
        self._delivered_us: dict[tuple[int, int, Address], int] = {}
        self._failed_us = 0
        self._lost: set[int] = set()  # no remaining peer had a copy of these subscriptions
        self.published_us: list[int] = []

    def _on_effect(self, address: Address, time_us: int, effect: m.Effect) -> None:
        if isinstance(effect, m.Record) and effect.kind == RecordKind.DELIVERED:
            self._delivered_us.setdefault((effect.stream, effect.first_seq, address), time_us)

    # --- Execution

    def run(self, tell: Callable[[str, float], None]) -> None:
        """Run the scenario from the first peer to the last event."""
        parameters, peers = self._parameters, self._peers
        ranges = zip(self._drawn.low.tolist(), self._drawn.high.tolist(), strict=True)
        each = -(-parameters.subscriptions // parameters.peers)
        for number in range(parameters.peers):
            peers.join()
            for low, high in islice(ranges, each):
                self._subscribers.append(peers.subscribe(tuple(zip(low, high, strict=True))))
            tell(f"{number + 1} of {parameters.peers} peers", number / parameters.peers / 2)
        peers.settle(WARM_S * SECOND_US)
        gap_us = int(SECOND_US / parameters.rate_per_s)
        before = int(parameters.before_s * parameters.rate_per_s)
        count = before + int(parameters.after_s * parameters.rate_per_s)
        for number in range(count):
            if number == before:
                self._fail()
            self._publish(number, gap_us)
            tell(f"{number + 1} of {count} events", 0.5 + number / count / 2)
        peers.settle(GRACE_S * SECOND_US)

    def _fail(self) -> None:
        self._failed_us = self._peers.network.clock.now_us
        peers = self._parameters.peers
        victims = self._rng.permutation(np.arange(PUBLISHERS + 1, peers + 1))
        for address in victims[: round(peers * self._parameters.failing_percent / 100)].tolist():
            self._peers.kill(address)
        brokers = (node.broker for node in self._peers.nodes.values())
        stores = (store for each in brokers for store in (each.keeping.subscriptions, each.keeping.copies))
        known = {update.key for store in stores for update in store}
        self._lost = {
            number
            for number, subscriber in enumerate(self._subscribers)
            if subscriber in self._peers.nodes and (subscriber, number) not in known
        }

    def _publish(self, number: int, gap_us: int) -> None:
        publisher = number % PUBLISHERS + 1
        self.published_us.append(self._peers.network.clock.now_us)
        self._names.append((publisher, self._peers.publish(publisher, self._events.one(number))))
        self._peers.settle(gap_us)

    # --- Results

    def events(self) -> dict[str, Any]:
        """Return per event: seconds since the failure, subscribers that must get it, missed and late ones.

        missed_lost: those missed whose matching subscriptions were all lost.
        """
        count = len(self.published_us)
        values = np.stack([self._events.one(number) for number in range(count)])
        domains = [(each.low, each.high) for each in self._events.attributes]
        # whether a subscription of each subscriber that must get an event survived
        wanted: list[dict[Address, bool]] = [{} for _ in range(count)]
        for subscriptions, events in EventIndex(domains, values.T).matches(
            self._drawn.low.T, self._drawn.high.T
        ):
            for subscription, event in zip(subscriptions.tolist(), events.tolist(), strict=True):
                subscriber = self._subscribers[subscription]
                if subscriber in self._peers.nodes:
                    survived = wanted[event].get(subscriber, False) or subscription not in self._lost
                    wanted[event][subscriber] = survived
        missed, late, missed_lost = np.zeros((3, count), np.int64)
        for number, subscribers in enumerate(wanted):
            for subscriber, survived in subscribers.items():
                came_us = self._delivered_us.get((*self._names[number], subscriber))
                missed[number] += came_us is None
                missed_lost[number] += came_us is None and not survived
                late[number] += came_us is not None and came_us > self.published_us[number] + LATE_US
        return {
            "at_s": (np.array(self.published_us) - self._failed_us) / SECOND_US,
            "wanted": np.array([len(each) for each in wanted]),
            "missed": missed,
            "missed_lost": missed_lost,
            "late": late,
        }

    def numbers(self) -> dict[str, float]:
        """Return the numbers of remaining peers, of lost subscriptions, and of all messages."""
        return {"alive": len(self._peers.nodes), "lost": len(self._lost), "sent": self._peers.network.sent}
