"""What a run says about itself, read from run.json into plain data: places, streams, faults and when they
held.

Everything that the timelines need besides packets, messages and deliveries stands here, once: which host is
what, who owns which stream, which links join the regions, which fault disturbed which link direction, and
the run's times. It is small and can be sent to Spark's workers whole.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc

from analysis.capture.clocks.machine_clocks import ONE_CLOCK, MachineClocks
from analysis.errors import AnalysisError
from analysis.messages.marked import known_reading
from analysis.timelines.links.periods import LinkDirection, Period, period_at, read_periods
from analysis.timelines.liveness import read_presence
from analysis.timelines.run_window import RunWindow, window_of
from experiments.declared import Declared, Trait, oldest
from experiments.planned.changes import MENDING, Direction, LinkChange, ProcessChange
from experiments.planned.plan import GATEWAY_ROLE, FaultPlan, Plan, Strike, TrafficPlan
from experiments.planned.plan_routes import hops
from experiments.records.run_record import RunRecord
from node.core.content.content import Range, attributes_of
from node.core.declaration import Reading
from node.core.message_layout import KEY, WIDTHS
from node.systems import reading_of
from topologies.link_parameters import LinkParameters
from topologies.routes import Hop


@dataclass(frozen=True, slots=True)
class Host:
    """A host of the run; `lan_delay_us` and `lan_jitter_us` are one way, to and from its gateway."""

    name: str
    region: str
    role: str
    address: str
    lan_delay_us: tuple[int, int] = (0, 0)
    lan_jitter_us: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault as it was asked for, and when its strike held (None: never)."""

    name: str
    kind: str
    target: str
    requested_s: float
    applied_ns: int | None
    hops: Mapping[Hop, int] = field(default_factory=dict)  # that it struck -> when that held
    processes: tuple[str, ...] = ()  # hosts of the processes that it acted on
    struck_at_us: int | None = None  # when it was planned to strike; None: after something else happens

    @property
    def t_ns(self) -> int:
        """When it took hold, for faults that are known to have done so. Raises AnalysisError otherwise."""
        if self.applied_ns is None:
            raise AnalysisError(f"fault {self.name} never took hold, so nothing can be measured from it")
        return self.applied_ns

    @property
    def struck_ns(self) -> int:
        """When it held on the last of the links that it struck: they change one after the other."""
        return max(self.hops.values(), default=self.t_ns)

    @property
    def mends(self) -> bool:
        """Whether it takes a disturbance back rather than make one."""
        return self.kind in MENDING


@dataclass(frozen=True)
class RunMetadata:
    """A run's metadata for the timelines. Times are CLOCK_REALTIME nanoseconds by the run's reference clock.

    What requires a pass over all hosts is cached: there may be a hundred thousand.
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
    routes: Mapping[Hop, tuple[Hop, ...]] = field(default_factory=dict)  # between any two regions
    periods: Mapping[LinkDirection, tuple[Period, ...]] = field(default_factory=dict)
    faults: tuple[Fault, ...] = ()
    churn: tuple[Fault, ...] = ()  # each arrival and departure that took hold, in order of time
    host_of: Mapping[str, str] = field(default_factory=dict)  # process -> host
    disturbed: frozenset[str] = frozenset()  # hosts whose process did not run from beginning to end
    gone: frozenset[str] = frozenset()  # of these, the ones whose process was not there at the end
    starts: Mapping[str, int] = field(default_factory=dict)  # how often, where it is not once
    collect: tuple[str, int] | None = None  # the rule by which events are collected, and its argument
    seldom: bool = False  # only one event in a while collects: drivers mark which
    keyed: bool = False  # events carry keys, so that two of them may be alike
    topic_streams: int = 1  # of a topic: each is one of its publishers
    domains: tuple[Range, ...] = ()  # of events' attributes: their lowest and highest values
    last_change_ns: int = 0  # when the last change that a fault made held; time 0 if there was none
    clocks: MachineClocks = ONE_CLOCK  # of the machines: what is read from then on is by the reference clock
    started_ns: int | None = None  # when the run was planned, before time 0
    declared: Declared = field(default_factory=oldest)  # what the system says of itself
    reading: Reading = field(default_factory=lambda: reading_of(oldest().name) or Reading())
    traffic: tuple[TrafficPlan, ...] = ()  # other people's

    def having(self, *traits: str) -> tuple[str, ...]:
        """Names of the hosts whose roles have any of these traits, in the plan's order."""
        if traits not in self._having:
            roles = self.declared.having(*traits)
            self._having[traits] = tuple(host.name for host in self.hosts.values() if host.role in roles)
        return self._having[traits]

    @cached_property
    def _having(self) -> dict[tuple[str, ...], tuple[str, ...]]:
        return {}

    def has(self, host: Host | str, *traits: str) -> bool:
        """Whether a host's role has any of these traits."""
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

    @property
    def by_host(self) -> bool:
        """See `node.core.declaration.Declared`."""
        return self.declared.by_host

    def publishing_hosts(self, stream: int) -> frozenset[str]:
        """The hosts that publish on a stream."""
        names = self.publishing(stream)
        return frozenset(host for host in self.having(Trait.PUBLISHER) if names & self.named_as(host))

    @cached_property
    def stream_at(self) -> dict[bytes, int]:
        """Streams by the keys by which messages name them, the first one of those with the same key."""
        last_first = sorted(self.owner, reverse=True)
        return {key: stream for stream in last_first if (key := self.key_of(stream)) is not None}

    def key_of(self, stream: int) -> bytes | None:
        """The key of a stream's topic; None where messages name none."""
        key_of = self.reading.key_of
        return None if key_of is None else key_of(self.topic_of(stream)).to_bytes(WIDTHS[KEY], "big")

    def topic_of(self, stream: int) -> int:
        """The topic of a stream, which is one of its publishers (`experiments.workloads.topics`)."""
        return stream // self.topic_streams

    @cached_property
    def applied_faults(self) -> tuple[Fault, ...]:
        """The faults that took hold, in order of time."""
        applied = [fault for fault in self.faults if fault.applied_ns is not None]
        return tuple(sorted(applied, key=lambda fault: fault.t_ns))

    @cached_property
    def applied_changes(self) -> tuple[Fault, ...]:
        """Also each arrival and departure: all that decides what a client was to get. By time."""
        return tuple(sorted((*self.applied_faults, *self.churn), key=lambda fault: fault.t_ns))

    @cached_property
    def instants(self) -> tuple[tuple[Fault, ...], ...]:
        """The faults that took hold, those of one instant together, in order of time."""
        found: list[tuple[Fault, ...]] = []
        for fault in self.applied_faults:
            if found and _at_once(found[-1][0], fault):
                found[-1] = (*found[-1], fault)
            else:
                found.append((fault,))
        return tuple(found)

    @cached_property
    def instant_starts_ns(self) -> tuple[int, ...]:
        """When each instant's first fault took hold."""
        return tuple(faults[0].t_ns for faults in self.instants)

    @cached_property
    def instant_of(self) -> tuple[int, ...]:
        """The number of the instant of each fault that took hold."""
        return tuple(number for number, faults in enumerate(self.instants) for _ in faults)

    def instant_number(self, fault: Fault) -> int:
        """The number of the instant of a fault that took hold."""
        return self._instants[fault.name]

    @cached_property
    def _instants(self) -> dict[str, int]:
        return {fault.name: number for number, faults in enumerate(self.instants) for fault in faults}

    def next_fault_ns(self, fault: Fault) -> int | None:
        """When the first fault of a later instant took hold; None for the last."""
        later = self.instant_starts_ns[self.instant_number(fault) + 1 :]
        return later[0] if later else None

    @property
    def clients(self) -> tuple[str, ...]:
        """Names of the hosts that take events, in the plan's order."""
        return self.having(Trait.SUBSCRIBER)

    def of_region(self, region: str, *traits: str) -> tuple[str, ...]:
        """Names of the hosts of a region whose roles have any of these traits."""
        return tuple(name for name in self.having(*traits) if self.hosts[name].region == region)

    def publishing(self, stream: int) -> frozenset[str]:
        """What names the publishers of a stream: regions, for all of theirs, and processes."""
        return frozenset(self.publishers.get(stream) or (self.owner[stream],))

    def named_as(self, host: str) -> frozenset[str]:
        """What names a publisher: its region, and its process."""
        processes = (process for process, its_host in self.host_of.items() if its_host == host)
        return frozenset((self.hosts[host].region, *processes))

    def gateways_of(self, region: str) -> tuple[str, ...]:
        """Names of a region's gateways."""
        return self._gateways.get(region, ())

    @cached_property
    def _gateways(self) -> dict[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        for host in self.hosts.values():
            if host.role == GATEWAY_ROLE:
                found[host.region] = (*found.get(host.region, ()), host.name)
        return found

    @cached_property
    def steady_clients(self) -> tuple[str, ...]:
        """The clients that ran from beginning to end; "every client" means these."""
        return tuple(name for name in self.clients if name not in self.disturbed)

    def seconds(self, t_ns: int) -> float:
        """Seconds since time 0 of the run."""
        return (t_ns - self.zero_ns) / 1e9

    def delay_us(self, hop: Hop, t_ns: int) -> int:
        """The one-way delay that the route from one region to another was configured to have at `t_ns`; 0
        where there is none.
        """
        return sum(period.delay_us for period in self._on_route(hop, t_ns))

    def jitter_us(self, hop: Hop, t_ns: int) -> int:
        """By how much `delay_us` of a route may be off, at most, by the links' jitter; microseconds."""
        return sum(period.jitter_us for period in self._on_route(hop, t_ns))

    def _on_route(self, hop: Hop, t_ns: int) -> list[Period]:
        directions = [self.link_of[each] for each in self.routes.get(hop, ())]
        return [period_at(self.periods[direction], t_ns) for direction in directions]

    def crossed(self, hops: Iterable[Hop]) -> set[Hop]:
        """The links, as hops, that packets between these pairs of regions cross."""
        return {each for hop in hops for each in self.routes.get(hop, ())}

    def reachable(self, owner: str, region: str, t_ns: int) -> bool:
        """Whether a stream could come from one region to another at `t_ns`: over regions between which
        packets go both ways, by the fixed routes.
        """
        known, new = {owner}, [owner]
        while new:
            here = new.pop()
            for there in {target for source, target in self.routes if source == here} - known:
                if self._up((here, there), t_ns) and self._up((there, here), t_ns):
                    known.add(there)
                    new.append(there)
        return region in known

    def _up(self, hop: Hop, t_ns: int) -> bool:
        periods = self._on_route(hop, t_ns)
        return bool(periods) and all(period.up for period in periods)

    @cached_property
    def lans_us(self) -> Mapping[str, tuple[int, int]]:
        """What a region's LAN takes to and from its servers."""
        return {self.hosts[name].region: self.hosts[name].lan_delay_us for name in self.having(Trait.SERVER)}

    @property
    def window(self) -> RunWindow:
        """When the run can have seen anything."""
        return window_of(self.zero_ns, self.started_ns, self.ended_ns)

    @property
    def whole(self) -> bool:
        """Whether the run went to its end and every client was given the time to get everything."""
        return self.outcome == "completed" and self.drained_ns is not None


def read_metadata(record: RunRecord, clocks: MachineClocks = ONE_CLOCK) -> RunMetadata:
    """RunMetadata from a run's record, with times by the reference clock (`clocks.machines.on_reference`)."""
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
        link_of=_links_by_hop(plan),
        routes=hops(plan),
        periods=read_periods(record),
        faults=tuple(map(_Applied.of(record).fault, plan.faults)),
        churn=tuple(_churn(record)),
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
        # Of a run on machines it is by the clock of whoever started it, which may show anything.
        started_ns=None if record.machines else times.started_ns,
    )


def refuse_unplanned(table: pa.Table, metadata: RunMetadata, did: str) -> None:
    """Raises AnalysisError if a row (`host`, `stream`) is of a stream that is none of the run's."""
    planned = pa.array(list(metadata.owner), pa.int32())
    strange = table.filter(pc.invert(pc.is_in(table.column("stream"), value_set=planned)))
    if strange.num_rows:
        host, stream = (strange.column(name)[0].as_py() for name in ("host", "stream"))
        raise AnalysisError(
            f"{host} {did} events of stream {stream}, which is none of the {len(planned)} of the plan:"
            " who is to get them is not known"
        )


def _hosts(plan: Plan) -> dict[str, Host]:
    nothing = LinkParameters()
    lans = {link.name: (link.forward, link.backward) for link in plan.links if link.kind == "lan"}
    hosts = {}
    for host in plan.hosts:
        there, back = lans.get(host.lan_link, (nothing, nothing))
        hosts[host.name] = Host(
            host.name,
            host.region,
            host.role,
            host.address,
            (there.delay_us, back.delay_us),
            (there.jitter_us, back.jitter_us),
        )
    return hosts


def _links_by_hop(plan: Plan) -> dict[Hop, LinkDirection]:
    """Which link a hop crosses, and in which of its directions."""
    found: dict[Hop, LinkDirection] = {}
    for link in plan.links:
        if link.kind == "wan":
            found[link.a, link.b] = (link.name, Direction.FORWARD)
            found[link.b, link.a] = (link.name, Direction.BACKWARD)
    return found


def _churn(record: RunRecord) -> Iterator[Fault]:
    """One fault for each process that came or went as part of a group."""
    groups = {each.name for each in record.plan.churn}
    hosts = {process.name: process.host for process in record.plan.processes}
    for change, applied in record.carried_out:
        if change.fault in groups and isinstance(change, ProcessChange) and applied.applied_ns is not None:
            yield Fault(
                name=change.fault,
                kind=str(change.action),
                target=change.process,
                requested_s=change.at_us / 1e6,
                applied_ns=applied.applied_ns,
                processes=(hosts[change.process],),
            )


def _at_once(fault: Fault, other: Fault) -> bool:
    """Whether two faults are of one instant: planned for the same time, or in effect at the same."""
    planned = fault.struck_at_us is not None and fault.struck_at_us == other.struck_at_us
    return planned or fault.t_ns == other.t_ns


@dataclass(frozen=True, slots=True)
class _Applied:
    """When each planned change of a run took effect."""

    plan: Plan
    hosts: Mapping[str, str]  # by process
    hop_of: Mapping[LinkDirection, Hop]
    of_link: Mapping[
        LinkDirection, Sequence[tuple[int, int | None]]
    ]  # planned time and when it held, by time
    of_process: Mapping[tuple[str, int], Mapping[str, int | None]]  # with the time; by fault
    zero_ns: int | None
    end_ns: int | None

    @classmethod
    def of(cls, record: RunRecord) -> Self:
        """Of a run."""
        plan, times = record.plan, record.times
        held: dict[int, int | None] = {}
        for each in record.changes:
            held.setdefault(each.index, each.applied_ns)
        of_link: defaultdict[LinkDirection, list[tuple[int, int | None]]] = defaultdict(list)
        of_process: defaultdict[tuple[str, int], dict[str, int | None]] = defaultdict(dict)
        for number, change in enumerate(plan.changes):
            if isinstance(change, LinkChange):
                of_link[change.link, change.direction].append((change.at_us, held.get(number)))
            else:
                of_process[change.process, change.at_us].setdefault(change.fault, held.get(number))
        return cls(
            plan,
            {process.name: process.host for process in plan.processes},
            {direction: hop for hop, direction in _links_by_hop(plan).items()},
            of_link,
            of_process,
            times.zero_ns,
            times.stopped_ns or times.ended_ns,
        )

    def fault(self, fault: FaultPlan) -> Fault:
        """A fault with when its strike held."""
        strike, waits = fault.strike, self._waits(fault)
        strike = self._strike_by_name(fault) if strike is None else strike
        on_links = {each: self._on_link(each, strike.at_us) for each in strike.directions}
        on_processes = {each: self._on_process(each, strike.at_us, fault.name) for each in strike.processes}
        held = [t_ns for t_ns in (*on_links.values(), *on_processes.values()) if t_ns is not None]
        hops = {self.hop_of[each]: t_ns for each, t_ns in on_links.items() if each in self.hop_of}
        return Fault(
            name=fault.name,
            kind=fault.kind,
            target=fault.target,
            requested_s=fault.at_us / 1e6,
            applied_ns=min(held, default=None),
            hops={hop: t_ns for hop, t_ns in hops.items() if t_ns is not None},
            processes=tuple(sorted({self.hosts[name] for name in on_processes})),
            struck_at_us=None if waits else strike.at_us,
        )

    def _on_link(self, direction: LinkDirection, at_us: int) -> int | None:
        """When a link direction did what was planned for a time. It may do so already: no change is planned
        then.
        """
        before = [row for row in self.of_link.get(direction, ()) if row[0] <= at_us]
        planned_us, held_ns = before[-1] if before else (None, self.zero_ns)
        return held_ns if planned_us == at_us or held_ns is None else self._nominal_ns(at_us)

    def _on_process(self, process: str, at_us: int, fault: str) -> int | None:
        """When a process did what was planned for a time; several changes may be planned for it."""
        planned = self.of_process.get((process, at_us), {})
        if fault in planned:
            return planned[fault]
        return next(iter(planned.values())) if planned else self._nominal_ns(at_us)

    def _nominal_ns(self, at_us: int) -> int | None:
        """A time of the plan, if the run came so far."""
        t_ns = None if self.zero_ns is None else self.zero_ns + 1000 * at_us
        return None if t_ns is None or (self.end_ns is not None and t_ns > self.end_ns) else t_ns

    def _waits(self, fault: FaultPlan) -> bool:
        return any(change.fault == fault.name and change.when for change in self.plan.changes)

    def _strike_by_name(self, fault: FaultPlan) -> Strike:
        """The strike of a fault of a plan that does not say it: the first changes with its name."""
        mine = [change for change in self.plan.changes if change.fault == fault.name]
        at_us = min((change.at_us for change in mine), default=fault.at_us)
        first = [change for change in mine if change.at_us == at_us]
        links = [(change.link, change.direction) for change in first if isinstance(change, LinkChange)]
        processes = [change.process for change in first if isinstance(change, ProcessChange)]
        return Strike(at_us, tuple(dict.fromkeys(links)), tuple(dict.fromkeys(processes)))
