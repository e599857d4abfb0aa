"""Societies of Meghdoot peers in a flat network, with published and delivered events by their records."""

from random import Random

from node.core.deliveries import RecordKind
from node.core.specification import PlannedSubscription
from node.protocols.meghdoot.node import MeghdootNode
from node.sim.flat_network import FlatNetwork
from tests.node.protocols.community import REGIONS, Community

HIGH = 100.0


class Society(Community):
    """`subscribers` peers of four regions with `each` subscriptions, and a publisher of each region."""

    system, role = "meghdoot", "subscriber"

    def __init__(
        self, subscribers=20, each=4, attributes=2, seed=0, rate_per_s=20, gap_us=50_000, run_us=None,
        network=FlatNetwork, **parameters,
    ):  # fmt: skip
        self.each, self.attributes = each, attributes
        named = [{"name": f"a{n}", "kind": "real", "low": 0.0, "high": HIGH} for n in range(attributes)]
        workload = {"kind": "content", "event_size_bytes": 8 * attributes, "rate_per_s": rate_per_s}
        super().__init__(
            subscribers,
            seed,
            parameters=parameters,
            workload=workload | {"attributes": named},
            streams=tuple(f"r{region}" for region in range(REGIONS)),
            network=network,
            gap_us=gap_us,
            run_us=run_us,
            settle_us=20_000_000,
        )

    def drawn(self):
        return tuple(PlannedSubscription(0, number, True, self.any_ranges()) for number in range(self.each))

    def any_ranges(self):
        found = []
        for _ in range(self.attributes):
            low = self.rng.uniform(0, HIGH)
            wide = self.rng.random() < 0.3
            found.append((0.0, HIGH) if wide else (low, min(HIGH, low + self.rng.uniform(0, HIGH / 3))))
        return tuple(found)

    def machine(self, spec, name):
        return MeghdootNode(spec, Random(name))

    def silent(self):
        """Return whether all publishers know that all of their events are delivered everywhere."""
        return all(node.progress().silent for name, node in self.nodes().items() if "publisher" in name)

    def volume(self):
        """Return the volume of all zones."""
        return sum(zone.volume for node in self.nodes().values() for zone in node.can.zones)

    def measured(self, name, kind):
        """Return (time, values) of a node's measures of a kind."""
        return [(time_us, each.values) for time_us, each in self.measures[name] if each.name == kind]

    # --- Result

    def published(self):
        """Return by stream and number the time and the values of each event."""
        return {
            (int(values["stream"]), int(values["seq"])): (
                time_us,
                [value for name, value in values.items() if name.startswith("value_")],
            )
            for publisher in list(self.measures)
            for time_us, values in self.measured(publisher, "_event")
        }

    def judged(self):
        """Return lost, stray, repeated and delivered events of all subscribers that were never killed."""
        published = self.published()
        lost = stray = repeated = delivered = 0
        for name in self.stayed():
            got = [(each.stream, each.first_seq) for _, each in self.recorded(name, RecordKind.DELIVERED)]
            since = {
                int(values["number"]): time_us
                for time_us, values in self.measured(name, "_interest")
                if values["kind"] == RecordKind.SUBSCRIBED
            }
            asked = {each.number: each.ranges for each in self.specs[name].subscriptions}
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


def assert_whole(society, least=200, settle_us=None):
    """Let all events arrive; check that none is lost, stray or repeated, that publishers know it, and that
    zones fill the space.
    """
    society.finish(settle_us)
    lost, stray, repeated, delivered = society.judged()
    assert (lost, stray, repeated) == (0, 0, 0)
    assert delivered >= least
    assert society.silent()
    assert abs(society.volume() - 1.0) < 1e-9
