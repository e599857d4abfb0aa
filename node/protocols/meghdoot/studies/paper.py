"""Meghdoot's evaluation (5): peers contacted by events, and the distribution of load as peers join.

Subscriptions and events come one after the other; after each a peer joins with some probability until all
have joined. The paper leaves open their order, what counts as a simulation event, when loads are exchanged,
what subscribers want, what load is, and when a zone is split; `PaperParameters` offers these choices.
Subscribers, publishers and contacts of joining peers are drawn from all peers.

Counted as in the paper: the peers that an event visits, of those existing at the time; and the messages that
a peer receives for routed subscriptions and events and for spreading events, relative to all since it joined.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from node.core.content import stock_quotes
from node.core.content.content import event_ranges
from node.core.content.event_values import EventValues
from node.core.content.subscription_draws import SubscriptionDraws
from node.core.content.value_distributions import Floats
from node.core.peers.peer_pool import Address
from node.core.study import Ints, StudyContext
from node.protocols.can.messages import Route
from node.protocols.can.zones import TOP
from node.protocols.meghdoot.messages import Event, Publish, Store
from node.protocols.meghdoot.node import MeghdootNode
from node.protocols.meghdoot.region import affected
from node.protocols.meghdoot.space import Space
from node.protocols.meghdoot.studies.parameters import PaperParameters
from node.protocols.meghdoot.studies.peers import Peers, quotes
from node.sim.quiet import cyclic_gc_disabled

TELL_EACH = 500
LOOK_EACH = 10_000
"""Peers exchange loads after this many actions at the latest."""
CHECK_EACH = 100
"""One of this many events is checked against all zones."""


def execute(parameters: PaperParameters, given: StudyContext) -> None:
    """Run all subscriptions and events, and write the results."""
    with cyclic_gc_disabled():
        paper = PaperSimulation(parameters, given)
        paper.run()
        paper.write_results()


class PaperSimulation:
    """The simulation of section 5. degrees: peers of each zone."""

    def __init__(self, parameters: PaperParameters, given: StudyContext) -> None:
        self._parameters, self._given = parameters, given
        workload, rows = quotes(parameters.source == "uniform", parameters.file, given)
        if parameters.wanted == "uniform":
            workload["attributes"] = list(stock_quotes.ATTRIBUTES)
        self._events = EventValues(workload, given.seed, rows=rows)
        self._space = Space(self._events.attributes)
        drawn = SubscriptionDraws(workload, self._events).draw(parameters.subscriptions, given.generator)
        self._subscriptions = [each for wish in drawn.by_wish() for each in wish][: parameters.subscriptions]
        overlay = {
            name: getattr(parameters, name)
            for name in ("propagation", "match_cost", "load_counts", "split_rule")
        }
        self._peers = Peers(workload, given.rng, overlay, notified=parameters.notified)
        self._peers.network.watch = self._count
        self._received = np.zeros(parameters.peers + 1, np.int64)
        self._before = np.zeros(parameters.peers + 1, np.int64)  # all messages before each peer joined
        self._total = self._visits = 0
        self._checked = self._missed = 0
        self._spreading_s = 0.0  # processor time of events alone
        self._visited: list[int] = []
        self._there: list[int] = []

    def _count(self, source: Address, target: Address, messages: Sequence[Any]) -> None:
        for message in messages:
            kind = type(message)
            if kind is Event:
                self._visits += 1
            elif kind is not Route or type(message.message) not in {Publish, Store}:
                continue
            self._total += 1
            self._received[target] += 1

    def run(self, after_joins: int | None = None) -> None:
        """Execute subscriptions, events and joins: all, or until some events after the last join."""
        parameters, given, peers = self._parameters, self._given, self._peers
        peers.join()
        order = np.zeros(parameters.subscriptions + parameters.events, bool)
        order[: parameters.subscriptions] = True
        if parameters.order == "mixed":
            given.generator.shuffle(order)
        growth = 1 + parameters.load_every_percent / 100
        subscriptions, published, looked, looked_at = iter(self._subscriptions), 0, 1, 0
        for done, is_subscription in enumerate(order.tolist()):
            if after_joins is not None and len(peers.nodes) == parameters.peers:
                if after_joins == 0:
                    return
                after_joins -= not is_subscription
            before = self._total
            if is_subscription:
                peers.subscribe(next(subscriptions))
            else:
                self._publish(published)
                published += 1
            has_joins = parameters.order != "installed" or not is_subscription
            for _ in range(self._joining(self._total - before) if has_joins else 0):
                self._before[peers.join()] = self._total
                if len(peers.nodes) >= growth * looked:
                    looked, looked_at = len(peers.nodes), done
                    peers.look_round()
            if done - looked_at >= LOOK_EACH:
                looked_at = done
                peers.look_round()
            if done % TELL_EACH == 0:
                given.report(f"{published} events, {len(peers.nodes)} peers", done / len(order))

    def _joining(self, messages: int) -> int:
        """Return how many peers join after an action that took this number of messages."""
        parameters = self._parameters
        simulated = 1 if parameters.simulation_event == "action" else max(1, messages)
        drawn = int(self._given.generator.binomial(simulated, parameters.join_percent / 100))
        return min(drawn, parameters.peers - len(self._peers.nodes))

    def _publish(self, number: int) -> None:
        began_s = self._given.processor_s()
        before, values = self._visits, self._events.one(number)
        self._peers.publish(self._peers.anyone(), values)
        self._peers.settle()
        self._spreading_s += self._given.processor_s() - began_s
        visited = self._visits - before + 1
        self._visited.append(visited)
        self._there.append(len(self._peers.nodes))
        if number % CHECK_EACH == 0:
            self._checked += 1
            self._missed += abs(self._affected(values) - visited)

    def _affected(self, values: Sequence[float]) -> int:
        """Return the number of zones that an event affects, by comparison with all of them."""
        region = affected(self._space.point(event_ranges(self._space.attributes, values)))
        zones = [zone for node in self._peers.nodes.values() for zone in node.can.claims.own.versions]
        low, high = np.array([zone.low for zone in zones]), np.array([zone.high for zone in zones])
        begins = low <= np.array(region.high)
        ends = (np.array(region.low) < high) | (high == TOP)
        return int((begins & ends).all(axis=1).sum())

    def degrees(self) -> Ints:
        """Return the number of peers of each zone."""
        owners = [node.can.claims.own for node in self._peers.nodes.values()]
        return np.array([len(own.addresses) for own in owners for _ in own.versions])

    def shares(self) -> Floats:
        """Return the part of the present peers that each event visited."""
        return np.asarray(self._visited, np.float64) / np.asarray(self._there, np.float64)

    def write_results(self) -> None:
        """Write the counts."""
        given, nodes = self._given, self._peers.nodes
        given.write("events", {"visited": np.array(self._visited), "peers": np.array(self._there)})
        count = len(nodes)
        given.write(
            "peers",
            {
                "received": self._received[1 : count + 1],
                "of": self._total - self._before[1 : count + 1],
                "subscriptions": np.array([_stored(node) for node in nodes.values()]),
                "neighbours": np.array([len(node.can.claims.others) for node in nodes.values()]),
            },
        )
        given.write("zones", {"degree": self.degrees()})
        counts = [node.broker.propagation.counts for node in nodes.values()]
        given.put(
            messages=self._total,
            sent=self._peers.network.sent,
            visits=sum(each.visits for each in counts),
            repeats=sum(each.repeats for each in counts),
            strays=sum(each.strays for each in counts),
            checked=self._checked,
            missed=self._missed,
            spreading_s=self._spreading_s,
        )


def _stored(node: MeghdootNode) -> int:
    """Return the number of subscriptions in a peer's own zones."""
    return sum(node.broker.keeping.points_in(zone).shape[1] for zone in node.can.zones)
