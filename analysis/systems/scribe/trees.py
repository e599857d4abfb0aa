"""The trees of Scribe's topics at any time of a run, from the nodes' logs.

Each node logs when it gets or loses a parent, leaves, becomes a root or stops being one. So trees are known
in virtual time too, and for nodes that forwarded no event. A killed process is in no tree until it is
restarted. Nodes also log the relay they use to send to a node that they cannot reach directly.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from analysis.messages.label import parse_key
from analysis.timelines.log_records import log_records
from analysis.timelines.run_metadata import RunMetadata
from experiments.declared import Trait
from experiments.records.rundir import RunDirectory

ADOPTED, ROOT = "adopted", "became_root"
ALONE = ("parent_silent", "parent_lost", "parent_refused", "left", "root_no_more")
RELAY, NO_RELAY = "relay", ("no_relay", "failed")
DEPTH_MAX = 64


@dataclass(frozen=True, slots=True)
class TreeChange:
    """A node's place in a topic's tree from `t_ns` on: its parent, the root, or neither."""

    t_ns: int
    topic: int  # the number of the topic's stream
    host: str
    parent: str | None
    is_root: bool


@dataclass(frozen=True, slots=True)
class RelayChange:
    """The relay through which `host` sends to `peer` from `t_ns` on; None: directly."""

    t_ns: int
    host: str
    peer: str
    relay: str | None


@dataclass(frozen=True)
class TopicTree:
    """A topic's tree at one time."""

    parents: Mapping[str, str]
    roots: tuple[str, ...]  # more than one: a partition, or a repair in progress
    relays: Mapping[str, str] = field(default_factory=dict)  # by child: the relay from its parent

    @cached_property
    def children(self) -> Counter[str]:
        """The number of children of each node that has any."""
        return Counter(self.parents.values())

    @property
    def nodes(self) -> frozenset[str]:
        """All nodes in the tree."""
        return frozenset((*self.parents, *self.parents.values(), *self.roots))

    @property
    def depth(self) -> int:
        """The edges on the longest path upwards, to a root or to an orphan."""
        return max((sum(1 for _ in self._above(node)) for node in self.parents), default=0)

    def _above(self, node: str) -> Iterator[str]:
        for _ in range(DEPTH_MAX):
            if node not in self.parents:
                return
            node = self.parents[node]
            yield node

    def crossing(self, region_of: Mapping[str, str]) -> int:
        """Return the number of edges between regions, which each event has to cross."""
        return sum(region_of[child] != region_of[parent] for child, parent in self.parents.items())


@dataclass(frozen=True)
class TreeHistory:
    """All changes of all trees, and of relays, in order of time."""

    changes: tuple[TreeChange, ...]
    relays: tuple[RelayChange, ...] = ()

    @property
    def topics(self) -> tuple[int, ...]:
        """The topics in the nodes' logs."""
        return tuple(sorted({change.topic for change in self.changes}))

    def at(self, t_ns: int, dead: frozenset[str] = frozenset()) -> dict[int, TopicTree]:
        """Return each topic's tree at a time, without the `dead` hosts."""
        last: dict[tuple[int, str], TreeChange] = {}
        for change in self.changes:
            if change.t_ns > t_ns:
                break
            last[change.topic, change.host] = change
        standing = [change for change in last.values() if change.host not in dead]
        through = {(each.host, each.peer): each.relay for each in self.relays if each.t_ns <= t_ns}
        found = {}
        for topic in self.topics:
            mine = [change for change in standing if change.topic == topic]
            parents = {each.host: each.parent for each in mine if each.parent}
            relays = {
                child: relay for child, parent in parents.items() if (relay := through.get((parent, child)))
            }
            found[topic] = TopicTree(parents, tuple(each.host for each in mine if each.is_root), relays)
        return found


def read_trees(run: RunDirectory, metadata: RunMetadata) -> TreeHistory:
    """Read the trees from the logs of all nodes; none for runs of versions that did not log them."""
    changes: list[TreeChange] = []
    relays: list[RelayChange] = []
    for host in metadata.having(Trait.SERVER):
        for record in log_records(run.log(host), (ADOPTED, ROOT, *ALONE, RELAY, *NO_RELAY)):
            if record["event"] in (RELAY, *NO_RELAY):
                relays += _relay(record, host, metadata)
            else:
                changes += _change(record, host, metadata)
    return TreeHistory(
        tuple(sorted(changes, key=lambda change: change.t_ns)),
        tuple(sorted(relays, key=lambda relay: relay.t_ns)),
    )


def _change(record: Mapping[str, Any], host: str, metadata: RunMetadata) -> Iterator[TreeChange]:
    topic = metadata.stream_at.get(parse_key(str(record.get("topic"))))
    if topic is not None:
        event, t_ns = record["event"], metadata.clocks.clock_of_host(host).at(record["t_ns"])
        parent = metadata.host_in(record, "peer") if event == ADOPTED else None
        yield TreeChange(t_ns, topic, host, parent, event == ROOT)


def _relay(record: Mapping[str, Any], host: str, metadata: RunMetadata) -> Iterator[RelayChange]:
    peer = metadata.host_in(record, "peer")
    if peer is not None:
        t_ns = metadata.clocks.clock_of_host(host).at(record["t_ns"])
        yield RelayChange(t_ns, host, peer, metadata.host_in(record, "relay"))
