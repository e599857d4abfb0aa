"""What faults do to links and processes during a run: changes of a plan, by time, or by what happens."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag

from experiments.planned.plan_values import Impairments, Port
from experiments.records.validated_json import Name, TimeUs

MENDING = frozenset({"restore", "continue", "restart", "replace", "give-up", "join"})
"""Kinds of faults that end a disturbance, or add a process."""


class LinkState(StrEnum):
    """Whether frames cross: BLACKHOLE drops every frame silently, also those in flight.

    DOWN takes the interfaces down, too, so that the kernels at both ends know.
    """

    UP = "up"
    BLACKHOLE = "blackhole"
    DOWN = "down"


class Direction(StrEnum):
    """FORWARD is from `LinkPlan.a` to `LinkPlan.b`; a host's LAN link is forward from host to region."""

    FORWARD = "forward"
    BACKWARD = "backward"


class ProcessAction(StrEnum):
    """What a fault does to a node process: SIGKILL, SIGSTOP, SIGCONT, start it again after its end, the same
    on an empty disk, tell all others that it will not come back, start it for the first time, let it end,
    keep its packets from others of its region, reset its connections, block some of its packets, fill its
    file system, or make its disk slow.
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
    RESET = "reset"
    BLOCK = "block"
    UNBLOCK = "unblock"
    FILL = "fill"
    UNFILL = "unfill"
    SLOW_DISK = "slow-disk"
    UNSLOW_DISK = "unslow-disk"

    @property
    def is_of_environment(self) -> bool:
        """Whether it is done to a process's packets, file system or disk, and not to itself."""
        return self in _OF_ENVIRONMENT


_OF_ENVIRONMENT = {
    ProcessAction.SEPARATE,
    ProcessAction.REJOIN,
    ProcessAction.RESET,
    ProcessAction.BLOCK,
    ProcessAction.UNBLOCK,
    ProcessAction.FILL,
    ProcessAction.UNFILL,
    ProcessAction.SLOW_DISK,
    ProcessAction.UNSLOW_DISK,
}


@dataclass(frozen=True, slots=True)
class Trigger:
    """A process sends a message of this name for the so-manieth time since the change's `at_us`."""

    process: Name
    sends: Name
    times: Annotated[int, Field(ge=1)] = 1


@dataclass(frozen=True, slots=True)
class LinkChange:
    """From `at_us` on, this direction of this link is in `state` with `parameters`, because of `fault`."""

    at_us: TimeUs
    fault: Name
    link: Name
    direction: Direction
    state: LinkState
    parameters: Annotated[Impairments, Field(alias="shape")]  # its name in run.json
    when: Trigger | None = None
    """After what it is so; from its time on unless given."""


@dataclass(frozen=True, slots=True)
class ProcessChange:
    """At `at_us`, `action` is done to `process`, because of `fault`."""

    at_us: TimeUs
    fault: Name
    process: Name
    action: ProcessAction
    peers: tuple[Name, ...] = ()
    """From whom its packets are kept, to whom they go again, or whose connections are reset."""
    port: Port | None = None
    """Of the connections that are reset, or the packets that are blocked."""
    rule: Name | None = None
    """Of a block, fill or slow disk: the fault that begins or ends here."""
    new: bool = False
    """Of a block: whether it is for attempts to connect alone."""
    refuse: bool = False
    """Of a block: whether connections are answered with a RST."""
    slower_us: TimeUs | None = None
    """Of a slow disk: how much longer each sync takes."""
    when: Trigger | None = None
    """After what it is done; at its time unless given."""


def _kind_of_change(change: Any) -> str:
    is_process = "process" in change if isinstance(change, dict) else isinstance(change, ProcessChange)
    return "process" if is_process else "link"


Change = Annotated[
    Annotated[LinkChange, Tag("link")] | Annotated[ProcessChange, Tag("process")],
    Discriminator(_kind_of_change),
]
