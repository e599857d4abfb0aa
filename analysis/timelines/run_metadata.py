"""Metadata of a run from run.json as plain data: hosts, streams, links, faults and times.

Contains everything that the timelines need besides packets, messages and deliveries: the role of each host,
the owner of each stream, the links between regions, the link directions that each fault changed, and the
run's times. It is small and can be sent to Spark's workers as a whole.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from analysis.capture.clocks.machine_clocks import ONE_CLOCK, MachineClocks
from analysis.errors import AnalysisError
from analysis.messages.label import address_text
from analysis.messages.marked import known_reading
from analysis.timelines.links.periods import (
    LinkDirection,
    Period,
    SelectedPackets,
    carriers,
    period_at,
    read_periods,
    read_selected,
)
from analysis.timelines.links.route_history import RouteHistory
from analysis.timelines.liveness import read_presence
from analysis.timelines.recovering.run_faults import RunFault, read_churn, read_faults
from analysis.timelines.run_window import RunWindow, window_of
from experiments.declared import Declared, Trait, default_declaration
from experiments.planned.plan import GATEWAY_ROLE, Plan, TrafficPlan
from experiments.planned.plan_routes import hops
from experiments.records.run_record import RunRecord
from node.core.content.content import Range, attributes_of
from node.core.declaration import Reading
from node.core.message_layout import KEY, WIDTHS
from node.systems import reading_of
from topologies.routes import Hop, reached_from


@dataclass(frozen=True, slots=True)
class Host:
    """A host of the run; `lan_delay_us` and `lan_jitter_us` are one way, to and from its gateway."""

    name: str
    region: str
    role: str
    address: str
    lan_delay_us: tuple[int, int] = (0, 0)
    lan_jitter_us: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class RunMetadata:
    """A run's metadata for the timelines. Times are CLOCK_REALTIME nanoseconds by the run's reference clock.

    Values that require a pass over all hosts are cached: there may be a hundred thousand.
    """

    run: str
    experiment: str
    seed: int | None
    links_kind: str | None
    zero_ns: int
    stopped_ns: int | None
    drained_ns: int | None
    ended_ns: int | None
    outcome: str | None
    event_bytes: int | None
    rate_per_s: float | None = None  # of each publisher; None in a closed loop
    hosts: Mapping[str, Host] = field(default_factory=dict)
    owner: Mapping[int, str] = field(default_factory=dict)  # stream -> region
    stream_names: Mapping[int, str] = field(default_factory=dict)
    publishers: Mapping[int, tuple[str, ...]] = field(default_factory=dict)  # stream -> regions, processes
    link_of: Mapping[Hop, LinkDirection] = field(default_factory=dict)
    routes: Mapping[Hop, tuple[Hop, ...]] = field(default_factory=dict)  # between any two regions, as planned
    periods: Mapping[LinkDirection, tuple[Period, ...]] = field(default_factory=dict)
    selected: Mapping[LinkDirection, tuple[SelectedPackets, ...]] = field(default_factory=dict)
    faults: tuple[RunFault, ...] = ()
    churn: tuple[RunFault, ...] = ()  # each applied arrival and departure, by time
    host_of: Mapping[str, str] = field(default_factory=dict)  # process -> host
    disturbed: frozenset[str] = frozenset()  # hosts whose process did not run from beginning to end
    gone: frozenset[str] = frozenset()  # of these, those whose process was absent at the end
    starts: Mapping[str, int] = field(default_factory=dict)  # number of starts, if not 1
    collect: tuple[str, int] | None = None  # the rule by which events are collected, and its argument
    seldom: bool = False  # only some events collect: drivers mark them
    keyed: bool = False  # events carry keys, so events may share one
    topic_streams: int = 1  # streams per topic: one per publisher
    domains: tuple[Range, ...] = ()  # lowest and highest value of each event attribute
    last_change_ns: int = 0  # when the last change by a fault was applied; time 0 if none
    clocks: MachineClocks = ONE_CLOCK  # of the machines; corrects times to the reference clock
    started_ns: int | None = None  # when the run was planned, before time 0
    declared: Declared = field(default_factory=default_declaration)  # the system's declaration
    reading: Reading = field(default_factory=lambda: reading_of(default_declaration().name) or Reading())
    traffic: tuple[TrafficPlan, ...] = ()  # background traffic
    rerouted: RouteHistory | None = None  # the routes over time, unless they are fixed

    def having(self, *traits: str) -> tuple[str, ...]:
        """Return the names of the hosts whose roles have any of these traits, in the plan's order."""
        if traits not in self._having:
            roles = self.declared.having(*traits)
            self._having[traits] = tuple(host.name for host in self.hosts.values() if host.role in roles)
        return self._having[traits]

    @cached_property
    def _having(self) -> dict[tuple[str, ...], tuple[str, ...]]:
        return {}

    def has(self, host: Host | str, *traits: str) -> bool:
        """Return whether a host's role has any of these traits."""
        role = self.hosts[host].role if isinstance(host, str) else host.role
        return self.declared.has(role, *traits)

    @property
    def marked(self) -> bool:
        """Whether drivers mark which of their events collect, and their keys."""
        return self.collect is not None and (self.seldom or self.collect[0] == "same_key")

    @cached_property
    def host_at(self) -> dict[str, str]:
        """Names of the hosts by their addresses."""
        return {host.address: host.name for host in self.hosts.values()}

    def host_in(self, record: Mapping[str, Any], name: str) -> str | None:
        """Return the host whose address is in a field of a log record; None if it belongs to no host."""
        address = record.get(name)
        return self.host_at.get(address_text(address)) if isinstance(address, int) else None

    @property
    def by_host(self) -> bool:
        """See `node.core.declaration.Declared`."""
        return self.declared.by_host

    def publishing_hosts(self, stream: int) -> frozenset[str]:
        """Return the hosts that publish on a stream."""
        names = self.publishing(stream)
        return frozenset(host for host in self.having(Trait.PUBLISHER) if names & self.named_as(host))

    @cached_property
    def stream_at(self) -> dict[bytes, int]:
        """Streams by the keys that messages use for them; the lowest stream if several share a key."""
        last_first = sorted(self.owner, reverse=True)
        return {key: stream for stream in last_first if (key := self.key_of(stream)) is not None}

    def key_of(self, stream: int) -> bytes | None:
        """Return the key of a stream's topic; None if messages have no keys."""
        key_of = self.reading.key_of
        return None if key_of is None else key_of(self.topic_of(stream)).to_bytes(WIDTHS[KEY], "big")

    def topic_of(self, stream: int) -> int:
        """Return the topic of a stream; each stream is one publisher of its topic
        (`experiments.workloads.topics`).
        """
        return stream // self.topic_streams

    @cached_property
    def applied_faults(self) -> tuple[RunFault, ...]:
        """The faults that were applied, sorted by time."""
        applied = [fault for fault in self.faults if fault.applied_ns is not None]
        return tuple(sorted(applied, key=lambda fault: fault.t_ns))

    @cached_property
    def applied_changes(self) -> tuple[RunFault, ...]:
        """The applied faults, and each arrival and departure, sorted by time: everything that determines a
        client's required events.
        """
        return tuple(sorted((*self.applied_faults, *self.churn), key=lambda fault: fault.t_ns))

    @cached_property
    def instants(self) -> tuple[tuple[RunFault, ...], ...]:
        """The applied faults, grouped by instant, sorted by time."""
        found: list[list[RunFault]] = []
        for fault in self.applied_faults:
            if not found or not fault.is_at_once_with(found[-1][0]):
                found.append([])
            found[-1].append(fault)
        return tuple(map(tuple, found))

    @cached_property
    def instant_starts_ns(self) -> tuple[int, ...]:
        """When each instant's first fault was applied."""
        return tuple(faults[0].t_ns for faults in self.instants)

    @cached_property
    def instant_numbers(self) -> dict[str, int]:
        """The index of the instant of each applied fault, by its name and in order."""
        return {fault.name: number for number, faults in enumerate(self.instants) for fault in faults}

    def next_fault_ns(self, fault: RunFault) -> int | None:
        """Return when the first fault of a later instant was applied; None for the last."""
        later = self.instant_starts_ns[self.instant_numbers[fault.name] + 1 :]
        return later[0] if later else None

    @property
    def clients(self) -> tuple[str, ...]:
        """Names of the hosts that receive events, in the plan's order."""
        return self.having(Trait.SUBSCRIBER)

    def of_region(self, region: str, *traits: str) -> tuple[str, ...]:
        """Return the names of a region's hosts whose roles have any of these traits."""
        return tuple(name for name in self.having(*traits) if self.hosts[name].region == region)

    def publishing(self, stream: int) -> frozenset[str]:
        """Return the names of a stream's publishers: regions, standing for all of theirs, and processes."""
        return frozenset(self.publishers.get(stream) or (self.owner[stream],))

    def named_as(self, host: str) -> frozenset[str]:
        """Return the names of a publisher: its region, and its process."""
        processes = (process for process, its_host in self.host_of.items() if its_host == host)
        return frozenset((self.hosts[host].region, *processes))

    @cached_property
    def gateways(self) -> dict[str, list[str]]:
        """Names of the gateways of each region."""
        found = defaultdict(list)
        for host in self.hosts.values():
            if host.role == GATEWAY_ROLE:
                found[host.region].append(host.name)
        return found

    @cached_property
    def steady_clients(self) -> tuple[str, ...]:
        """The clients that ran from beginning to end; "every client" means these."""
        return tuple(name for name in self.clients if name not in self.disturbed)

    def seconds(self, t_ns: int) -> float:
        """Return the seconds since time 0 of the run."""
        return (t_ns - self.zero_ns) / 1e9

    def delay_us(self, hop: Hop, t_ns: int) -> int:
        """Return the configured one-way delay of the route between two regions at `t_ns`; 0 without a
        route.
        """
        return sum(period_at(self.periods[way], t_ns).delay_us for way in self.directions(hop, t_ns))

    def jitter_us(self, hop: Hop, t_ns: int) -> int:
        """Return the largest deviation from a route's `delay_us` by the links' jitter; microseconds."""
        return sum(period_at(self.periods[way], t_ns).jitter_us for way in self.directions(hop, t_ns))

    def directions(self, hop: Hop, t_ns: int) -> list[LinkDirection]:
        """Return the link directions of the route between two regions at `t_ns`; empty without a route."""
        if self.rerouted is None:
            return [self.link_of[each] for each in self.routes.get(hop, ())]
        return self.rerouted.directions(hop, t_ns)

    @cached_property
    def direct(self) -> dict[Hop, LinkDirection]:
        """The link direction that carries all packets from a region to another one, if the planned route
        passes no third region.
        """
        return {hop: link for hop, link in self.link_of.items() if self.routes.get(hop, (hop,)) == (hop,)}

    def crossed(self, hops: Iterable[Hop]) -> set[Hop]:
        """Return the links, as hops, that packets between these pairs of regions cross."""
        return {each for hop in hops for each in self.routes.get(hop, ())}

    def reachable(self, owner: str, region: str, t_ns: int) -> bool:
        """Return whether a stream could get from one region to another at `t_ns`.

        It may pass regions between which packets go both ways, by the fixed routes; a routing protocol finds
        any links that are up.
        """
        if self.rerouted is not None:
            down = {way[0] for way, its in self.periods.items() if not period_at(its, t_ns).up}
            leads = self.rerouted.leads.items()
            return region in reached_from(owner, [(a, b) for (a, link), (_, b) in leads if link not in down])
        known, new = {owner}, [owner]
        while new:
            here = new.pop()
            for there in {target for source, target in self.routes if source == here} - known:
                if self._up((here, there), t_ns) and self._up((there, here), t_ns):
                    known.add(there)
                    new.append(there)
        return region in known

    def _up(self, hop: Hop, t_ns: int) -> bool:
        directions = self.directions(hop, t_ns)
        return bool(directions) and all(period_at(self.periods[each], t_ns).up for each in directions)

    @cached_property
    def lans_us(self) -> Mapping[str, tuple[int, int]]:
        """The delays of each region's LAN to and from its servers."""
        return {self.hosts[name].region: self.hosts[name].lan_delay_us for name in self.having(Trait.SERVER)}

    @property
    def window(self) -> RunWindow:
        """The time in which the run can have observed anything."""
        return window_of(self.zero_ns, self.started_ns, self.ended_ns)

    @property
    def whole(self) -> bool:
        """Whether the run completed and every client had the time to get everything."""
        return self.outcome == "completed" and self.drained_ns is not None


def read_metadata(record: RunRecord, clocks: MachineClocks = ONE_CLOCK) -> RunMetadata:
    """Return the metadata in a run's record, with times by the reference clock
    (`machine_clocks.on_reference`).
    """
    plan, times = record.plan, record.times
    collect = plan.collect
    liveness = read_presence(record)
    held = [each.applied_ns for each in record.changes if each.applied_ns is not None]
    return RunMetadata(
        run=record.run,
        experiment=plan.experiment,
        seed=record.seed,
        links_kind=record.links,
        zero_ns=times.zero_ns or times.started_ns or 0,
        stopped_ns=times.stopped_ns,
        drained_ns=times.drained_ns,
        ended_ns=times.ended_ns,
        outcome=record.outcome,
        event_bytes=plan.workload.get("event_size_bytes"),
        rate_per_s=plan.workload.get("rate_per_s"),
        hosts=_hosts(plan),
        owner={stream.number: stream.region for stream in plan.streams},
        stream_names={stream.number: stream.name for stream in plan.streams},
        publishers={stream.number: stream.publishers for stream in plan.streams},
        link_of=carriers(plan),
        routes=hops(plan),
        periods=read_periods(record),
        selected=read_selected(record),
        faults=read_faults(record),
        churn=tuple(read_churn(record)),
        host_of={process.name: process.host for process in plan.processes},
        disturbed=liveness.disturbed,
        gone=liveness.gone,
        starts=liveness.starts,
        collect=(collect.predicate, collect.argument) if collect else None,
        seldom=bool(collect and (collect.every_us or collect.one_of)),
        keyed=bool(plan.workload.get("keys")),
        topic_streams=int(plan.workload.get("publishers", 1)),
        domains=tuple((each.low, each.high) for each in attributes_of(plan.workload)),
        last_change_ns=max(held, default=times.zero_ns or 0),
        clocks=clocks,
        declared=plan.declared,
        reading=known_reading(plan.declared),
        traffic=plan.traffic,
        rerouted=RouteHistory.from_changes(plan, record.routes) if plan.routing else None,
        # For a run on machines, the clock of the starting machine is not known.
        started_ns=None if record.machines else times.started_ns,
    )


def check_planned_streams(table: pa.Table, metadata: RunMetadata, did: str) -> None:
    """Check that all rows (`host`, `stream`) are of the run's streams. Raises AnalysisError if not."""
    planned = pa.array(list(metadata.owner), pa.int32())
    unplanned = table.filter(pc.invert(pc.is_in(table.column("stream"), value_set=planned)))
    if unplanned.num_rows:
        host, stream = (unplanned.column(name)[0].as_py() for name in ("host", "stream"))
        raise AnalysisError(
            f"{host} {did} events of stream {stream}, which is not one of the {len(planned)} in the plan,"
            " so its receivers are unknown"
        )


def _hosts(plan: Plan) -> dict[str, Host]:
    lans = {
        link.name: (
            (link.forward.delay_us, link.backward.delay_us),
            (link.forward.jitter_us, link.backward.jitter_us),
        )
        for link in plan.links
        if link.kind == "lan"
    }
    return {
        host.name: Host(host.name, host.region, host.role, host.address, *lans.get(host.lan_link, ()))
        for host in plan.hosts
    }
