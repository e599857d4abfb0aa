"""What the cases of some settings stand on: the experiment, its topology, who and what may be disturbed, and
how long that may last. No link is to carry more than it can, unless the experiment itself asks for as much.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from experiments.checks import problems, role_of
from experiments.declared import Declared, Trait, known, programs_of
from experiments.hunting.case import (
    COMING_AND_GOING,
    FAULTS,
    ON_DISKS,
    ON_LINKS,
    ON_PROCESSES,
    ON_REGIONS,
    STEP_US,
    Kind,
)
from experiments.hunting.written import with_settings
from experiments.model import Experiment
from experiments.nemesis import Nemesis
from experiments.parameters import is_durable
from experiments.planned.nemesis_schedule import all_roles, regions_of, victims
from experiments.workloads.stream import StreamWorkload
from topologies.errors import InputError
from topologies.loader import load_topology
from topologies.model import Topology
from topologies.round_trips import hops

LONGEST_US = 6_000_000
"""A disturbance may last as long as a time of the system, up to this; else as the nemesis says."""


@dataclass(frozen=True)
class Ground:
    """What a case with some settings stands on: the experiment with them, its topology and limits of time."""

    experiment: Experiment
    topology: Topology
    nemesis: Nemesis

    @cached_property
    def declared(self) -> Declared:
        """What the system says of itself, with the experiment's parameters."""
        return self.experiment.declared()

    @cached_property
    def groups(self) -> dict[str, list[list[str]]]:
        """Processes by role, those of a region together; roles that may be disturbed."""
        roles = self.nemesis.roles or all_roles(self.declared)
        return victims(roles, self.experiment.roles, self.topology, (), self.declared)

    @cached_property
    def of_region(self) -> dict[str, list[str]]:
        """All processes of each region."""
        return regions_of(self.experiment.roles, self.topology, ())

    @cached_property
    def links(self) -> list[tuple[str, str]]:
        """The regions that each link joins."""
        return [link.between for link in self.topology.links]

    @cached_property
    def straight(self) -> frozenset[frozenset[str]]:
        """The links over which somebody publishes in another region's stream: that has no way round them."""
        workload = self.experiment.workload
        if not isinstance(workload, StreamWorkload):
            return frozenset()
        route = hops(self.topology)
        return frozenset(
            frozenset(hop)
            for stream in workload.streams_in(tuple(self.topology.regions))
            for publisher in stream.publishers or ()
            if (between := (publisher.partition("/")[0], stream.region)) in route
            for hop in (*route[between], *route[between[::-1]])
        )

    @property
    def burden(self) -> float:
        """What is published, as a share of what the narrowest link carries, were all of it sent over that
        link to each peer, or else to each region.
        """
        workload, declared = self.experiment.workload, self.declared
        links = [
            each
            for link in self.topology.links
            for each in (link.forward_parameters, link.backward_parameters)
        ]
        rates = [each.rate_bits_per_s for each in links if each.rate_bits_per_s is not None]
        roles = [role_of(process) for names in self.of_region.values() for process in names]
        peers = sum(declared.has(role, Trait.PEER) for role in roles)
        events_per_s = (getattr(workload, "rate_per_s", None) or 0) * sum(
            declared.has(role, Trait.PUBLISHER) for role in roles
        )
        copies = peers or len(self.of_region)
        bits_per_s = events_per_s * workload.event_size_bytes * 8 * copies
        return bits_per_s / min(rates) if rates else 0.0

    @property
    def first_us(self) -> int:
        """Nothing is disturbed before."""
        return self.nemesis.start_us

    @property
    def last_us(self) -> int:
        """Nothing is disturbed from then on."""
        return self.experiment.duration_us - max(self.nemesis.quiet_us, STEP_US)  # else it would not end

    @cached_property
    def kinds(self) -> tuple[Kind, ...]:
        """What may be done here."""
        found: list[Kind] = []
        if self.links:
            found += [
                kind
                for kind in ON_LINKS
                if kind not in {"partition", "sever"} or len(self.topology.regions) > 2
            ]
        if any(self.groups.values()):
            found += [kind for kind in ON_PROCESSES if self.of_kind(kind)]
        replicated = bool(self.declared.having(Trait.REPLICATED))
        found += [kind for kind in ON_REGIONS if replicated or kind in self.nemesis.kinds]
        if self.declared.contract.audience == "content":
            found = [kind for kind in found if kind not in {"isolate", "partition"}]
        contract = self.declared.contract
        return tuple(kind for kind in found if contract.holds_through(FAULTS.get(kind, kind)))

    def of_kind(self, kind: Kind) -> tuple[str, ...]:
        """Roles to whose processes it may be done: not all leave and come back, can be spared for good, or
        keep things on disks.
        """
        if kind in COMING_AND_GOING:
            return tuple(role for role in self.groups if self.declared.has(role, Trait.TRANSIENT))
        if kind == "die":
            ours = programs_of(self.experiment.system) is None  # programs' clients may know one server only
            return tuple(role for role in self.groups if ours and self._is_only_a_server(role))
        if kind in ON_DISKS:
            durable = is_durable(self.experiment.system, self.experiment.all_parameters())
            return tuple(
                role for role in self.groups if durable and self.declared.has(role, Trait.REPLICATED)
            )
        return tuple(self.groups)

    def _is_only_a_server(self, role: str) -> bool:
        """Whether its processes pass on and keep events, and neither publish nor want any: all go on without
        one of them.
        """
        declared = self.declared
        ends = (Trait.PUBLISHER, Trait.SUBSCRIBER)
        return declared.has(role, Trait.SERVER) and not any(declared.has(role, each) for each in ends)

    @cached_property
    def timeouts_us(self) -> tuple[int, ...]:
        """Times of the system that a disturbance may be as long as, or the time between two."""
        parameters, system = self.experiment.all_parameters(), known(self.experiment.system)
        times = [
            int(value)
            for name, value in parameters.items()
            if name.endswith("_us") and isinstance(value, (int, float))
        ]
        times += [*system.times(parameters), *(wait.us for wait in system.waits(parameters))]
        longest_us = max(self.nemesis.longest_us, LONGEST_US)
        return tuple(sorted({time for time in times if self.nemesis.shortest_us // 4 <= time <= longest_us}))

    @cached_property
    def longest_us(self) -> int:
        """A disturbance lasts so long at most: a little longer than any of the system's own times, and short
        enough that nobody is forgotten, also while another one follows.
        """
        longest_us = max(self.nemesis.longest_us, *(time * 6 // 5 for time in self.timeouts_us), 0)
        remembered_us = known(self.experiment.system).remembers(self.experiment.all_parameters())
        return longest_us if remembered_us is None else min(longest_us, remembered_us // 2)


def ground_of(base: Experiment, settings: Mapping[str, object], nemesis: Nemesis) -> Ground:
    """What cases with these settings stand on. Raises InputError if the settings are not possible."""
    experiment = with_settings(base, settings)
    topology = load_topology(experiment.topology)
    for path, said in problems(experiment, topology):
        raise InputError(experiment.name, None, ".".join(map(str, path)), said)
    ground = Ground(experiment, topology, nemesis)
    if ground.first_us + nemesis.shortest_us > ground.last_us:
        raise InputError(experiment.name, None, "duration", "leaves no time for any disturbance")
    if ground.burden > 1 and ground.burden > Ground(base, load_topology(base.topology), nemesis).burden:
        raise InputError(experiment.name, None, "workload.rate", "is more than some link may carry")
    return ground
