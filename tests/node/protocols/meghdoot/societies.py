"""Societies of Meghdoot peers in a flat network: who published what, who got what, by their records."""

from ipaddress import IPv4Address
from random import Random

from node.core import machine as m
from node.core.deliveries import RecordKind
from node.core.specification import Member, NodeSpec, PlannedSubscription
from node.protocols.meghdoot.node import MeghdootNode
from node.sim.flat_network import FlatNetwork
from tests.node.protocols.community import REGIONS, Community

HIGH = 100.0


class Society(Community):
    """`subscribers` peers of four regions, and one of each region that publishes.

    network: makes the one that joins them.
    """

    def __init__(
        self,
        subscribers=20,
        each=4,
        attributes=2,
        seed=0,
        rate_per_s=20,
        gap_us=50_000,
        network=FlatNetwork,
        **parameters,
    ):
        self.rng = Random(seed)
        super().__init__(network)
        publishers = {f"r{region}/publisher-0": region for region in range(REGIONS)}
        names = publishers | {
            f"r{n % REGIONS}/subscriber-{n // REGIONS}": n % REGIONS for n in range(subscribers)
        }
        self.members = {
            name: Member(
                name, name, f"r{region}", name.split("/")[1].split("-")[0], 0, f"10.{region}.0.{at + 1}"
            )
            for at, (name, region) in enumerate(names.items())
        }
        self.addresses = {name: int(IPv4Address(each.address)) for name, each in self.members.items()}
        self.names = {address: name for name, address in self.addresses.items()}
        workload = {
            "kind": "content",
            "event_size_bytes": 8 * attributes,
            "rate_per_s": rate_per_s,
            "attributes": [
                {"name": f"a{n}", "kind": "real", "low": 0.0, "high": HIGH} for n in range(attributes)
            ],
        }
        self.specs = {
            name: NodeSpec(
                name, name, member.region, member.role, 0, seed, "meghdoot", (), member.address, parameters,
                workload, tuple(f"r{region}" for region in range(REGIONS)),
                subscriptions=self.asked(attributes, each) if member.role == "subscriber" else (),
            )
            for name, member in self.members.items()
        }  # fmt: skip
        for name in self.specs:
            self.start(name)
            self.run(gap_us)
        self.run(3_000_000)
        self.tell(m.Go(self.now_us))

    def asked(self, attributes, each):
        return tuple(
            PlannedSubscription(0, number, True, self.any_ranges(attributes)) for number in range(each)
        )

    def any_ranges(self, attributes):
        found = []
        for _ in range(attributes):
            low = self.rng.uniform(0, HIGH)
            wide = self.rng.random() < 0.3
            found.append((0.0, HIGH) if wide else (low, min(HIGH, low + self.rng.uniform(0, HIGH / 3))))
        return tuple(found)

    def machine(self, spec, name):
        return MeghdootNode(spec, Random(name))

    def restart(self, name):
        """Start it again, and let it take part."""
        self.start(name)
        self.run(1_000)
        self.tell_one(name)

    def nodes(self):
        return {self.names[address]: flat.machine for address, flat in self.network.nodes.items()}

    def finish(self, settle_us=20_000_000):
        super().finish(settle_us)

    def silent(self):
        """Whether all publishers know all of their events to be everywhere."""
        return all(node.progress().silent for name, node in self.nodes().items() if "publisher" in name)

    # --- What came of it

    def published(self):
        """By stream and number the time of each event, and its values."""
        found = {}
        for measures in self.measures.values():
            for time_us, measure in measures:
                if measure.name == "_event":
                    values = measure.values
                    found[int(values["stream"]), int(values["seq"])] = (
                        time_us,
                        [value for name, value in values.items() if name.startswith("value_")],
                    )
        return found

    def judged(self):
        """Lost, stray, duplicated and delivered, over all subscribers that were never killed."""
        published = self.published()
        lost = stray = repeated = delivered = 0
        for name, spec in self.specs.items():
            if (
                spec.role != "subscriber"
                or self.starts[name] > 1
                or self.addresses[name] not in self.network.nodes
            ):
                continue
            got = [
                (each.stream, each.first_seq)
                for _, each in self.records[name]
                if each.kind == RecordKind.DELIVERED
            ]
            since = {
                int(each.values["number"]): time_us
                for time_us, each in self.measures[name]
                if each.name == "_interest" and each.values["kind"] == RecordKind.SUBSCRIBED
            }
            asked = {each.number: each.ranges for each in spec.subscriptions}
            assert since.keys() == asked.keys(), f"{name} waits for {sorted(asked.keys() - since.keys())}"
            may, must = set(), set()
            for event, (time_us, values) in published.items():
                for number, ranges in asked.items():
                    if all(low <= value <= high for (low, high), value in zip(ranges, values, strict=True)):
                        may.add(event)
                        if time_us > since[number]:
                            must.add(event)
            lost += len(must - set(got))
            stray += len(set(got) - may)
            repeated += len(got) - len(set(got))
            delivered += len(got)
        return lost, stray, repeated, delivered
