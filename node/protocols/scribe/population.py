"""Many Scribe nodes in a flat network with a complete overlay: join, multicast, inspect.

For experiments of the papers' size (100,000 nodes). The nodes are `ScribeNode`s with all their layers; only
their joins of the ring are left out (`node.protocols.pastry.direct`), and their timers, so that nothing
happens unrequested. Nodes are numbered in the order of their ids, and these numbers are their addresses.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from node.core import machine as m
from node.core.deliveries import RecordKind
from node.core.peers.peer_pool import Address
from node.protocols.overlay.node import unplanned_spec
from node.protocols.pastry.direct import DirectOverlay, Proximity
from node.protocols.pastry.messages import Route
from node.protocols.reachability.messages import Ping
from node.protocols.reachability.nodes import NodeHandle, id_of
from node.protocols.scribe.messages import Join, JoinAt, Leave, Multicast, Offload, topic_key
from node.protocols.scribe.node import ScribeNode
from node.sim.flat_network import FlatNetwork

LONG_US = 3_600_000_000
"""Longer than any run: timeouts never expire."""
QUIET: Mapping[str, Any] = {
    "heartbeat_us": 0,
    "join_retry_us": LONG_US,
    "retransmit_us": LONG_US,
    "probe_timeout_us": 60_000_000,
    "replicas": 0,
}
"""Parameters without periodic messages, as in the papers' experiments."""
SETTLE_US = 60_000_000
"""Longer than any message takes through a tree."""
EVENT = b"event"
JOINING = frozenset({Join, JoinAt, Leave, Offload})
"""Messages that change a tree; the papers have no answers to them."""


@dataclass(slots=True)
class MulticastResult:
    """Result of a multicast.

    edges: sender and receiver of each message; came: members and their delays in microseconds.
    """

    root: Address
    edges: list[tuple[Address, Address]] = field(default_factory=list)
    came: list[tuple[Address, int]] = field(default_factory=list)


class Population:
    """A set of Scribe nodes. `network` counts their messages.

    probes: number of measurements of delays while nodes joined. joins: sender and receiver of each message
    that changed a tree. proximity: distances between the nodes. on_done: called with the number of finished
    nodes.
    """

    def __init__(
        self,
        count: int,
        proximity: Proximity,
        rng: m.Randomness,
        parameters: Mapping[str, Any] | None = None,
        on_done: Callable[[int], None] = lambda _: None,
    ) -> None:
        self.network = FlatNetwork(proximity.delay_between(), self._on_effect)
        self.proximity = proximity
        self.nodes: list[ScribeNode] = []
        self._tree: MulticastResult | None = None
        self._began_us = 0
        self.probes = 0
        self.joins: list[tuple[Address, Address]] = []
        self._contacted: dict[Address, None] = {}
        used = {**QUIET, **(parameters or {})}
        names = sorted((f"node-{number}" for number in range(count)), key=id_of)
        self.handles = [NodeHandle(id_of(name), address) for address, name in enumerate(names)]
        for handle, name in zip(self.handles, names, strict=True):
            spec = unplanned_spec("scribe", "member", name, handle.address, parameters=used)
            self.nodes.append(ScribeNode(spec, rng))
        pastry = self.nodes[0].parameters
        self.overlay = DirectOverlay(self.handles, proximity, pastry.b, pastry.leaf_set)
        for done, node in enumerate(self.nodes, 1):
            self.overlay.settle(node.pastry)
            self.network.add(node.pastry.own.address, node)
            on_done(done)

    def root_of(self, stream: int) -> Address:
        """Return the node that is closest to a stream's topic."""
        return self.overlay.closest(topic_key(stream)).address

    def join(self, stream: int, members: Sequence[Address], batch: int = 0) -> None:
        """Make nodes join a topic, `batch` at a time (0: all), and wait until they have."""
        self._contacted.clear()
        self.network.watch = self._on_join_message
        step = batch or max(1, len(members))
        for first in range(0, len(members), step):
            for address in members[first : first + step]:
                self.network.act(address, lambda node: node.follow(stream))
            self.settle()
        self.network.watch = None

    def _on_join_message(self, source: Address, target: Address, messages: Sequence[Any]) -> None:
        self._contacted[target] = None
        for message in messages:
            kind = type(message.message) if type(message) is Route else type(message)
            self.probes += kind is Ping
            if kind in JOINING:
                self.joins.append((source, target))

    def tend(self, stream: int) -> None:
        """Make the nodes of the last joined topic check their place in its tree until no message is sent.

        Nodes in a run do so with every tree heartbeat.
        """
        key = topic_key(stream)
        before = -1
        while self.network.sent != before:
            before = self.network.sent
            for address in self._contacted:
                self.network.act(address, lambda node: node.tend(key))
            self.settle()

    def multicast(self, stream: int) -> MulticastResult:
        """Make the root of a topic publish one event, and wait until it is delivered everywhere."""
        tree = self._tree = MulticastResult(self.root_of(stream))
        self._began_us = self.network.clock.now_us
        self.network.watch = self._on_multicast
        self.network.act(tree.root, lambda node: node.publish(stream, 1, EVENT, self._began_us))
        self.settle()
        self.network.watch, self._tree = None, None
        return tree

    def children(self) -> tuple[list[int], list[int]]:
        """Return per node the number of its nonempty children tables, and of their entries."""
        tables = [[len(topic.children) for topic in node.trees.topics.values()] for node in self.nodes]
        return [sum(map(bool, each)) for each in tables], [sum(each) for each in tables]

    def settle(self) -> None:
        """Run until no messages are in transit."""
        self.network.run(self.network.clock.now_us + SETTLE_US)

    def _on_multicast(self, source: Address, target: Address, messages: Sequence[Any]) -> None:
        assert self._tree is not None
        self._tree.edges += ((source, target) for each in messages if type(each) is Multicast)

    def _on_effect(self, address: Address, time_us: int, effect: m.Effect) -> None:
        if self._tree is not None and type(effect) is m.Record and effect.kind == RecordKind.DELIVERED:
            self._tree.came.append((address, time_us - self._began_us))
