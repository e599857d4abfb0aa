"""Which part of a plan one machine carries out, where several machines carry out one plan together. Pure.

Every machine knows the whole plan: addresses, routes and who is who are the same everywhere. A share says
which of the plan's hosts stand on this machine; what follows from that (processes, captures, changes) is
`part_of`. A way to a host elsewhere is a tunnel: a device in the sandbox's root namespace that takes the
place of what would be there if the host were here, the far end of a WAN link or a port of a region's bridge.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Annotated, Any

from pydantic import PlainSerializer, TypeAdapter

from experiments.plan import CapturePlan, Direction, LinkChange, LinkPlan, Plan, ProcessAction
from testbed.tunnel import Tunnel
from topologies.link_parameters import LinkParameters

WIRE_SNAPLEN_BYTES = 128
"""Of captures between machines: Ethernet, IP and TCP with its options, which is what tells packets apart."""


@dataclass(frozen=True, slots=True)
class Share:
    """What one machine has of a plan.

    hosts: those that stand here. tunnels: to other machines. behind: by the name of a host of a region that
    is partly here, the tunnel to it. emulates: whether our link emulators apply parameters to links between
    machines; otherwise the site's own links do, and ours are only cut.
    """

    machine: str
    hosts: Annotated[frozenset[str], PlainSerializer(sorted, when_used="json")]
    tunnels: tuple[Tunnel, ...] = ()
    behind: Mapping[str, str] = field(default_factory=dict)
    emulates: bool = True

    def tunnel(self, link: str) -> Tunnel | None:
        """Where a link goes on to another machine, if it does."""
        return next((tunnel for tunnel in self.tunnels if tunnel.link == link), None)


def everything(plan: Plan) -> Share:
    """All of the plan, on this machine."""
    return Share("", frozenset(host.name for host in plan.hosts))


def sender(plan: Plan, link: LinkPlan, direction: Direction) -> str:
    """The host on whose machine a direction of a link is shaped: who sends on a WAN link, and the host whose
    LAN link it is.
    """
    if link.kind == "lan":
        return link.a
    region = link.a if direction is Direction.FORWARD else link.b
    return next(each.gateway for each in plan.regions if each.name == region)


def parameters_here(plan: Plan, share: Share, link: LinkPlan) -> dict[Direction, LinkParameters]:
    """The parameters of the link directions that are emulated on this machine."""
    parameters_of = {Direction.FORWARD: link.forward, Direction.BACKWARD: link.backward}
    ours = share.emulates or share.tunnel(link.name) is None
    return {
        direction: parameters if ours else nothing(parameters)
        for direction, parameters in parameters_of.items()
        if sender(plan, link, direction) in share.hosts
    }


def nothing(parameters: LinkParameters) -> LinkParameters:
    """What does nothing to packets of the same size."""
    return LinkParameters(mtu_bytes=parameters.mtu_bytes, reorder=parameters.reorder)


def part_of(plan: Plan, share: Share) -> Plan:
    """The plan with only the processes, captures and changes that are this machine's. Hosts, links and
    regions stay whole: addresses and routes follow from them.
    """
    processes = tuple(process for process in plan.processes if process.host in share.hosts)
    names = {process.name for process in processes}
    links = {link.name: link for link in plan.links}
    return replace(
        plan,
        processes=processes,
        captures=tuple(capture for capture in plan.captures if _listens_here(plan, share, capture)),
        changes=tuple(
            _change_here(share, change) if isinstance(change, LinkChange) else change
            for change in plan.changes
            if (
                sender(plan, links[change.link], change.direction) in share.hosts
                if isinstance(change, LinkChange)
                else change.process in names or change.action is ProcessAction.GIVE_UP
            )
        ),
    )


def share_to_json(share: Share) -> dict[str, Any]:
    """The share as plain JSON."""
    content: dict[str, Any] = _adapter().dump_python(share, mode="json")
    return content


def share_from_json(content: dict[str, Any]) -> Share:
    """The share that `share_to_json` wrote. Raises pydantic.ValidationError if it is none."""
    return _adapter().validate_python(content)


def _listens_here(plan: Plan, share: Share, capture: CapturePlan) -> bool:
    if capture.wire:
        return any((tunnel.link, tunnel.side) == (capture.link, capture.side) for tunnel in share.tunnels)
    if capture.host is not None:
        return capture.host in share.hosts
    gateway = next(region.gateway for region in plan.regions if region.name == capture.side)
    return gateway in share.hosts


def _change_here(share: Share, change: LinkChange) -> LinkChange:
    if share.emulates or share.tunnel(change.link) is None:
        return change
    return replace(change, parameters=nothing(change.parameters))


@cache
def _adapter() -> TypeAdapter[Share]:
    return TypeAdapter(Share)
