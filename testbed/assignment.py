"""The part of a plan that one machine executes when several machines run one plan. Pure.

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

from experiments.planned.changes import Change, LinkChange, LinkDirectionName, ProcessAction
from experiments.planned.plan import CapturePlan, LinkPlan, Plan
from testbed.tunnel import Tunnel
from topologies.link_parameters import LinkParameters
from topologies.link_trace import LinkTrace

WIRE_SNAPLEN_BYTES = 128
"""Snapshot length of captures between machines: Ethernet, IP and TCP headers with options, enough to identify
packets.
"""


@dataclass(frozen=True, slots=True)
class Assignment:
    """The part of a plan that one machine executes.

    hosts: the hosts on this machine. tunnels: to other machines. behind: the tunnel to each host of a partly
    local region that is on another machine, by host name. emulates: whether the local link emulators apply
    parameters to links between machines; otherwise the site's own links do, and the local emulators only cut
    them. system_folder: the folder of a system of programs on this machine; "" if it is where the plan says.
    """

    machine: str
    hosts: Annotated[frozenset[str], PlainSerializer(sorted, when_used="json")]
    tunnels: tuple[Tunnel, ...] = ()
    behind: Mapping[str, str] = field(default_factory=dict)
    emulates: bool = True
    system_folder: str = ""

    def tunnel(self, link: str) -> Tunnel | None:
        """Return the tunnel by which a link continues on another machine, or None."""
        return next((tunnel for tunnel in self.tunnels if tunnel.link == link), None)


def whole_plan(plan: Plan) -> Assignment:
    """Return the assignment of the whole plan to this machine."""
    return Assignment("", frozenset(host.name for host in plan.hosts))


def emulating_host(plan: Plan, link: LinkPlan, direction: LinkDirectionName) -> str:
    """Return the host on whose machine a link direction is emulated.

    This is the sending gateway for a WAN link, and the host itself for a LAN link.
    """
    if link.kind == "lan":
        return link.a
    region = link.a if direction is LinkDirectionName.FORWARD else link.b
    return next(each.gateway for each in plan.regions if each.name == region)


def parameters_here(
    plan: Plan, assignment: Assignment, link: LinkPlan
) -> dict[LinkDirectionName, LinkParameters]:
    """Return the parameters of the link directions that are emulated on this machine."""
    parameters_of = {LinkDirectionName.FORWARD: link.forward, LinkDirectionName.BACKWARD: link.backward}
    ours = assignment.emulates or assignment.tunnel(link.name) is None
    return {
        direction: parameters if ours else transparent(parameters)
        for direction, parameters in parameters_of.items()
        if emulating_host(plan, link, direction) in assignment.hosts
    }


def traces_here(plan: Plan, assignment: Assignment, link: LinkPlan) -> dict[LinkDirectionName, LinkTrace]:
    """Return the traces of the link directions that are emulated on this machine and follow one."""
    return {
        direction: trace
        for direction in parameters_here(plan, assignment, link)
        if (trace := link.trace(direction)) is not None
    }


def transparent(parameters: LinkParameters) -> LinkParameters:
    """Return link parameters that do not alter packets, with the same MTU and reordering."""
    return LinkParameters(mtu_bytes=parameters.mtu_bytes, reorder=parameters.reorder)


def assigned_part(plan: Plan, assignment: Assignment) -> Plan:
    """Return the plan with only the processes, captures and changes of this machine.

    Hosts, links and regions stay complete because addresses and routes follow from them.
    """
    processes = tuple(process for process in plan.processes if process.host in assignment.hosts)
    return replace(
        plan,
        processes=processes,
        captures=tuple(capture for capture in plan.captures if _listens_here(plan, assignment, capture)),
        changes=tuple(change for _, change in changes_here(plan, assignment)),
    )


def changes_here(plan: Plan, assignment: Assignment) -> tuple[tuple[int, Change], ...]:
    """Return the changes that are made on this machine, each with its index in the whole plan."""
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
    """Return the assignment as plain JSON."""
    content: dict[str, Any] = _adapter().dump_python(assignment, mode="json")
    return content


def assignment_from_json(content: dict[str, Any]) -> Assignment:
    """Parse what `assignment_to_json` returned. Raises pydantic.ValidationError if it is invalid."""
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
