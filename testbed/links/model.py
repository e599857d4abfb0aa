"""What every kind of link middle can do: the one interface behind which netem and the relay stand.

A link is wired veth - middle - veth. The middle joins two interfaces of the sandbox's root namespace and
delays, drops and paces what crosses, per direction. Taking interfaces down (`LinkState.DOWN`) is the
network's work (`testbed.network`), not a middle's: a middle only survives it.

Links that do nothing to frames, neither at first nor later, need no middle. Such a link is one veth pair from
end to end. It costs the processor less, and carries no counters. A link whose side is captured keeps its
middle: the capture listens there; so does one that goes on to another machine: the tunnel is one of its ends.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from experiments.plan import Direction, LinkChange, LinkPlan, Plan
from testbed.share import Share, nothing
from topologies.shape import Shape


@dataclass(frozen=True, slots=True)
class LinkWiring:
    """A link's two ends in the root namespace; forward is from `a_interface` to `b_interface`.

    shapes: by direction. One that is missing is shaped by another machine's middle, and crosses here as it
    comes (`testbed.links.one_way`). lan, mac: where it joins a host of this address to that region's bridge,
    so that a middle may act as the bridge between two such links.
    """

    name: str
    a_interface: str
    b_interface: str
    shapes: Mapping[Direction, Shape]
    lan: str = ""
    mac: str = ""


@dataclass(frozen=True, slots=True)
class Applied:
    """When a change was asked for and when it held, CLOCK_REALTIME nanoseconds."""

    requested_ns: int
    applied_ns: int


@dataclass(frozen=True, slots=True)
class LinkCounters:
    """What one direction of a link did since it started. Frames are MTU-sized segments that left."""

    frames: int
    bytes: int
    dropped_loss: int
    dropped_queue: int
    dropped_blackhole: int
    dropped_kernel: int  # lost before the middle saw them: any makes the run invalid
    lateness_p50_us: float | None = None  # how late frames left; None where the kernel does the work
    lateness_p99_us: float | None = None
    dropped_size: int = 0  # larger than the link's MTU
    dropped_send: int = 0  # refused by the interface that they should have left through, say for being down
    ring_peak: float = 0.0  # how full the rings before the middle were, at most, 0 to 1; full ones drop


class Middles(Protocol):
    """All middles of a run, of one kind."""

    kind: str  # "relay" | "netem"

    def start(self, wirings: Sequence[LinkWiring]) -> None:
        """Carry every link, shaped, in state up. Raises MachineError, TestbedError."""

    def change(self, link: str, direction: Direction, shape: Shape, *, blackhole: bool) -> Applied:
        """Change one direction while frames cross. Raises TestbedError: unknown link, dead middle."""

    def counters(self) -> Mapping[tuple[str, Direction], LinkCounters]:
        """Counters of every direction that is shaped here."""

    def failure(self) -> str | None:
        """Why the middles no longer work (say, the relay died), or None."""

    def stop(self) -> None:
        """Release everything; idempotent."""


def links_without_middle(plan: Plan, share: Share) -> tuple[str, ...]:
    """The names of links that need no middle, in the plan's order."""
    tunnelled = {tunnel.link for tunnel in share.tunnels}
    changed = {change.link for change in plan.changes if isinstance(change, LinkChange)}
    captured = {capture.link for capture in plan.captures}
    needed = changed | captured | tunnelled
    return tuple(link.name for link in plan.links if _does_nothing(link) and link.name not in needed)


def _does_nothing(link: LinkPlan) -> bool:
    return all(shape == nothing(shape) for shape in (link.forward, link.backward))
