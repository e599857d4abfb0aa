"""The part of a plan that one machine carries out, where several machines carry out one plan. Pure.

Every machine knows the whole plan: addresses, routes and members are the same everywhere. An assignment says
which of the plan's hosts are on this machine; its processes, captures and changes follow from that
(`assigned_part`). A host elsewhere is reached through a tunnel: a device in the sandbox's root namespace that
replaces what would be there if the host were here, the far end of a WAN link or a port of a region's bridge.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Annotated, Any

from pydantic import PlainSerializer, TypeAdapter

from experiments.planned.changes import Change, Direction, LinkChange, ProcessAction
from experiments.planned.plan import CapturePlan, LinkPlan, Plan
from testbed.tunnel import Tunnel
from topologies.link_parameters import LinkParameters
from topologies.link_trace import LinkTrace

WIRE_SNAPLEN_BYTES = 128
"""For captures between machines: Ethernet, IP and TCP headers with options, enough to tell packets apart."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """What one machine carries out of a plan.

    hosts: those on this machine. tunnels: to other machines. behind: for hosts elsewhere of a region that is
    partly here, the tunnel to each, by the host's name. emulates: whether our link emulators apply parameters
    to links between machines; otherwise the site's own links do, and ours are only cut. system_folder: where
    the folder of a system of programs lies on this machine; "": where the plan says.
    """

    machine: str
    hosts: Annotated[frozenset[str], PlainSerializer(sorted, when_used="json")]
    tunnels: tuple[Tunnel, ...] = ()
    behind: Mapping[str, str] = field(default_factory=dict)
    emulates: bool = True
    system_folder: str = ""

    def tunnel(self, link: str) -> Tunnel | None:
        """The tunnel by which a link continues on another machine, or None."""
        return next((tunnel for tunnel in self.tunnels if tunnel.link == link), None)


def whole_plan(plan: Plan) -> Assignment:
    """The assignment of all of the plan to this machine."""
    return Assignment("", frozenset(host.name for host in plan.hosts))


def emulating_host(plan: Plan, link: LinkPlan, direction: Direction) -> str:
    """The host on whose machine a link direction is emulated: the sender on a WAN link, and the host of a LAN
    link.
    """
    if link.kind == "lan":
        return link.a
    region = link.a if direction is Direction.FORWARD else link.b
    return next(each.gateway for each in plan.regions if each.name == region)


def parameters_here(plan: Plan, assignment: Assignment, link: LinkPlan) -> dict[Direction, LinkParameters]:
    """The parameters of the link directions that are emulated on this machine."""
    parameters_of = {Direction.FORWARD: link.forward, Direction.BACKWARD: link.backward}
    ours = assignment.emulates or assignment.tunnel(link.name) is None
    return {
        direction: parameters if ours else transparent(parameters)
        for direction, parameters in parameters_of.items()
        if emulating_host(plan, link, direction) in assignment.hosts
    }


def traces_here(plan: Plan, assignment: Assignment, link: LinkPlan) -> dict[Direction, LinkTrace]:
    """What the link directions follow that are emulated on this machine."""
    return {
        direction: trace
        for direction in parameters_here(plan, assignment, link)
        if (trace := link.trace(direction)) is not None
    }


def transparent(parameters: LinkParameters) -> LinkParameters:
    """Link parameters that do not alter packets of the same size."""
    return LinkParameters(mtu_bytes=parameters.mtu_bytes, reorder=parameters.reorder)


def assigned_part(plan: Plan, assignment: Assignment) -> Plan:
    """The plan with only the processes, captures and changes of this machine. Hosts, links and regions stay
    whole: addresses and routes follow from them.
    """
    processes = tuple(process for process in plan.processes if process.host in assignment.hosts)
    return replace(
        plan,
        processes=processes,
        captures=tuple(capture for capture in plan.captures if _listens_here(plan, assignment, capture)),
        changes=tuple(change for _, change in changes_here(plan, assignment)),
    )


def changes_here(plan: Plan, assignment: Assignment) -> tuple[tuple[int, Change], ...]:
    """The changes that are made on this machine, each with its index in the whole plan."""
    names = {process.name for process in plan.processes if process.host in assignment.hosts}
    links = {link.name: link for link in plan.links}
    return tuple(
        (index, _change_here(assignment, change) if isinstance(change, LinkChange) else change)
        for index, change in enumerate(plan.changes)
        if (
            emulating_host(plan, links[change.link], change.direction) in assignment.hosts
            if isinstance(change, LinkChange)
            else change.process in names or change.action is ProcessAction.GIVE_UP
        )
    )


def assignment_to_json(assignment: Assignment) -> dict[str, Any]:
    """The assignment as plain JSON."""
    content: dict[str, Any] = _adapter().dump_python(assignment, mode="json")
    return content


def assignment_from_json(content: dict[str, Any]) -> Assignment:
    """The assignment that `assignment_to_json` wrote. Raises pydantic.ValidationError if it is invalid."""
    return _adapter().validate_python(content)


def _listens_here(plan: Plan, assignment: Assignment, capture: CapturePlan) -> bool:
    if capture.wire:
        return any(
            (tunnel.link, tunnel.side) == (capture.link, capture.side) for tunnel in assignment.tunnels
        )
    if capture.host is not None:
        return capture.host in assignment.hosts
    gateway = next(region.gateway for region in plan.regions if region.name == capture.side)
    return gateway in assignment.hosts


def _change_here(assignment: Assignment, change: LinkChange) -> LinkChange:
    if assignment.emulates or assignment.tunnel(change.link) is None:
        return change
    return replace(change, parameters=transparent(change.parameters))


@cache
def _adapter() -> TypeAdapter[Assignment]:
    return TypeAdapter(Assignment)
