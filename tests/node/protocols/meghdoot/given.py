"""Peers with given zones in a flat network: complete nodes without failures and joins."""

from random import Random

from node.core.deliveries import RecordKind
from node.core.machine import Measure
from node.core.specification import PlannedSubscription as Asked
from node.protocols.meghdoot.studies.peers import Peers
from tests.node.protocols.can.overlays import assign_zones
from tests.node.protocols.meghdoot.partitions import any_partition

ACTIVE = {"tick_us": 100_000, "delivery": "exactly-once", "mirror": True}


class GivenPeers(Peers):
    """One peer for each zone of a partition, with address from 1 on, and more for some: replicas."""

    def __init__(self, attributes=2, zones=30, seed=0, replicated=0, **parameters):
        rng = Random(seed)
        named = [{"name": f"a{n}", "kind": "real", "low": 0.0, "high": 100.0} for n in range(attributes)]
        workload = {"kind": "content", "event_size_bytes": 8 * attributes, "attributes": named}
        super().__init__(workload, rng, ACTIVE | parameters, self._told)
        self.rng, self.attributes = rng, attributes
        self.delivered, self.interests = {}, []
        partition = any_partition(2 * attributes, zones, rng)
        nodes = [self._add() for _ in range(zones + replicated)]
        assign_zones([node.can for node in nodes[:zones]], partition)
        for node in nodes[:zones]:
            self.network.act(node.can.own.address, lambda node: node.broker.zones_changed())
        for node in nodes[zones:]:
            owner = rng.randrange(zones) + 1
            self.network.act(owner, lambda owner, own=node.can.own: owner.can._replicas.add(own))

    def _add(self):
        address, node = self.create(())
        self.nodes[address] = node
        self.network.add(address, node)
        self.network.act(address, lambda node: node._tick_again(0))
        got = self.delivered[address] = []
        node.told = lambda message: got.append((message.stream, message.first_seq))
        return node

    def _told(self, address, time_us, effect):
        if isinstance(effect, Measure) and effect.name == "_interest":
            self.interests.append((address, RecordKind(effect.values["kind"])))

    def holders(self):
        """Return the owner and the replicas of each zone."""
        return {
            zone: [address, *(each.address for each in node.can.claims.own.replicas)]
            for address, node in self.nodes.items()
            for zone in node.can.zones
        }

    def run(self, us):
        self.settle(us)

    # --- Requests to the peers

    def any_ranges(self, share=0.3):
        found = []
        for _ in range(self.attributes):
            low = self.rng.uniform(0, 100)
            found.append((low, min(100.0, low + share * self.rng.uniform(0, 100))))
            if self.rng.random() < 0.3:
                found[-1] = (0.0, 100.0)
        return tuple(found)

    def ask(self, address, number, ranges, *, on=True):
        self.network.act(address, lambda node: node.broker.subscriber.subscribe(Asked(0, number, on, ranges)))

    def any_values(self):
        return tuple(
            float("nan") if self.rng.random() < 0.15 else self.rng.uniform(0, 100)
            for _ in range(self.attributes)
        )

    def is_silent(self):
        """Return whether all publishers know that their events are delivered everywhere."""
        return all(node.broker.publisher.is_silent for node in self.nodes.values())


def wants(ranges, values):
    """Return whether a subscription matches an event, by the paper's predicate."""
    return all(
        (low <= value <= high) if value == value else (low, high) == (0.0, 100.0)
        for (low, high), value in zip(ranges, values, strict=True)
    )
