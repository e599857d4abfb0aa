"""The base of all cases with the same settings: the experiment, its topology, the possible targets of
disturbances and their longest duration. Links carry no more than their rate, unless the experiment itself
asks for it.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from experiments.checks import problems, role_of
from experiments.declared import Declared, Trait, known_system, programs_of
from experiments.hunting.case import (
    COMING_AND_GOING,
    FAULTS,
    IF_ASKED,
    ON_DISKS,
    ON_LINKS,
    ON_PROCESSES,
    ON_REGIONS,
    Kind,
)
from experiments.hunting.case_experiment import with_settings
from experiments.model import Experiment
from experiments.nemesis import STEP_US, Nemesis
from experiments.parameters import is_durable
from experiments.planned.nemesis_schedule import all_roles, regions_of, victims
from experiments.workloads.stream import StreamWorkload
from topologies.errors import InputError
from topologies.loader import load_topology
from topologies.model import Link, Topology
from topologies.round_trips import carriers, hops
from topologies.routes import Hop

LONGEST_US = 6_000_000
"""A disturbance may last as long as a timeout of the system, up to this; else as the nemesis says."""


@dataclass(frozen=True)
class HuntTargets:
    """The base of all cases with the same settings: the experiment, its topology and limits of time."""

    experiment: Experiment
    topology: Topology
    nemesis: Nemesis

    @cached_property
    def declared(self) -> Declared:
        """The system's declaration with the experiment's parameters."""
        return self.experiment.declared()

    @cached_property
    def groups(self) -> dict[str, list[list[str]]]:
        """Processes by role and region, for roles that may be disturbed."""
        roles = self.nemesis.roles or all_roles(self.declared)
        return victims(roles, self.experiment.roles, self.topology, (), self.declared)

    @cached_property
    def of_region(self) -> dict[str, list[str]]:
        """All processes by region."""
        return regions_of(self.experiment.roles, self.topology, ())

    @cached_property
    def links(self) -> tuple[tuple[str, ...], ...]:
        """Each link as a target: its two regions, and its name if other links join these too."""
        count = Counter(frozenset(link.between) for link in self.topology.links)
        return tuple(
            link.between if count[frozenset(link.between)] == 1 else (*link.between, link.name)
            for link in self.topology.links
        )

    @cached_property
    def _link_of(self) -> dict[tuple[str, ...], Link]:
        return dict(zip(self.links, self.topology.links, strict=True))

    @cached_property
    def carriers(self) -> dict[Hop, str]:
        """The name of the link that carries each hop."""
        return {hop: link.name for hop, link in carriers(self.topology).items()}

    def link(self, target: tuple[str, ...]) -> Link | None:
        """Return the link that a disturbance targets; its regions may be in either order."""
        return self._link_of.get(target) or self._link_of.get((*target[1::-1], *target[2:]))

    @cached_property
    def straight(self) -> frozenset[str]:
        """The links over which a process publishes in another region's stream: publications take no
        detour.
        """
        workload = self.experiment.workload
        if not isinstance(workload, StreamWorkload):
            return frozenset()
        route = hops(self.topology)
        return frozenset(
            self.carriers[hop]
            for stream in workload.streams_in(tuple(self.topology.regions))
            for publisher in stream.publishers or ()
            if (between := (publisher.partition("/")[0], stream.region)) in route
            for hop in (*route[between], *route[between[::-1]])
        )

    @property
    def burden(self) -> float:
        """The load as a share of the narrowest link's rate, if all events cross it once per peer or
        region.
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
        """The start of the time for disturbances."""
        return self.nemesis.start_us

    @property
    def last_us(self) -> int:
        """The end of the time for disturbances."""
        return self.experiment.duration_us - max(self.nemesis.quiet_us, STEP_US)  # else none could end

    @cached_property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of disturbance that are possible here."""
        found, asked = list[Kind](), self.nemesis.kinds
        if self.links:
            found += [
                kind
                for kind in ON_LINKS
                if kind not in {"partition", "sever"} or len(self.topology.regions) > 2
            ]
        if any(self.groups.values()):
            found += [kind for kind in ON_PROCESSES if self.of_kind(kind)]
        replicated = bool(self.declared.having(Trait.REPLICATED))
        found += [kind for kind in ON_REGIONS if replicated or kind in asked]
        found = [kind for kind in found if kind not in IF_ASKED or kind in asked]
        if self.declared.contract.audience == "content":
            found = [kind for kind in found if kind not in {"isolate", "partition"}]
        contract = self.declared.contract
        return tuple(kind for kind in found if contract.holds_through(FAULTS.get(kind, kind)))

    def of_kind(self, kind: Kind) -> tuple[str, ...]:
        """Return the roles whose processes may have this disturbance.

        Only some can leave and come back, can be missed permanently, or store data on disks.
        """
        if kind in COMING_AND_GOING:
            return tuple(role for role in self.groups if self.declared.has(role, Trait.TRANSIENT))
        if kind == "die":
            ours = programs_of(self.experiment.system) is None  # clients of programs may know only one server
            return tuple(role for role in self.groups if ours and self._is_only_a_server(role))
        if kind in ON_DISKS:
            durable = is_durable(self.experiment.system, self.experiment.all_parameters())
            return tuple(
                role for role in self.groups if durable and self.declared.has(role, Trait.REPLICATED)
            )
        return tuple(self.groups)

    def _is_only_a_server(self, role: str) -> bool:
        """Return whether its processes only forward and store events, so that all continue without one."""
        declared = self.declared
        ends = (Trait.PUBLISHER, Trait.SUBSCRIBER)
        return declared.has(role, Trait.SERVER) and not any(declared.has(role, each) for each in ends)

    @cached_property
    def timeouts_us(self) -> tuple[int, ...]:
        """Times of the system that serve as a disturbance's duration or as the time between two."""
        parameters, system = self.experiment.all_parameters(), known_system(self.experiment.system)
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
        """The longest duration of a disturbance.

        A little longer than any time of the system, and short enough that no process is forgotten, even if
        another disturbance follows.
        """
        longest_us = max(self.nemesis.longest_us, *(time * 6 // 5 for time in self.timeouts_us), 0)
        remembered_us = known_system(self.experiment.system).remembers(self.experiment.all_parameters())
        return longest_us if remembered_us is None else min(longest_us, remembered_us // 2)


def hunt_targets(base: Experiment, settings: Mapping[str, object], nemesis: Nemesis) -> HuntTargets:
    """Return the base of cases with these settings. Raises InputError if the settings are impossible."""
    experiment = with_settings(base, settings)
    topology = load_topology(experiment.topology)
    for path, message in problems(experiment, topology):
        raise InputError(experiment.name, None, ".".join(map(str, path)), message)
    targets = HuntTargets(experiment, topology, nemesis)
    if targets.first_us + nemesis.shortest_us > targets.last_us:
        raise InputError(experiment.name, None, "duration", "leaves no time for any disturbance")
    if (
        targets.burden > 1
        and targets.burden > HuntTargets(base, load_topology(base.topology), nemesis).burden
    ):
        raise InputError(experiment.name, None, "workload.rate", "is more than a link can carry")
    return targets
