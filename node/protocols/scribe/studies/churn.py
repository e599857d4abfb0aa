"""Delivery when nodes come and go, and when transit links are cut: not measured in the papers.

The overlay is complete at first, with all timers running. Under churn every node except the publishers lives
for an exponentially distributed time; then another one takes its place and its topics, joining through the
nearest node. In the other case all links of one transit domain to others are cut for a minute; routes do not
change meanwhile, as they would not between domains.

Both variants of repair are run: exactly-once, with positions in joins and replicated roots (draft of 2001,
3.5), and best-effort, without stored events (2002, III).
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from operator import methodcaller
from typing import Any

import numpy as np

from node.core import machine as m
from node.core.deliveries import RecordKind
from node.core.peers.peer_pool import Address
from node.core.study import RouterPaths, StudyContext
from node.protocols.overlay.node import unplanned_spec
from node.protocols.pastry.direct import DirectOverlay
from node.protocols.pastry.messages import Route
from node.protocols.reachability.nodes import NodeHandle, id_of
from node.protocols.scribe.messages import Multicast, Publish, Published, Replicate, Replicated
from node.protocols.scribe.node import ScribeNode
from node.protocols.scribe.studies.parameters import LAN_US, ChurnParameters
from node.sim.flat_network import FlatNetwork
from node.sim.proximity import Routers
from node.sim.quiet import cyclic_gc_disabled

SECOND_US = 1_000_000
MINUTE_S = 60
WARM_S = 30
"""Time for members to join."""
GRACE_S = 60
"""Time for the last events to arrive."""
EVENT = b"event"
EVENTS = frozenset({Multicast, Publish, Published, Replicate, Replicated})
"""Messages that are not maintenance."""
VARIANTS: Mapping[str, dict[str, Any]] = {"exactly-once": {}, "best-effort": {"delivery": "best-effort"}}


def execute(parameters: ChurnParameters, given: StudyContext) -> None:
    """Run all session lengths, and the cut, with both variants."""
    network = given.routers()
    sessions = [minutes for minutes in (5, 15, 30, 60, 120) if minutes >= parameters.session_min_min]
    cases = [(minutes, variant) for minutes in (*sessions, 0) for variant in VARIANTS]
    with cyclic_gc_disabled():
        for number, (minutes, variant) in enumerate(cases):
            what = f"sessions of {minutes} min" if minutes else "a cut"
            scenario = Scenario(parameters, given, network, minutes, variant)
            for second in scenario.run():
                part = second / (scenario.duration_s + WARM_S + GRACE_S)
                given.report(f"{what}, {variant}", (number + part) / len(cases))
            given.write("scenarios", {name: [value] for name, value in scenario.result().items()})


def settings(parameters: ChurnParameters) -> dict[str, Any]:
    """Return timeouts that fit delays of a second and more."""
    beat_us = parameters.heartbeat_us
    return {
        "heartbeat_us": beat_us,
        "heartbeat_timeout_us": beat_us * 5 // 2,
        "probe_timeout_us": 4 * SECOND_US,
        "join_timeout_us": 10 * SECOND_US,
        "direct_again_us": 6 * beat_us,
        "tick_us": SECOND_US,
        "tree_heartbeat_us": beat_us,
        "tree_timeout_us": beat_us * 5 // 2,
        "refresh_us": 2 * beat_us,
        "join_retry_us": 8 * SECOND_US,
        "retransmit_us": 8 * SECOND_US,
        "replicate_us": SECOND_US,
    }


class Scenario:
    """One session length (0: a cut instead) with one variant of repair."""

    def __init__(
        self,
        parameters: ChurnParameters,
        given: StudyContext,
        network: RouterPaths,
        minutes: int,
        variant: str,
    ) -> None:
        self.duration_s = parameters.duration_us // SECOND_US
        self._parameters, self._given, self._minutes, self._variant = parameters, given, minutes, variant
        self._rng = np.random.default_rng(given.seed)
        self._paths = network
        self._crossing = network.crossing(network.transit_links_of(0))
        self._settings = settings(parameters) | VARIANTS[variant]
        count = parameters.nodes
        deaths = 2 * count * (self.duration_s + WARM_S) // (MINUTE_S * minutes) + 100 if minutes else 0
        self._routers = self._rng.integers(0, network.count, count + deaths)
        where = Routers(self._paths, self._routers, LAN_US, self._rng)
        self._where = where
        self._network = FlatNetwork(where.delay_between(), self._on_effect)
        self._network.watch = self._on_message
        self._machines: dict[Address, ScribeNode] = {}
        self._topics: dict[Address, Sequence[int]] = {}
        self._born_s: dict[Address, int] = {}
        self._death_s: dict[Address, float] = {}
        self._gone_s: dict[Address, int] = {}
        self._joining: list[Address] = []
        self._next = count
        self._maintenance = 0
        self._published_s: dict[int, list[int]] = defaultdict(list)
        self._since: dict[tuple[Address, int], int] = {}
        self._delivered_us: dict[tuple[Address, int], dict[int, int]] = defaultdict(dict)
        self._orphans: dict[tuple[Address, int], int] = {}
        self._repairs_s: list[int] = []
        self._begin()

    # --- Nodes

    def _begin(self) -> None:
        count, topics = self._parameters.nodes, self._parameters.topics
        handles = [NodeHandle(id_of(f"node-{address}"), address) for address in range(count)]
        ordered = sorted(handles, key=lambda each: each.id)
        routers = self._routers[[handle.address for handle in ordered]]
        proximity = Routers(self._paths, routers, LAN_US, self._rng)
        overlay = DirectOverlay(handles, proximity, 4, 16)
        wanted: dict[Address, list[int]] = defaultdict(list)
        for topic in range(topics):
            size = max(2, int((count - topics) * (topic + 1) ** -1.25 + 0.5))
            for address in self._rng.choice(np.arange(topics, count), size, replace=False).tolist():
                wanted[address].append(topic)
        for address in range(count):
            self._make(address, None, wanted[address])
            overlay.settle(self._machines[address].pastry)
            self._network.start(address, self._machines[address])

    def _make(self, address: Address, contact: Address | None, topics: Sequence[int]) -> None:
        contacts = () if contact is None else (contact,)
        name = f"node-{address}"
        spec = unplanned_spec("scribe", "member", name, address, contacts=contacts, parameters=self._settings)
        self._machines[address] = ScribeNode(spec, self._given.rng)
        self._topics[address] = topics
        self._born_s[address] = self._now_s
        self._joining.append(address)
        if self._minutes and address >= self._parameters.topics:  # publishers stay
            self._death_s[address] = self._now_s + self._rng.exponential(self._minutes * MINUTE_S)

    @property
    def _now_s(self) -> int:
        return self._network.clock.now_us // SECOND_US

    def _replace(self, address: Address) -> None:
        """Kill a node and start another one in its place."""
        del self._death_s[address]
        self._gone_s[address] = self._now_s
        for key, topic in self._machines[address].trees.topics.items():
            for child in topic.children:
                if child in self._network.nodes:
                    self._orphans[child, key] = self._now_s
        self._network.kill(address)
        alive = np.fromiter(self._network.nodes, np.int64)
        newcomer, self._next = self._next, self._next + 1
        contact = int(self._where.nearest(np.array([newcomer]), alive)[0])
        self._make(newcomer, contact, self._topics[address])
        self._network.start(newcomer, self._machines[newcomer])

    # --- Time

    def run(self) -> Iterator[int]:
        """Run the scenario; yield after each second."""
        cut_from = WARM_S + self.duration_s // 3
        for second in range(WARM_S + self.duration_s + GRACE_S):
            is_measured = WARM_S <= second < WARM_S + self.duration_s
            if is_measured and self._next < len(self._routers):
                for address in [each for each, dies_s in self._death_s.items() if dies_s <= second]:
                    self._replace(address)
            if not self._minutes and second in {cut_from, cut_from + MINUTE_S}:
                self._cut(is_cut=second == cut_from)
            self._follow()
            if is_measured:
                self._publish()
            self._record_repairs()
            self._network.run((second + 1) * SECOND_US)
            yield second

    def _cut(self, *, is_cut: bool) -> None:
        crossing, routers = self._crossing, self._routers
        if is_cut:
            self._network.reaches = lambda a, b: not crossing[routers[a], routers[b]]
        else:
            self._network.reaches = None

    def _follow(self) -> None:
        self._joining = [each for each in self._joining if each in self._network.nodes]
        for address in self._joining:
            if self._machines[address].pastry.is_active:
                for stream in self._topics[address]:
                    self._network.act(address, methodcaller("follow", stream))
        self._joining = [each for each in self._joining if not self._machines[each].pastry.is_active]

    def _publish(self) -> None:
        for stream in range(self._parameters.topics):
            self._published_s[stream].append(self._now_s)
            publish = methodcaller("publish", stream, 1, EVENT, self._network.clock.now_us)
            self._network.act(stream, publish)

    def _record_repairs(self) -> None:
        """Record the repair of nodes that have a new parent or are the root."""
        nodes = self._network.nodes
        for (address, key), since_s in list(self._orphans.items()):
            topic = self._machines[address].trees.topics.get(key)
            if address not in nodes or topic is None or not (topic.is_member or topic.children):
                del self._orphans[address, key]
            elif topic.is_root or (topic.parent is not None and topic.parent.address in nodes):
                self._repairs_s.append(self._now_s - since_s)
                del self._orphans[address, key]

    # --- Observation

    def _on_message(self, source: Address, target: Address, messages: Sequence[Any]) -> None:
        for message in messages:
            kind = type(message.message) if type(message) is Route else type(message)
            self._maintenance += kind not in EVENTS

    def _on_effect(self, address: Address, time_us: int, effect: m.Effect) -> None:
        if type(effect) is m.Record:
            if effect.kind == RecordKind.SUBSCRIBED:
                if not self._since.get((address, effect.stream)):
                    self._since[address, effect.stream] = effect.first_seq
            elif effect.kind == RecordKind.DELIVERED:
                got = self._delivered_us[address, effect.stream]
                for seq in range(effect.first_seq, effect.first_seq + effect.count):
                    got.setdefault(seq, time_us)

    def result(self) -> dict[str, Any]:
        """Return the counts of due and delivered events, delays, repairs and maintenance messages.

        Events are due at members that stay for the grace time.
        """
        due = came = 0
        late_s: list[float] = []
        for (address, stream), first in self._since.items():
            gone_s = self._gone_s.get(address, WARM_S + self.duration_s + GRACE_S)
            for seq, published_s in enumerate(self._published_s[stream], 1):
                if seq >= first and published_s + GRACE_S <= gone_s:
                    due += 1
                    got_us = self._delivered_us[address, stream].get(seq)
                    if got_us is not None:
                        came += 1
                        late_s.append(got_us / SECOND_US - published_s)
        seconds = (WARM_S + self.duration_s + GRACE_S) * self._parameters.nodes
        repairs = self._repairs_s or [0]
        return {
            "session_min": self._minutes,
            "variant": self._variant,
            "deaths": len(self._gone_s),
            "due": due,
            "came": came,
            "delay_median_s": float(np.median(late_s)),
            "delay_p99_s": float(np.percentile(late_s, 99)),
            "repairs": len(self._repairs_s),
            "repair_median_s": float(np.median(repairs)),
            "repair_p95_s": float(np.percentile(repairs, 95)),
            "unrepaired": len(self._orphans),
            "maintenance_per_s": self._maintenance / seconds,
        }
