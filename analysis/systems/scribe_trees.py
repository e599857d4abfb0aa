"""The trees of Scribe's topics at any time of a run, from what its nodes wrote down of themselves.

Each node says when it got a parent, lost it, left, became a root or was it no more; so there are trees in
virtual time, too, and of nodes through which no event went. A process that was killed is in no tree until it
is started again. Nodes also say through whom they send what does not reach another one directly.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from analysis.messages.label import address_text, parse_key
from analysis.timelines.recovering.failover_events import log_records
from analysis.timelines.run_metadata import RunMetadata
from experiments.declared import Trait
from experiments.records.rundir import RunDirectory

ADOPTED, ROOT = "adopted", "became_root"
ALONE = ("parent_silent", "parent_lost", "parent_refused", "left", "root_no_more")
RELAY, NO_RELAY = "relay", ("no_relay", "failed")
DEPTH_MAX = 64


@dataclass(frozen=True, slots=True)
class Change:
    """A node's place in a topic's tree from `t_ns` on: its parent, or that it is a root, or neither."""

    t_ns: int
    topic: int  # the stream that goes by it
    host: str
    parent: str | None
    is_root: bool


@dataclass(frozen=True, slots=True)
class Relay:
    """Through which host another one is sent everything from `t_ns` on; None: directly."""

    t_ns: int
    host: str
    peer: str
    relay: str | None


@dataclass(frozen=True)
class Tree:
    """A topic's tree at one time."""

    parents: Mapping[str, str]
    roots: tuple[str, ...]  # more than one: a division, or a repair that goes on
    relays: Mapping[str, str] = field(default_factory=dict)  # by child, through which its parent sends to it

    @cached_property
    def children(self) -> Counter[str]:
        """How many children each node has that has any."""
        return Counter(self.parents.values())

    @property
    def nodes(self) -> frozenset[str]:
        """All nodes in it."""
        return frozenset((*self.parents, *self.parents.values(), *self.roots))

    @property
    def depth(self) -> int:
        """Edges on the longest way to a root, or to where it ends."""
        return max((sum(1 for _ in self._above(node)) for node in self.parents), default=0)

    def _above(self, node: str) -> Iterator[str]:
        for _ in range(DEPTH_MAX):
            if node not in self.parents:
                return
            node = self.parents[node]
            yield node

    def crossing(self, region_of: Mapping[str, str]) -> int:
        """Edges between regions: over so many an event has to go from one to another."""
        return sum(region_of[child] != region_of[parent] for child, parent in self.parents.items())


@dataclass(frozen=True)
class Trees:
    """All changes of all trees, and of relays, in order of time."""

    changes: tuple[Change, ...]
    relays: tuple[Relay, ...] = ()

    @property
    def topics(self) -> tuple[int, ...]:
        """The topics of which any node said something."""
        return tuple(sorted({change.topic for change in self.changes}))

    def at(self, t_ns: int, dead: frozenset[str] = frozenset()) -> dict[int, Tree]:
        """Each topic's tree at a time, without the hosts whose processes do not live then."""
        last: dict[tuple[int, str], Change] = {}
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
            found[topic] = Tree(parents, tuple(each.host for each in mine if each.is_root), relays)
        return found


def read_trees(run: RunDirectory, metadata: RunMetadata) -> Trees:
    """From the logs of all nodes; none of a run of before they said so."""
    changes: list[Change] = []
    relays: list[Relay] = []
    for host in metadata.having(Trait.SERVER):
        for record in log_records(run.log(host), (ADOPTED, ROOT, *ALONE, RELAY, *NO_RELAY)):
            if record["event"] in (RELAY, *NO_RELAY):
                relays += _relay(record, host, metadata)
            else:
                changes += _change(record, host, metadata)
    return Trees(
        tuple(sorted(changes, key=lambda change: change.t_ns)),
        tuple(sorted(relays, key=lambda relay: relay.t_ns)),
    )


def _change(record: Mapping[str, Any], host: str, metadata: RunMetadata) -> Iterator[Change]:
    topic = metadata.stream_at.get(parse_key(str(record.get("topic"))))
    if topic is not None:
        event, t_ns = record["event"], metadata.clocks.of(host).at(record["t_ns"])
        parent = _host(record, "peer", metadata) if event == ADOPTED else None
        yield Change(t_ns, topic, host, parent, event == ROOT)


def _relay(record: Mapping[str, Any], host: str, metadata: RunMetadata) -> Iterator[Relay]:
    peer = _host(record, "peer", metadata)
    if peer is not None:
        t_ns = metadata.clocks.of(host).at(record["t_ns"])
        yield Relay(t_ns, host, peer, _host(record, "relay", metadata))


def _host(record: Mapping[str, Any], name: str, metadata: RunMetadata) -> str | None:
    address = record.get(name)
    return metadata.host_at.get(address_text(address)) if isinstance(address, int) else None
