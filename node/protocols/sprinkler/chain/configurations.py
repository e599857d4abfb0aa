"""The regions' chains as one process knows them (paper 3.3), and the connections that follow from them.

All proxies of a region are the replicas of one proxy, a chain from head to tail. In a region with a
configuration service, the service defines the chain, with numbers from 1 on; the latest known one stays valid
while the service is unreachable, and before the first there is none. A region of one proxy needs no service:
its configuration has the number 0.

Use: a process creates its `Chains` from its specification and starts with
`keep_connected(chains.targets_for(name))`. On CONFIGURATION from the service it calls `learn`; if that
returns true, it calls `keep_connected` again with the new targets. A publisher publishes to the `head` of the
region that owns the stream (2.2), and a client receives its events from the `tail` of its own, if these names
are among its channels; both are None while they are unknown.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from node.core.peers.dialing import Target
from node.core.specification import Member, NodeSpec
from node.protocols.sprinkler.messages import Configuration, Replica, Standing
from node.protocols.sprinkler.parameters import SprinklerParameters


@dataclass(frozen=True, slots=True)
class ReplicaChain:
    """One region's configuration, by process name. `joining` follows the tail, but is not a member."""

    number: int
    began: int  # configuration since which no state was lost: a replica's state from before it is void
    members: tuple[str, ...] = ()  # from head to tail
    joining: str | None = None
    incarnations: tuple[int, ...] = ()  # of the members and of the joining replica; 0: any

    @property
    def head(self) -> str | None:
        """The replica that receives publications and the peers' events."""
        return self.members[0] if self.members else None

    @property
    def tail(self) -> str | None:
        """The replica that serves peers and clients."""
        return self.members[-1] if self.members else None

    @property
    def everyone(self) -> tuple[str, ...]:
        """The members, and the replica joining behind them."""
        return self.members if self.joining is None else (*self.members, self.joining)

    def has(self, name: str, incarnation: int) -> bool:
        """Return whether this process, as identified by its incarnation, is a member or joining."""
        names = self.everyone
        return name in names and self.incarnations[names.index(name)] in {0, incarnation}

    def predecessor(self, name: str) -> str | None:
        """Return the process that sends to `name` along the chain; None for the head and for others."""
        names = self.everyone
        at = names.index(name) if name in names else 0
        return names[at - 1] if at else None

    def successor(self, name: str) -> str | None:
        """Return the process to which `name` sends along the chain; None for the last one and for others."""
        names = self.everyone
        at = names.index(name) + 1 if name in names else len(names)
        return names[at] if at < len(names) else None


class Chains:
    """The chains of all regions as one process knows them."""

    def __init__(self, spec: NodeSpec, parameters: SprinklerParameters) -> None:
        self._members = {member.name: member for member in spec.members}
        self._spec = spec
        self._port = parameters.port
        self._services = {member.region: member.name for member in with_role(spec, "configuration")}
        self._proxies: dict[str, list[str]] = {}  # by region, in order of index
        for proxy in sorted(with_role(spec, "proxy"), key=lambda member: member.index):
            self._proxies.setdefault(proxy.region, []).append(proxy.name)
        self._chains = {
            region: ReplicaChain(0, 0) if region in self._services else static_chain(proxies)
            for region, proxies in sorted(self._proxies.items())
        }

    @property
    def regions(self) -> Sequence[str]:
        """All regions that have proxies, sorted."""
        return list(self._chains)

    def chain(self, region: str) -> ReplicaChain:
        """Return the region's chain as far as known."""
        return self._chains.get(region, ReplicaChain(0, 0))

    def head(self, region: str) -> str | None:
        """Return the region's head, if known."""
        return self.chain(region).head

    def tail(self, region: str) -> str | None:
        """Return the region's tail, if known."""
        return self.chain(region).tail

    def service(self, region: str) -> str | None:
        """Return the region's configuration service, if it has one."""
        return self._services.get(region)

    def served_by(self, service: str) -> str | None:
        """Return the region whose configuration service this process is."""
        return next((region for region, name in self._services.items() if name == service), None)

    def replicas(self, region: str) -> Sequence[str]:
        """Return all proxy processes of the region in order of index, in its chain or not."""
        return self._proxies.get(region, [])

    def region_of(self, name: str) -> str | None:
        """Return the region of a process of the run."""
        return self._members[name].region if name in self._members else None

    def configuration(self, region: str) -> Configuration:
        """Return the last configuration from the region's service; one with number 0 if there was none."""
        chain = self.chain(region)
        return configuration_of(chain if chain.number else ReplicaChain(0, 0), self.replicas(region))

    def learn(self, region: str, configuration: Configuration) -> bool:
        """Store a configuration from a region's service; return False if it is not newer, or is invalid."""
        names = self._proxies.get(region, [])
        known = self._chains.get(region)
        if known is None or configuration.number <= known.number:
            return False
        if not all(replica.index < len(names) for replica in configuration.replicas):
            return False
        self._chains[region] = chain_of(configuration, names)
        return True

    def targets_for(self, name: str, publishes: Iterable[str] = ()) -> list[Target]:
        """Return the targets that the process `name` dials now. publishes: for a client, owners of its
        streams.
        """
        return [self.target(peer) for peer in dict.fromkeys(self._peers(name, publishes)) if peer != name]

    def target(self, name: str) -> Target:
        """Return the target for dialling a process of the run."""
        return Target(name, self._members[name].address, self._port)

    def _peers(self, name: str, publishes: Iterable[str]) -> Iterator[str]:
        member = self._members[name]
        if member.role == "configuration":
            return
        if member.role == "proxy":
            yield from self._services.values()
            yield from self._peers_of_replica(member)
            return
        wanted = []
        if member.role == "client":
            wanted += [self.service(member.region), self.tail(member.region)]
        else:
            publishes = [self._spec.homes[stream] for stream in self._spec.published_by(member)]
        for owner in publishes:
            wanted += [self.service(owner), self.head(owner)]
        yield from (peer for peer in wanted if peer is not None)

    def _peers_of_replica(self, member: Member) -> Iterator[str]:
        """Yield its predecessor, and its peers in regions whose names sort after its own.

        A head connects to their tails, a tail to their heads.
        """
        own = self.chain(member.region)
        predecessor = own.predecessor(member.name)
        if predecessor is not None:
            yield predecessor
        for region, chain in self._chains.items():
            if region > member.region and chain.members:
                if member.name == own.head:
                    yield chain.members[-1]
                if member.name == own.tail:
                    yield chain.members[0]


def with_role(spec: NodeSpec, role: str) -> list[Member]:
    """Return the run's processes with this role, sorted by name."""
    return sorted((member for member in spec.members if member.role == role), key=lambda member: member.name)


def static_chain(names: Sequence[str]) -> ReplicaChain:
    """Return the configuration of a region without a service."""
    return ReplicaChain(0, 0, tuple(names), None, (0,) * len(names))


def chain_of(configuration: Configuration, names: Sequence[str]) -> ReplicaChain:
    """Convert a CONFIGURATION to names: `names` are the region's proxies in order of index."""
    members = [replica for replica in configuration.replicas if replica.standing == Standing.MEMBER]
    joining = [replica for replica in configuration.replicas if replica.standing == Standing.JOINING]
    return ReplicaChain(
        configuration.number,
        configuration.began,
        tuple(names[replica.index] for replica in members),
        names[joining[0].index] if joining else None,
        tuple(replica.incarnation for replica in members + joining),
    )


def configuration_of(chain: ReplicaChain, names: Sequence[str]) -> Configuration:
    """Return the CONFIGURATION of a chain; the inverse of `chain_of`."""
    standings = [Standing.MEMBER] * len(chain.members) + [Standing.JOINING] * (chain.joining is not None)
    rows = zip(chain.everyone, standings, chain.incarnations, strict=True)
    replicas = tuple(Replica(names.index(name), standing, number) for name, standing, number in rows)
    return Configuration(chain.number, chain.began, replicas)
