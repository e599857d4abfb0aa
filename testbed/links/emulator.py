"""The interface of a link emulator, which netem and the relay implement.

An emulated link is wired veth - emulator - veth. The emulator joins two interfaces of the sandbox's root
namespace and delays, drops and paces frames in each direction. Taking interfaces down (`LinkState.DOWN`) is
the network's work (`testbed.network`); an emulator only has to survive it.

A link that never alters its frames needs no emulator: it is one veth pair from end to end, which costs less
processor time and has no counters. A link that is captured keeps its emulator, because the capture listens
there; so does a link to another machine, because the tunnel is one of its ends.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from experiments.changes import Direction, LinkChange
from experiments.observations import LinkCounters
from experiments.plan import LinkPlan, Plan
from testbed.assignment import Assignment, transparent
from topologies.link_parameters import LinkParameters
from topologies.link_trace import LinkTrace


@dataclass(frozen=True, slots=True)
class LinkWiring:
    """A link's two ends in the root namespace; forward is from `a_interface` to `b_interface`.

    parameters: by direction. A missing direction is emulated on another machine, and the kernel forwards it
    here unaltered (`one_way_lines`). traces: what directions that are emulated here follow. lan, mac: on a
    LAN link, the region and the host's MAC address, so that an emulator may act as the bridge between two
    such links.
    """

    name: str
    a_interface: str
    b_interface: str
    parameters: Mapping[Direction, LinkParameters]
    lan: str = ""
    mac: str = ""
    traces: Mapping[Direction, LinkTrace] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Applied:
    """When a change was requested and when it was in effect, CLOCK_REALTIME nanoseconds."""

    requested_ns: int
    applied_ns: int


class LinkEmulator(Protocol):
    """Emulates all links of a run."""

    kind: str  # "relay" | "netem"

    def start(self, wirings: Sequence[LinkWiring]) -> None:
        """Start to emulate every link, in state up. Raises MachineError, TestbedError."""

    def change(
        self, link: str, direction: Direction, parameters: LinkParameters, *, blackhole: bool
    ) -> Applied:
        """Change one direction while frames cross it; `blackhole` drops everything, in flight included.

        Raises TestbedError if the link is unknown or the emulator has failed.
        """

    def begin_traces(self, zero_ns: int) -> None:
        """Let links follow their traces, which begin at `zero_ns`, CLOCK_REALTIME. Raises TestbedError."""

    def counters(self) -> Mapping[tuple[str, Direction], LinkCounters]:
        """The counters of every direction that is emulated on this machine."""

    def failure(self) -> str | None:
        """Why the emulator has failed (for example, the relay died), or None."""

    def stop(self) -> None:
        """Release everything; idempotent."""


def links_without_emulator(plan: Plan, assignment: Assignment) -> tuple[str, ...]:
    """The names of links that need no emulator, in the plan's order."""
    tunnelled = {tunnel.link for tunnel in assignment.tunnels}
    changed = {change.link for change in plan.changes if isinstance(change, LinkChange)}
    captured = {capture.link for capture in plan.captures}
    needed = changed | captured | tunnelled
    return tuple(link.name for link in plan.links if _does_nothing(link) and link.name not in needed)


def _does_nothing(link: LinkPlan) -> bool:
    return all(parameters == transparent(parameters) for parameters in (link.forward, link.backward))
