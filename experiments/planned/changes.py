"""Changes that faults make to links and processes during a run, at a time or on a trigger."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag

from experiments.planned.plan_values import Impairments, Port
from experiments.records.validated_json import Name, TimeUs

OFFSET_US_MAX = 30 * 24 * 3600 * 1_000_000
DRIFT_PPM_MAX = 500_000.0
"""Bounds of a clock's error: an offset of 30 days, and a drift of 50 %."""


class LinkState(StrEnum):
    """Whether a link carries frames. BLACKHOLE silently drops every frame, also those in flight.

    DOWN also sets the interfaces down, so that the kernels at both ends see it.
    """

    UP = "up"
    BLACKHOLE = "blackhole"
    DOWN = "down"


class LinkDirectionName(StrEnum):
    """FORWARD is from `LinkPlan.a` to `LinkPlan.b`; a host's LAN link is forward from host to region."""

    FORWARD = "forward"
    BACKWARD = "backward"


class ProcessAction(StrEnum):
    """Action of a fault on a process, or on the process's environment.

    `testbed.runner.running.ACTIONS` says what it does to a real process, and
    `testbed.backends.simulated_network.ACTIONS` what it does in virtual time. A fault that lasts has two
    actions: one has the name of its kind, and the other, which ends it, the same name after `un`.

    A value that the action needs is a field of `ProcessChange`; `experiments.planned.change_text` writes it.
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
    CLOCK = "clock"
    UNCLOCK = "unclock"
    THROTTLE = "throttle"
    UNTHROTTLE = "unthrottle"

    @property
    def ends_another(self) -> bool:
        """Whether it ends what a fault does to a process's environment."""
        return self is ProcessAction.REJOIN or self.startswith("un")

    @property
    def is_of_environment(self) -> bool:
        """Whether it acts on a process's environment instead of the process."""
        return self not in _OF_PROCESSES


_OF_PROCESSES = {
    ProcessAction.KILL,
    ProcessAction.STOP,
    ProcessAction.CONTINUE,
    ProcessAction.RESTART,
    ProcessAction.REPLACE,
    ProcessAction.GIVE_UP,
    ProcessAction.JOIN,
    ProcessAction.LEAVE,
}


@dataclass(frozen=True, slots=True)
class Trigger:
    """The `times`-th message of this name that a process sends after the change's `at_us`."""

    process: Name
    sends: Name
    times: Annotated[int, Field(ge=1)] = 1


@dataclass(frozen=True, slots=True)
class Selection:
    """Some of a link's packets: those from or to a process, from or to a TCP or UDP port, or both."""

    process: Name | None = None
    port: Port | None = None

    def __str__(self) -> str:
        """Return `of r2/server-0 port 7000`."""
        process = [f"of {self.process}"] if self.process else []
        return " ".join([*process, *([f"port {self.port}"] if self.port else [])])


@dataclass(frozen=True, slots=True)
class LinkChange:
    """A change of one direction of a link to `state` with `parameters` at `at_us`, made by `fault`.

    selects: the affected packets; None: all that no other change of the link selects.
    """

    at_us: TimeUs
    fault: Name
    link: Name
    direction: LinkDirectionName
    state: LinkState
    parameters: Impairments
    when: Trigger | None = None
    """The trigger after which the change applies; None: at `at_us`."""
    selects: Selection | None = None

    @property
    def place(self) -> str:
        """`r2-r3`, or `r2-r3 of r2/server-0`."""
        return self.link if self.selects is None else f"{self.link} {self.selects}"


@dataclass(frozen=True, slots=True)
class ProcessChange:
    """An `action` on `process` at `at_us`, made by `fault`."""

    at_us: TimeUs
    fault: Name
    process: Name
    action: ProcessAction
    peers: tuple[Name, ...] = ()
    """The peers it is separated from or rejoined with, or whose connections are reset."""
    port: Port | None = None
    """The port of the connections to reset or of the packets to block."""
    rule: Name | None = None
    """The fault that begins or ends here, if it lasts and is not a separation."""
    new: bool = False
    """For a block: whether it blocks only new connections."""
    refuse: bool = False
    """For a block: whether connections are answered with a RST."""
    slower_us: TimeUs | None = None
    """For a slow disk: the time added to each sync."""
    offset_us: Annotated[int, Field(ge=-OFFSET_US_MAX, le=OFFSET_US_MAX)] = 0
    """For a wrong clock: how far it is set forward, or back."""
    drift_ppm: Annotated[float, Field(ge=-DRIFT_PPM_MAX, le=DRIFT_PPM_MAX)] = 0.0
    """For a wrong clock: how much it gains from then on, or loses."""
    processor: Annotated[float, Field(gt=0, le=1)] | None = None
    """For a throttle: the largest share of one processor."""
    memory_bytes: Annotated[int, Field(gt=0)] | None = None
    """For a throttle: the most memory."""
    when: Trigger | None = None
    """The trigger after which the action happens; None: at `at_us`."""


def _kind_of_change(change: Any) -> str:
    is_process = "process" in change if isinstance(change, dict) else isinstance(change, ProcessChange)
    return "process" if is_process else "link"


Change = Annotated[
    Annotated[LinkChange, Tag("link")] | Annotated[ProcessChange, Tag("process")],
    Discriminator(_kind_of_change),
]
