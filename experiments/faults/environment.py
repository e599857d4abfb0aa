"""Faults in a process's environment: its packets, connections, disk, clock, processor and memory."""

from typing import Any, ClassVar, Self

from pydantic import Field, model_validator

from experiments.faults.fault import TriggeredFault
from experiments.faults.links import WhichWay
from experiments.faults.processes import ProcessFault
from experiments.planned.changes import DRIFT_PPM_MAX, OFFSET_US_MAX
from topologies.quantities import DRIFT, FRACTION, OFFSET, SIZE
from topologies.strict import DriftPpm, DurationUs, Flag, Fraction, OffsetUs, SizeBytes, WholeNumber, problem


class EnvironmentFault(ProcessFault):
    """A fault in a process's environment; the process itself may be running or not."""


class LastingProcessFault(EnvironmentFault):
    """A fault in a process's environment that begins and ends."""

    for_us: DurationUs | None = Field(None, gt=0)
    """How long it lasts; default: until a restore by its name or the end of the run."""


class PacketFault(EnvironmentFault):
    """A fault on a process's packets or connections."""

    others: tuple[str, ...]


class DirectedFault(PacketFault, LastingProcessFault):
    """A fault on the packets between a process and others."""

    direction: WhichWay = "both"
    """The affected packets; forward are those that the process sends."""

    @property
    def struck(self) -> tuple[str, ...]:
        """The processes whose packets it drops."""
        mine = () if self.direction == "backward" else (self.process,)
        return mine if self.direction == "forward" else (*mine, *self.others)


class Separate(TriggeredFault, DirectedFault):
    """Silently drops packets on the LAN between a process and others of its region."""

    kind: ClassVar[str] = "separate"
    process: str = Field(alias="separate")
    """The process, such as r2/proxy-0."""
    others: tuple[str, ...] = Field(alias="from", min_length=1)
    """The processes of its region from which it is separated."""

    @property
    def target(self) -> str:
        """`r2/proxy-0 from r2/client-0 r2/client-1`."""
        return f"{self.process} from {' '.join(self.others)}"


class Reset(TriggeredFault, PacketFault):
    """Resets the established TCP connections of a process: both ends get a RST."""

    kind: ClassVar[str] = "reset"
    needs_mending: ClassVar[bool] = False
    process: str = Field(alias="reset")
    """The process, such as r2/proxy-0."""
    others: tuple[str, ...] = Field((), alias="from")
    """The peers, in any region, whose connections with it are reset; default: all."""
    port: WholeNumber | None = Field(None, ge=1, le=65_535)
    """Only connections from or to this port."""

    @property
    def target(self) -> str:
        """`r2/proxy-0 from r3/proxy-0 port 7000`."""
        others = f" from {' '.join(self.others)}" if self.others else ""
        return self.process + others + (f" port {self.port}" if self.port else "")

    def details(self) -> dict[str, Any]:
        """Return the peers and the port."""
        return {"peers": self.others, "port": self.port}


class Block(DirectedFault):
    """Drops some of the packets between a process and others, in any region, as a firewall would."""

    kind: ClassVar[str] = "block"
    only_real: ClassVar[str] = "virtual time has no packets that a block could drop"
    process: str = Field(alias="block")
    """The process, such as r2/proxy-0."""
    others: tuple[str, ...] = Field(alias="from", min_length=1)
    """The processes, in any region, from which it is blocked."""
    port: WholeNumber | None = Field(None, ge=1, le=65_535)
    """Only packets from or to this TCP or UDP port."""
    new: Flag = False
    """Only new connections are blocked; established TCP connections continue."""
    refuse: Flag = False
    """TCP connections are answered with a RST; default: packets are dropped."""

    @property
    def target(self) -> str:
        """`r2/proxy-0 from r3/proxy-0 port 7000`."""
        return f"{self.process} from {' '.join(self.others)}" + (f" port {self.port}" if self.port else "")

    def details(self) -> dict[str, Any]:
        """Return the rule."""
        return {"port": self.port, "rule": self.name, "new": self.new, "refuse": self.refuse}


class StateFault(LastingProcessFault):
    """A fault that two actions on the process begin and end: `kind` and `unkind` of `ProcessAction`."""


class DiskFault(StateFault):
    """A fault on a process's disk."""

    for_us: DurationUs | None = Field(None, gt=0)
    """How long it lasts; default: until a restore by its name, a replace, or the end of the run."""


class Fill(DiskFault):
    """Fills the free space of a process's own file system."""

    kind: ClassVar[str] = "fill"
    may_end_process: ClassVar[bool] = True
    process: str = Field(alias="fill")
    """The process, such as r2/server-0: of a role whose limits include storage, or a durable node."""


class SlowDisk(DiskFault):
    """Slows down syncs of a process: each fsync, fdatasync, sync, syncfs or msync that it or its children
    call.
    """

    kind: ClassVar[str] = "slow-disk"
    process: str = Field(alias="slow-disk")
    """The process, such as r2/server-0: a program, or a durable node."""
    sync_us: DurationUs = Field(alias="sync", gt=0)
    """The time added to each. If several faults overlap, the longest time counts."""

    def details(self) -> dict[str, Any]:
        """Return the added time."""
        return {"slower_us": self.sync_us}


class ClockFault(StateFault):
    """Makes the clock of a process wrong: a step, a drift, or both."""

    kind: ClassVar[str] = "clock"
    process: str = Field(alias="clock")
    """The process, such as r2/server-0. Its records keep the true time."""
    offset_us: OffsetUs = Field(0, ge=-OFFSET_US_MAX, le=OFFSET_US_MAX)
    """How far the clock is set forward, or back, such as 3s or -3s."""
    drift_ppm: DriftPpm = Field(0, ge=-DRIFT_PPM_MAX, le=DRIFT_PPM_MAX)
    """How much the clock gains from then on, or loses, such as 200ppm or -200ppm. Overlapping faults of one
    clock add up.
    """

    @property
    def target(self) -> str:
        """`r2/proxy-0 by -3s 200ppm`."""
        step = [OFFSET.format(self.offset_us)] if self.offset_us else []
        drift = [DRIFT.format(self.drift_ppm)] if self.drift_ppm else []
        return f"{self.process} by {' '.join(step + drift)}"

    def details(self) -> dict[str, Any]:
        """Return the step and the drift."""
        return {"offset_us": self.offset_us, "drift_ppm": float(self.drift_ppm)}

    @model_validator(mode="after")
    def _is_wrong(self) -> Self:
        if not self.offset_us and not self.drift_ppm:
            raise problem("would not change: give an offset, such as 3s, or a drift, such as 200ppm", "clock")
        return self


class Throttle(StateFault):
    """Leaves a process, and all that it starts, little processor time or memory."""

    kind: ClassVar[str] = "throttle"
    may_end_process: ClassVar[bool] = True
    only_real: ClassVar[str] = "nodes in virtual time take no processor time and no memory"
    process: str = Field(alias="throttle")
    """The process, such as r2/server-0."""
    processor: Fraction | None = Field(None, alias="cpu", ge=0.01, le=1)
    """The largest share of one processor, such as 20%. If several faults overlap, the smallest counts."""
    memory_bytes: SizeBytes | None = Field(None, ge=1_000_000)
    """The most memory, such as 100MB. The kernel kills a process that needs more."""

    @property
    def target(self) -> str:
        """`r2/server-0 to 20% 100MB`."""
        processor = [FRACTION.format(self.processor)] if self.processor else []
        memory = [SIZE.format(self.memory_bytes)] if self.memory_bytes else []
        return f"{self.process} to {' '.join(processor + memory)}"

    def details(self) -> dict[str, Any]:
        """Return the limits."""
        return {"processor": self.processor, "memory_bytes": self.memory_bytes}

    @model_validator(mode="after")
    def _limits_something(self) -> Self:
        if self.processor is None and self.memory_bytes is None:
            raise problem("limits nothing: give cpu, such as 20%, or memory, such as 100MB", "throttle")
        return self
