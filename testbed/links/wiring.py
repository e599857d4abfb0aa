"""The links of a plan that are emulated, and the interfaces between which they are emulated.

A link that never alters its frames needs no emulator: it is one veth pair from end to end, which costs less
processor time and has no counters. A captured link keeps its emulator, because the capture listens there; so
does a link to another machine, because the tunnel is one of its ends.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from experiments.planned.changes import LinkChange, LinkDirectionName
from experiments.planned.plan import LinkPlan, Plan
from testbed.assignment import Assignment, transparent
from topologies.link_parameters import LinkParameters
from topologies.link_trace import LinkTrace


@dataclass(frozen=True, slots=True)
class LinkWiring:
    """A link's two ends in the root namespace; forward is from `a_interface` to `b_interface`.

    parameters: by direction. A missing direction is emulated on another machine, and the kernel forwards it
    here unaltered (`one_way_lines`). traces: the traces that directions emulated here follow. lan, mac: on a
    LAN link, the region and the host's MAC address, so that an emulator may act as the bridge between two
    such links.
    """

    name: str
    a_interface: str
    b_interface: str
    parameters: Mapping[LinkDirectionName, LinkParameters]
    lan: str = ""
    mac: str = ""
    traces: Mapping[LinkDirectionName, LinkTrace] = field(default_factory=dict)


def links_without_emulator(plan: Plan, assignment: Assignment) -> tuple[str, ...]:
    """Return the names of links that need no emulator, in the plan's order."""
    tunnelled = {tunnel.link for tunnel in assignment.tunnels}
    changed = {change.link for change in plan.changes if isinstance(change, LinkChange)}
    captured = {capture.link for capture in plan.captures}
    needed = changed | captured | tunnelled
    return tuple(link.name for link in plan.links if _is_transparent(link) and link.name not in needed)


def _is_transparent(link: LinkPlan) -> bool:
    return all(parameters == transparent(parameters) for parameters in (link.forward, link.backward))
