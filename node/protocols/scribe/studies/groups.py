"""Many groups on many nodes (2002, IV): delay penalties, load of nodes and of links, as in figures 7 to 14.

Groups are formed one after the other: members join, then one event is multicast. IP multicast is computed for
the same root and members: its delay is that of the unicast routes, and its packets cross each link of their
union once. The paper does not name the source; here it is the root, as in Scribe.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from node.core.study import Ints, RouterPaths, StudyContext
from node.protocols.scribe.population import MulticastResult, Population
from node.protocols.scribe.studies.parameters import GROUP_MIN, LAN_US, GroupsParameters
from node.sim.proximity import Routers
from node.sim.quiet import cyclic_gc_disabled

FLUSH = 100
"""Number of groups after which results are written."""


@dataclass(slots=True)
class _MulticastRoutes:
    """Senders and receivers as routers: the root of each group, and the edges and members of all groups."""

    roots: list[int]
    above: list[Ints]
    below: list[Ints]
    groups: list[Ints]
    members: list[Ints]


def execute(parameters: GroupsParameters, given: StudyContext) -> None:
    """Run all groups on one network."""
    with cyclic_gc_disabled():
        _Groups(parameters, given).run()


class _Groups:
    """One execution of the study."""

    def __init__(self, parameters: GroupsParameters, given: StudyContext) -> None:
        self._parameters, self._given = parameters, given
        self._network = given.routers()
        count, rng = parameters.nodes, given.generator
        self._routers = rng.integers(0, len(self._network.delays_us), count)
        self._proximity = Routers(self._network.delays_us, self._routers, LAN_US, rng)
        given.tell("building the overlay", 0.0)
        self._nodes = Population(
            count,
            self._proximity,
            given.rng,
            {"entries_max": parameters.entries_max, "collapse": parameters.collapse},
        )
        self._sent = _MulticastRoutes([], [], [], [], [])
        self._rows: list[dict[str, Any]] = []

    def run(self) -> None:
        """Form the groups, then count."""
        sizes = self._parameters.sizes()
        work, done = sum(sizes) + len(sizes) * GROUP_MIN, 0
        joins_sent = multicasts_sent = 0
        for stream, size in enumerate(sizes):
            before = self._nodes.network.sent
            members = self._given.generator.choice(self._parameters.nodes, size, replace=False)
            self._nodes.join(stream, members.tolist(), self._parameters.batch)
            if self._parameters.collapse:
                self._nodes.tend(stream)
            joined = self._nodes.network.sent
            self._look_at(stream, members, self._nodes.multicast(stream))
            joins_sent += joined - before
            multicasts_sent += self._nodes.network.sent - joined
            done += size + GROUP_MIN
            if len(self._rows) == FLUSH:
                self._flush()
            self._given.tell(f"group {stream + 1} of {len(sizes)}", done / work)
        self._flush()
        self._given.put(
            groups=len(sizes),
            members=sum(sizes),
            messages_of_joins=joins_sent,
            messages_of_multicasts=multicasts_sent,
            probes=self._nodes.probes,
        )
        self._count_entries()
        self._count_packets(self._network)

    def _look_at(self, stream: int, members: Ints, tree: MulticastResult) -> None:
        """Compare the delays of one multicast with those of IP multicast."""
        assert len(tree.came) == len(members), (
            f"group {stream}: {len(tree.came)} of {len(members)} members got the event"
        )
        delivered = np.array(tree.came)
        delivered = delivered[delivered[:, 0] != tree.root]
        ip_us = self._proximity.delays_us(np.full(len(delivered), tree.root), delivered[:, 0])
        edges = np.array(tree.edges).reshape(-1, 2)
        self._rows.append(
            {
                "rank": stream + 1,
                "size": len(members),
                "edges": len(edges),
                "rad": delivered[:, 1].mean() / ip_us.mean(),
                "rmd": delivered[:, 1].max() / ip_us.max(),
            }
        )
        if stream == 0:
            self._given.write("members", {"scribe_us": delivered[:, 1], "ip_us": ip_us})
        sent, routers = self._sent, self._routers
        sent.roots.append(int(routers[tree.root]))
        sent.above.append(routers[edges[:, 0]])
        sent.below.append(routers[edges[:, 1]])
        sent.groups.append(np.full(len(delivered), stream))
        sent.members.append(routers[delivered[:, 0]])

    def _flush(self) -> None:
        if self._rows:
            self._given.write("groups", {name: [row[name] for row in self._rows] for name in self._rows[0]})
            self._rows.clear()

    def _count_entries(self) -> None:
        tables, entries = self._nodes.children()
        self._given.write("nodes", {"tables": tables, "entries": entries})

    def _count_packets(self, network: RouterPaths) -> None:
        """Count packets of one multicast to each group, over router links and over LAN links."""
        sent, nodes = self._sent, self._parameters.nodes
        above, below = np.concatenate(sent.above), np.concatenate(sent.below)
        groups, members = np.concatenate(sent.groups), np.concatenate(sent.members)
        roots = np.array(sent.roots)
        scribe = network.unicast_loads(above, below)
        ip = network.multicast_loads(sent.roots, groups, members)
        naive = network.unicast_loads(roots[groups], members)
        self._given.write("links", {"scribe": scribe, "ip": ip, "naive": naive})
        self._given.put(
            link_directions=network.directions + 2 * nodes,
            mean_link_delay_ms=network.mean_link_delay_us / 1e3,
            scribe_packets=int(scribe.sum()) + 2 * len(above),
            ip_packets=int(ip.sum()) + len(roots) + len(members),
            naive_packets=int(naive.sum()) + 2 * len(members),
        )
