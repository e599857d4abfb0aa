"""What a run will do, as plain data: hosts, addresses, links, captures, processes, changes by time.

Everything that a run needs to know is decided here, before anything is started, from an experiment and its
topology alone (`testbed.planning` computes it). The sandbox, the network, the links and the fault scheduler
only carry it out; `cutset plan` prints it; `run.json` records it. Times are microseconds since time 0 of
the run, when all nodes are ready and the drivers start.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import Any

from pydantic import TypeAdapter

from experiments.declared import Declared, oldest
from topologies.shape import Shape


class LinkState(StrEnum):
    """Whether frames cross: see DESIGN's "Meanings". BLACKHOLE is silent, DOWN takes the interfaces down."""

    UP = "up"
    BLACKHOLE = "blackhole"
    DOWN = "down"


class Direction(StrEnum):
    """FORWARD is from `LinkPlan.a` to `LinkPlan.b`; a host's LAN link is forward from host to region."""

    FORWARD = "forward"
    BACKWARD = "backward"


class ProcessAction(StrEnum):
    """What a fault does to a node process: SIGKILL, SIGSTOP, SIGCONT, start it again after its end, the same
    on an empty disk, tell all others that it will not come back, start it for the first time, let it end, or
    keep its packets from others of its region.
    """

    KILL = "kill"
    STOP = "stop"
    CONTINUE = "continue"
    RESTART = "restart"
    REPLACE = "replace"
    GIVE_UP = "give-up"
    JOIN = "join"
    LEAVE = "leave"
    SEPARATE = "separate"
    REJOIN = "rejoin"


@dataclass(frozen=True, slots=True)
class HostPlan:
    """A Mininet host. Gateways have role "gateway", index 0 and one more interface per WAN link."""

    name: str  # "r2-proxy-0"; gateways "r2-gw"
    region: str
    role: str
    index: int
    address: str  # on its LAN, without prefix length
    lan_link: str  # name of its LAN link ("lan-r2-proxy-0"); "" for gateways, which sit on the bridge


@dataclass(frozen=True, slots=True)
class RegionPlan:
    """A LAN: one bridge, one gateway, hosts behind LAN links."""

    name: str
    subnet: str  # "10.2.0.0/16"
    gateway: str  # host name


@dataclass(frozen=True, slots=True)
class StreamPlan:
    """What numbers events, the region that owns it, and who publishes on it: regions, single processes."""

    number: int
    region: str
    name: str
    publishers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LinkPlan:
    """A link and its two directions. WAN links join gateways; LAN links a host (a) and its region (b)."""

    name: str  # "r2-r3", or "lan-r2-proxy-0"
    kind: str  # "wan" | "lan"
    a: str  # region (wan) or host (lan)
    b: str  # region
    forward: Shape
    backward: Shape
    a_address: str = ""  # wan only: the gateways' addresses on it
    b_address: str = ""
    subnet: str = ""  # wan only: "10.255.0.4/30"


@dataclass(frozen=True, slots=True)
class ProcessPlan:
    """One node process, alone on its host."""

    name: str  # "r2/proxy-0"
    host: str  # "r2-proxy-0"
    region: str
    role: str
    index: int
    seed: int


@dataclass(frozen=True, slots=True)
class CapturePlan:
    """One capture file. A host's (`host` set) or one side of a WAN link's middle (`link` and `side` set)."""

    file: str  # "r2-proxy-0-eth0.pcap", "r2-r3@r2.pcap"
    host: str | None = None
    interface: str = "eth0"
    link: str | None = None
    side: str | None = None  # the region at whose side of the middle it listens
    in_parts: bool = False  # of a second each, for who watches the run; one file in the end
    wire: bool = False  # beyond the middle, on the way to another machine: headers only, to compare clocks


@dataclass(frozen=True, slots=True)
class LinkChange:
    """From `at_us` on, this direction of this link is in `state` with `shape`, because of `fault`."""

    at_us: int
    fault: str
    link: str
    direction: Direction
    state: LinkState
    shape: Shape


@dataclass(frozen=True, slots=True)
class ProcessChange:
    """At `at_us`, `action` is done to `process`, because of `fault`."""

    at_us: int
    fault: str
    process: str
    action: ProcessAction
    peers: tuple[str, ...] = ()  # from whom its packets are kept, or to whom they go again


@dataclass(frozen=True, slots=True)
class FaultPlan:
    """A fault as it was asked for; its changes carry its name."""

    name: str
    kind: str  # that of `experiments.faults`: cut, restore, set, kill...
    target: str  # "r2-r3", "r2", "r2/proxy-0", "r0 r1 | r2 r3"
    at_us: int
    until_us: int | None = None  # when its last effect on links ends, if it does within the run


@dataclass(frozen=True, slots=True)
class Plan:
    """The whole run."""

    experiment: str
    system: str
    parameters: dict[str, Any]  # the system's own, validated and complete, keys with unit suffixes
    workload: dict[str, Any]  # see experiments.workload: `Workload.as_plan`
    seed: int
    duration_us: int
    drain_us: int  # bound on the drain after the drivers stop
    links_kind: str  # auto | netem | relay, as asked
    congestion_control: str | None  # TCP's, on all hosts; None is the kernel's own choice
    snaplen_bytes: int | None  # None captures whole packets
    regions: tuple[RegionPlan, ...]
    hosts: tuple[HostPlan, ...]
    links: tuple[LinkPlan, ...]
    processes: tuple[ProcessPlan, ...]
    captures: tuple[CapturePlan, ...]
    faults: tuple[FaultPlan, ...]
    changes: tuple[LinkChange | ProcessChange, ...]  # sorted by time
    streams: tuple[StreamPlan, ...] = ()  # by number
    declared: Declared = field(default_factory=oldest)  # what the system says of itself: roles, contract

    def having(self, *traits: str) -> tuple[ProcessPlan, ...]:
        """The processes whose roles have any of these traits."""
        roles = self.declared.having(*traits)
        return tuple(process for process in self.processes if process.role in roles)

    def streams_of(self, region: str) -> tuple[StreamPlan, ...]:
        """The streams that a region owns."""
        return tuple(stream for stream in self.streams if stream.region == region)

    @property
    def joining(self) -> tuple[str, ...]:
        """The processes that are not started before time 0 but later."""
        return tuple(
            change.process
            for change in self.changes
            if isinstance(change, ProcessChange) and change.action is ProcessAction.JOIN
        )


def plan_to_json(plan: Plan) -> dict[str, Any]:
    """The plan as plain JSON, for run.json."""
    content: dict[str, Any] = _adapter().dump_python(plan, mode="json")
    return content


def plan_from_json(content: dict[str, Any]) -> Plan:
    """The plan that `plan_to_json` wrote. Raises pydantic.ValidationError if it is none."""
    return _adapter().validate_python(content)


@cache
def _adapter() -> TypeAdapter[Plan]:
    return TypeAdapter(Plan)
