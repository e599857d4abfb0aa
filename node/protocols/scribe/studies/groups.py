"""Many groups on many nodes (2002, IV): delay penalties, load of nodes and of links, as in figures 7 to 14.

Groups are formed one after the other: members join, then one event is multicast. IP multicast is computed for
the same root and members: its delay is that of the unicast routes, and its packets cross each link of their
union once. The paper does not name the source; here it is the root, as in Scribe.

Packets are counted over links between routers and over the LAN links of nodes, each direction for itself.
Joins are counted without the answers of parents, which the papers do not have, and without probes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from node.core.study import Ints, StudyContext
from node.protocols.scribe.population import MulticastResult, Population
from node.protocols.scribe.studies.parameters import GROUP_MIN, LAN_US, GroupsParameters
from node.sim.proximity import Routers
from node.sim.quiet import cyclic_gc_disabled

FLUSH = 100
"""Number of groups after which results are written."""
SHAPES: Mapping[str, Mapping[str, Any]] = {
    "even": {},
    "varied": {"varied": True},
    "large": {"varied": True, "transit_domains": 51, "transit_routers": 10, "stub_domains": 20},
}
"""Fields of `topologies.generated.transit_stub.TransitStub` per network."""


@dataclass(slots=True)
class _MulticastRoutes:
    """Senders and receivers: the root of each group, and the edges and members of all groups."""

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
        self._network = given.routers(**SHAPES[parameters.network])
        count, rng = parameters.nodes, given.generator
        self._routers = rng.integers(0, self._network.count, count)
        self._proximity = Routers(self._network, self._routers, LAN_US, rng)
        given.report("building the overlay", 0.0)
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
            self._given.report(f"group {stream + 1} of {len(sizes)}", done / work)
        self._flush()
        self._given.put(
            groups=len(sizes),
            members=sum(sizes),
            messages_of_joins=joins_sent,
            messages_of_multicasts=multicasts_sent,
            probes=self._nodes.probes,
        )
        self._count_entries()
        self._count_packets()

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
        sent = self._sent
        sent.roots.append(tree.root)
        sent.above.append(edges[:, 0])
        sent.below.append(edges[:, 1])
        sent.groups.append(np.full(len(delivered), stream))
        sent.members.append(delivered[:, 0])

    def _flush(self) -> None:
        if self._rows:
            self._given.write("groups", {name: [row[name] for row in self._rows] for name in self._rows[0]})
            self._rows.clear()

    def _count_entries(self) -> None:
        tables, entries = self._nodes.children()
        self._given.write("nodes", {"tables": tables, "entries": entries})

    def _count_packets(self) -> None:
        """Count packets over each link direction: of one multicast to each group, and of all joins."""
        sent, network, routers = self._sent, self._network, self._routers
        above, below = np.concatenate(sent.above), np.concatenate(sent.below)
        groups, members = np.concatenate(sent.groups), np.concatenate(sent.members)
        roots = np.array(sent.roots)
        joining, joined = np.array(self._nodes.joins).reshape(-1, 2).T

        def unicasts(sources: Ints, targets: Ints) -> Ints:
            between = network.unicast_loads(routers[sources], routers[targets])
            return np.concatenate([between, self._over_lans(sources, targets)])

        between = network.multicast_loads(routers[roots].tolist(), groups, routers[members])
        loads = {
            "scribe": unicasts(above, below),
            "joins": unicasts(joining, joined),
            "ip": np.concatenate([between, self._over_lans(roots, members)]),
            "naive": unicasts(roots[groups], members),
        }
        is_lan = np.arange(len(loads["ip"])) >= network.directions
        self._given.write("links", {"lan": is_lan, **loads})
        self._given.put(
            link_directions=len(is_lan),
            routers=network.count,
            mean_link_delay_ms=network.mean_link_delay_us / 1e3,
            **{f"{name}_packets": int(each.sum()) for name, each in loads.items()},
        )

    def _over_lans(self, sources: Ints, targets: Ints) -> Ints:
        """Return the packets from each node to its router, then those from its router to each node."""
        return np.concatenate(
            [np.bincount(each, minlength=len(self._routers)) for each in (sources, targets)]
        )
