"""Clusters with replicated proxies, random faults, and the checks that must hold after any faults."""

from collections import Counter
from collections.abc import Mapping
from random import Random

from node.core import machine as m
from node.core.deliveries import RecordKind
from tests.node.cluster import Cluster, S

QUICK = {  # short periods: a simulated failure costs little time
    "flush_interval_us": 50_000,
    "advertisement_period_us": 200_000,
    "restore_wait_us": 400_000,
    "connect_timeout_us": 200_000,
    "reconnect_last_us": 100_000,
    "failure_grace_us": 40_000,
    "request_timeout_us": 200_000,
    "retry_us": 100_000,
}


def chained(**given) -> Cluster:
    """Return regions of three replicas and a configuration service, with short periods."""
    given = {"regions": 2, "proxies": 3, "configuration": True, "rate_per_s": 500, "storage": "disk", **given}
    return Cluster(parameters={**QUICK, **given.pop("parameters", {})}, **given)


def chain(cluster: Cluster, region: str = "r0") -> str:
    """Return the members' numbers from head to tail according to the region's service, such as "012"."""
    members = cluster.machine(f"{region}/configuration-0").chain.members
    return "".join(name[-1] for name in members)


NAMES = {"head": "r0/proxy-0", "middle": "r0/proxy-1", "tail": "r0/proxy-2"}
NAMES |= {"service": "r0/configuration-0", "driver": "r0/driver-0"}


def play(cluster: Cluster, script: str) -> None:
    """Execute commands at seconds of virtual time: "2 kill head, 4 chain 12, 4 start head, 6 members 3".

    chain, members: check r0's chain, or its length. black: cut the power of a region, or of its processes of
    these roles; boot: restart them; power: restart them and let its drivers publish. cut, heal: the path
    between two regions. run: let time pass. Other commands are methods of the network.
    """
    network = cluster.network
    for step in script.split(", "):
        at_s, action, *words = step.split()
        cluster.run(round(float(at_s) * S))
        match action:
            case "chain":
                assert [chain(cluster)] == words
            case "members":
                assert sorted(chain(cluster)) == ["0", "1", "2"][: int(words[0])]
            case "black":
                specs = [node.spec for node in network.nodes.values()]
                there = [each for each in specs if each.region == words[0]]
                cluster.dark = [each.name for each in there if not words[1:] or each.role in words]
                for name in cluster.dark:
                    network.kill(name)
            case "boot" | "power":
                for name in cluster.dark:
                    network.start(name)
                if action == "power":
                    cluster.run(network.clock.now_us + 800_000)
                    for name in cluster.dark:
                        if "driver" in name:
                            network.give(name, m.Go(network.clock.now_us))
            case "cut" | "heal":
                getattr(network, action)(*words)
            case "run":
                pass
            case _:
                for word in words:
                    getattr(network, action)(NAMES.get(word, word))


def check(cluster: Cluster, *, drained_s: float = 4) -> None:
    """Drain, and check that nothing is lost, duplicated or reordered and that all replicas are equal.

    Every acknowledged event was delivered to every client once, with its bytes; nothing else was delivered.
    """
    cluster.drain(int(drained_s * S))
    assert cluster.logged("events_lost") == []
    cluster.check_deliveries()
    published = cluster.published()
    for name, node in cluster.network.nodes.items():
        if node.spec.role == "proxy":
            got = {stream: state.cnt for stream, state in node.machine.history.streams.items()}
            assert got == published, name
            committed = {stream: state.committed for stream, state in node.machine.history.streams.items()}
            assert committed == published, name
        if node.spec.role == "driver":
            records = cluster.records(name, RecordKind.PUBLISHED)
            for stream, load in node.machine.loads.items():
                assert load.publisher.is_idle, name
                sizes = [count for of, _, count, _ in records if of == stream]
                assert sum(sizes) == load.publisher.acknowledged, f"{name}, stream {stream}"
    _check_counts(cluster, published)


def _check_counts(cluster: Cluster, published: Mapping[int, int]) -> None:
    """Check that the drivers' counts add up to the published events: none was published twice."""
    counts = Counter[int]()
    for node in cluster.network.nodes.values():
        if node.spec.role == "driver":
            counts.update({s: load.publisher.acknowledged for s, load in node.machine.loads.items()})
    assert counts == published


ACTIONS = ["kill", "kill", "stop", "start", "start", "resume", "resume", "service", "cut"]


class Chaos:
    """Random kills, stops and cuts that never remove enough replicas of a region to lose its state."""

    def __init__(self, cluster: Cluster, seed: int) -> None:
        self.cluster = cluster
        self.rng = Random(seed)
        self.replicas = {region: [f"{region}/proxy-{index}" for index in range(3)] for region in ("r0", "r1")}
        self.services = [f"{region}/configuration-0" for region in self.replicas]
        self.dead: list[str] = []
        self.stopped: list[str] = []
        self.cut = False  # the way between the first two regions

    def step(self) -> None:
        """Execute one random fault."""
        nodes = self.cluster.network.nodes
        action = self.rng.choice(ACTIONS)
        if action in {"kill", "stop"}:
            region = self.rng.choice(sorted(self.replicas))
            members = self._caught_up(region)
            others = [name for name in self.replicas[region] if name in nodes and name not in self.stopped]
            name = self.rng.choice(others) if others else None
            if name is not None and [each for each in members if each != name]:
                self._do(action, name)
        elif action == "service":
            name = self.rng.choice(self.services)
            if name in nodes:
                self._do("kill", name)
        elif action == "cut":
            self._cut_or_heal()
        elif action == "start" and self.dead:
            self._do("start", self.rng.choice(self.dead))
        elif action == "resume" and self.stopped:
            self._do("resume", self.rng.choice(self.stopped))

    def run(self) -> None:
        """Execute twenty random faults from two seconds on, then restore everything."""
        now_us = 2 * S
        self.cluster.run(now_us)
        for _ in range(20):
            self.step()
            now_us += self.rng.choice([20_000, 100_000, 400_000, 900_000])
            self.cluster.run(now_us)
        if self.cut:
            self._cut_or_heal()
        for name in list(self.stopped):
            self._do("resume", name)
        for name in list(self.dead):
            self._do("start", name)
        self.cluster.run(now_us + 3 * S)
        self.cluster.network.broadcast(m.Nudge())

    def _cut_or_heal(self) -> None:
        network = self.cluster.network
        (network.heal if self.cut else network.cut)("r0", "r1")
        self.cut = not self.cut

    def _caught_up(self, region: str) -> list[str]:
        """Return the number of running members that all running members agree on."""
        service = self.cluster.network.nodes.get(f"{region}/configuration-0")
        if service is None:
            return []
        chain, nodes = service.machine.chain, self.cluster.network.nodes
        running = [name for name in chain.members if name in nodes and name not in self.stopped]
        return [name for name in running if chain.has(name, nodes[name].machine.incarnation)]

    def _do(self, action: str, name: str) -> None:
        getattr(self.cluster.network, action)(name)
        names = self.dead if action in {"kill", "start"} else self.stopped
        (names.append if action in {"kill", "stop"} else names.remove)(name)
