"""The plan of a run as plain data: hosts, addresses, links, captures, processes, changes by time.

`testbed.planning` computes everything that a run needs before anything starts, from an experiment and its
topology alone. The sandbox, the network, the links and the fault scheduler execute the plan; `cutset plan`
prints it; `run.json` records it. Times are microseconds since time 0 of the run, when all nodes are ready and
the drivers start.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field

from experiments.declared import Declared, default_declaration
from experiments.planned.changes import (
    Change,
    LinkChange,
    LinkDirectionName,
    ProcessAction,
    ProcessChange,
)
from experiments.planned.plan_values import NUMBER_MAX, Address, Impairments, Network, Number, Port, Trace
from experiments.records.validated_json import (
    STRICT,
    Count,
    FileName,
    Free,
    Name,
    Seed,
    Text,
    TimeUs,
    from_json,
    to_json,
)
from experiments.workload_fields import workload_problems
from node.core.program import Programs
from node.core.specification import PlannedSubscription
from topologies.errors import InputError
from topologies.link_parameters import LinkParameters
from topologies.link_trace import LinkTrace

SETTLE_US_MAX = 10**11

GATEWAY_ROLE, TRAFFIC_ROLE = "gateway", "traffic-host"
"""Roles of hosts without a process of the system."""


@dataclass(frozen=True, slots=True)
class HostPlan:
    """A Mininet host. Gateways have role "gateway", index 0 and one more interface per WAN link; hosts of
    background traffic have role "traffic-host" and index 0.
    """

    name: FileName  # "r2-proxy-0"; gateways "r2-gw"; traffic hosts "r2-traffic"
    region: Name
    role: Name
    index: Number
    address: Address  # on its LAN, without prefix length
    lan_link: Text  # name of its LAN link ("lan-r2-proxy-0"); "" for gateways, which sit on the bridge


@dataclass(frozen=True, slots=True)
class RegionPlan:
    """A LAN: one bridge, one gateway, hosts behind LAN links."""

    name: Name
    subnet: Network  # "10.2.0.0/16"
    gateway: Name  # host name


@dataclass(frozen=True, slots=True)
class StreamPlan:
    """A stream of numbered events: the region that owns it, and its publishers (regions or processes)."""

    number: Annotated[int, Field(ge=0, lt=1 << 31)]
    region: Name
    name: Name
    publishers: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class LinkPlan:
    """A link and its two directions. WAN links join gateways; LAN links a host (a) and its region (b)."""

    name: Name  # "r2-r3", or "lan-r2-proxy-0"
    kind: Literal["wan", "lan"]
    a: Name  # region (wan) or host (lan)
    b: Name  # region
    forward: Impairments
    backward: Impairments
    a_address: str = ""  # wan only: the gateways' addresses on it
    b_address: str = ""
    subnet: str = ""  # wan only: "10.255.0.4/30"
    weight: Count = 0  # wan only: policy weight; routing compares it before delays
    forward_trace: Trace | None = None  # trace of the direction from time 0 on
    backward_trace: Trace | None = None

    @property
    def given_name(self) -> str:
        """Its name if the topology gives one, as for parallel links; else empty."""
        return "" if self.name == f"{self.a}-{self.b}" else self.name

    def trace(self, direction: str) -> LinkTrace | None:
        """Return the trace that this direction follows from time 0 on."""
        return self.forward_trace if direction == LinkDirectionName.FORWARD else self.backward_trace

    def towards(self, direction: str) -> LinkParameters:
        """Return the impairments of this direction."""
        return self.forward if direction == LinkDirectionName.FORWARD else self.backward


@dataclass(frozen=True, slots=True)
class ProcessPlan:
    """One node process, alone on its host."""

    name: Name  # "r2/proxy-0"
    host: FileName  # "r2-proxy-0"
    region: Name
    role: Name
    index: Number
    seed: Seed
    subscriptions: tuple[PlannedSubscription, ...] = ()  # for a subscriber, if the workload has subscriptions
    rows: Text = ""  # for a publisher, if events are from a file: `experiments.workloads.workload`


@dataclass(frozen=True, slots=True)
class CapturePlan:
    """A capture file of a host (`host` is set), or of one side of an emulated WAN link (`link`, `side`)."""

    file: FileName  # "r2-proxy-0-eth0.pcap", "r2-r3@r2.pcap"
    host: Name | None = None
    interface: Name = "eth0"
    link: Name | None = None
    side: Name | None = None  # the region on whose side of the emulator it captures
    in_parts: bool = False  # true only in older records, of runs that were watched
    wire: bool = False  # behind the emulator, on the way to another machine: headers only, to compare clocks


@dataclass(frozen=True, slots=True)
class Strike:
    """The time and place from which a fault's figures count; no place if it never has an effect
    (`experiments.planned.strikes`).
    """

    at_us: TimeUs
    directions: tuple[tuple[Name, LinkDirectionName], ...] = ()  # link and direction
    processes: tuple[Name, ...] = ()


@dataclass(frozen=True, slots=True)
class FaultPlan:
    """A fault as the experiment requests it."""

    name: Name
    kind: Name  # as in `experiments.faults`: cut, restore, set, kill...
    target: Text  # "r2-r3", "r2", "r2/proxy-0", "r0 r1 | r2 r3"
    at_us: TimeUs
    until_us: TimeUs | None = None  # end of its last effect on links, if within the run
    strike: Strike | None = None  # None in plans of older versions: see the changes of this name


@dataclass(frozen=True, slots=True)
class ChurnPlan:
    """Arrivals or departures as the experiment requests them; the resulting changes carry their name."""

    name: Name
    kind: Literal["arrivals", "departures"]
    target: Text  # "12 member of r0 r1: uniform, by crash"
    count: Count  # processes that arrive or leave
    returns: Count  # restarts of processes that left
    at_us: TimeUs
    until_us: TimeUs


@dataclass(frozen=True, slots=True)
class BurstPlan:
    """A period in which an entry of traffic sends; its server listens on `port`, which no other burst
    uses.
    """

    at_us: TimeUs
    length_s: Annotated[int, Field(ge=1, le=10**7)]
    port: Port


@dataclass(frozen=True, slots=True)
class TrafficPlan:
    """Background traffic (`experiments.traffic`), from one host to another in another region."""

    name: FileName
    host: FileName  # the sender
    target: FileName  # the receiver
    protocol: Literal["tcp", "udp"]
    flows: Annotated[int, Field(ge=1, le=NUMBER_MAX)]
    rate_bits_per_s: Count | None  # of all flows together; None: unlimited
    at_us: TimeUs
    until_us: TimeUs
    bursts: tuple[BurstPlan, ...]


@dataclass(frozen=True, slots=True)
class CollectPlan:
    """The earlier events that an event collects, and how often events collect
    (`experiments.workloads.stream`).
    """

    predicate: Literal["last", "older_than", "same_key"]
    argument: Count
    every_us: Count | None = None
    one_of: Count | None = None


@dataclass(frozen=True, slots=True)
class RoutingPlan:
    """The routing protocol of all gateways, with its timers (`topologies.routing`)."""

    protocol: Literal["ospf", "bgp"]
    hello_s: Annotated[int, Field(ge=1, le=3_600)]
    dead_s: Annotated[int, Field(ge=1, le=3_600)]
    bfd_interval_ms: Annotated[int, Field(ge=10, le=60_000)] | None = None  # None: no BFD
    bfd_multiplier: Annotated[int, Field(ge=2, le=255)] = 3


@dataclass(frozen=True, slots=True)
class Plan:
    """The whole run."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    experiment: Name
    system: Name
    parameters: Free  # the system's own, validated and complete, keys with unit suffixes
    workload: Free  # see experiments.workloads: `Workload.as_plan`
    seed: Seed
    duration_us: TimeUs
    drain_us: TimeUs  # bound on the drain after the drivers stop
    links_kind: str  # auto | netem | relay; auto uses relay if netem lacks a feature
    congestion_control: Name | None  # TCP's, on all hosts; None is the kernel's own choice
    snaplen_bytes: Count | None  # None captures whole packets
    regions: tuple[RegionPlan, ...]
    hosts: tuple[HostPlan, ...]
    links: tuple[LinkPlan, ...]
    processes: tuple[ProcessPlan, ...]
    captures: tuple[CapturePlan, ...]
    faults: tuple[FaultPlan, ...]
    changes: tuple[Change, ...]  # sorted by time
    churn: tuple[ChurnPlan, ...] = ()
    streams: tuple[StreamPlan, ...] = ()  # by number
    declared: Declared = field(
        default_factory=default_declaration
    )  # the system's declaration: roles, contract
    programs: Programs | None = None  # for a system whose nodes are programs
    traffic: tuple[TrafficPlan, ...] = ()  # background traffic, between hosts of its own
    routing: RoutingPlan | None = None  # None: gateways have fixed routes

    def having(self, *traits: str) -> tuple[ProcessPlan, ...]:
        """Return the processes whose roles have any of these traits."""
        roles = self.declared.having(*traits)
        return tuple(process for process in self.processes if process.role in roles)

    def streams_of(self, region: str) -> tuple[StreamPlan, ...]:
        """Return the streams owned by a region."""
        return tuple(stream for stream in self.streams if stream.region == region)

    @property
    def collect(self) -> CollectPlan | None:
        """The rule by which events are collected, or None."""
        given = self.workload.get("collect")
        return None if given is None else from_json(CollectPlan, given, "workload.collect")

    @property
    def port(self) -> int | None:
        """The port of the system's servers, or None."""
        port = self.parameters.get("port")
        return port if isinstance(port, int) and 0 < port < 1 << 16 else None

    @property
    def triggered(self) -> tuple[Change, ...]:
        """The changes that wait for a trigger."""
        return tuple(change for change in self.changes if change.when is not None)

    def waits_until_us(self, index: int) -> int:
        """Return the time until which a triggered change may be applied.

        That is the next change of the same link, or the change that ends its effect on a process. If the
        latter comes before the trigger, the triggered change is dropped.
        """
        change = self.changes[index]
        later = (each.at_us for each in self.changes[index + 1 :] if _ends(each, change))
        return min(later, default=self.duration_us)

    @property
    def joining(self) -> tuple[str, ...]:
        """The processes that start after time 0."""
        return tuple(
            change.process
            for change in self.changes
            if isinstance(change, ProcessChange) and change.action is ProcessAction.JOIN
        )


ENDING: Mapping[ProcessAction, tuple[ProcessAction, ...]] = {
    ProcessAction.KILL: (ProcessAction.RESTART, ProcessAction.REPLACE),
    ProcessAction.LEAVE: (ProcessAction.RESTART, ProcessAction.REPLACE),
    ProcessAction.STOP: (ProcessAction.CONTINUE,),
    ProcessAction.SEPARATE: (ProcessAction.REJOIN,),
}
"""The actions that end an action on a process."""


def _ends(later: Change, change: Change) -> bool:
    """Return whether a later change ends the effect of a triggered one."""
    if isinstance(later, LinkChange):
        return isinstance(change, LinkChange) and (later.place, later.direction) == (
            change.place,
            change.direction,
        )
    return (
        isinstance(change, ProcessChange)
        and later.action in ENDING.get(change.action, ())
        and change.process == later.process
        and set(change.peers) <= set(later.peers)
    )


def plan_to_json(plan: Plan) -> dict[str, Any]:
    """Convert the plan to plain JSON, for run.json."""
    return to_json(plan)


def plan_from_json(content: Any, file: object = "run.json") -> Plan:
    """Read and check the plan that `plan_to_json` wrote. Raises InputError with the field."""
    plan = from_json(Plan, content, file)
    check_plan(plan, file)
    return plan


def check_plan(plan: Plan, file: object, within: str = "") -> None:
    """Check that all references in a plan are defined. within: `plan.`, or "". Raises InputError."""
    for field_, problem in _contradictions(plan):
        raise InputError(str(file), None, within + field_, problem)


def _contradictions(plan: Plan) -> Iterator[tuple[str, str]]:
    """Yield field and problem of each contradiction."""
    regions = {region.name for region in plan.regions}
    hosts = {host.name for host in plan.hosts}
    links = {link.name for link in plan.links}
    processes = {process.name for process in plan.processes}
    ends = hosts | regions
    try:
        _ = plan.collect
    except InputError as error:
        yield "workload.collect", ": ".join(filter(None, (error.field, error.problem)))
    if not 0 <= plan.declared.contract.settle_us <= SETTLE_US_MAX:
        yield "declared.contract.settle_us", f"{plan.declared.contract.settle_us} is not a valid settle time"
    yield from workload_problems(plan.workload)
    named = {
        "regions": [region.name for region in plan.regions],
        "hosts": [host.name for host in plan.hosts],
        "links": [link.name for link in plan.links],
        "processes": [process.name for process in plan.processes],
        "traffic": [each.name for each in plan.traffic],
    }
    for kind, names in named.items():
        for name, count in Counter(names).items():
            if count > 1:
                yield kind, f"{name} is listed {count} times"
    for field_, name, known in (
        *((f"streams.{n}.region", stream.region, regions) for n, stream in enumerate(plan.streams)),
        *((f"hosts.{n}.region", host.region, regions) for n, host in enumerate(plan.hosts)),
        *(
            (f"links.{n}.a", link.a, regions if link.kind == "wan" else ends)
            for n, link in enumerate(plan.links)
        ),
        *((f"links.{n}.b", link.b, regions) for n, link in enumerate(plan.links)),
        *((f"processes.{n}.host", process.host, hosts) for n, process in enumerate(plan.processes)),
        *((f"traffic.{n}.host", each.host, hosts) for n, each in enumerate(plan.traffic)),
        *((f"traffic.{n}.target", each.target, hosts) for n, each in enumerate(plan.traffic)),
        *(
            (f"changes.{n}", change.link, links)
            if isinstance(change, LinkChange)
            else (f"changes.{n}", change.process, processes)
            for n, change in enumerate(plan.changes)
        ),
        *(
            (f"changes.{n}.selects", change.selects.process, processes)
            for n, change in enumerate(plan.changes)
            if isinstance(change, LinkChange) and change.selects and change.selects.process
        ),
        *_struck(plan.faults, links, processes),
    ):
        if name not in known:
            yield field_, f"the plan has no {name}"


def _struck(
    faults: Sequence[FaultPlan], links: Set[str], processes: Set[str]
) -> Iterator[tuple[str, str, Set[str]]]:
    """Yield field, name and known names of each strike."""
    for number, strike in enumerate(fault.strike for fault in faults):
        for link, _ in () if strike is None else strike.directions:
            yield f"faults.{number}.strike", link, links
        for process in () if strike is None else strike.processes:
            yield f"faults.{number}.strike", process, processes
