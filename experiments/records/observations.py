"""Observations during a run: changes, processes, captures, probes, counters, machines.

These are the entries of run.json's lists (`experiments.records.run_record`). Times are CLOCK_REALTIME in
nanoseconds. In a run on several machines an entry names the machine that observed it, and its times are
from that machine's clock.
"""

from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from experiments.files.plain_name import plain_name
from experiments.planned.changes import LinkDirectionName
from experiments.records.validated_json import Count, FileName, Name, Text, TimeNs
from topologies.errors import InputError


def _capture_path(text: str) -> str:
    *folders, name = PurePosixPath(text).parts or ("",)
    try:
        plain_name(name, "")
    except InputError as error:
        raise ValueError(error.problem) from None
    if folders not in ([], ["captures"]):
        raise ValueError(f"{text!r:.80} leads elsewhere")
    return text


Duration = Annotated[float, Field(ge=0)]
OffsetNs = Annotated[float, Field(gt=-(1 << 62), lt=1 << 62)]
When = Literal["before", "after"]
"""Before the nodes start, or after they end."""
ExitNumber = Annotated[int, Field(ge=-(1 << 31), lt=1 << 31)]


@dataclass(frozen=True, slots=True)
class ChangeRecord:
    """A change that was executed. index: in `Plan.changes`. applied_ns: None if it could not be applied.

    A change that every machine applies (`give-up`) has one entry per machine.
    """

    index: Count
    requested_ns: TimeNs
    applied_ns: TimeNs | None
    machine: Name | None = None


@dataclass(frozen=True, slots=True)
class ProcessExit:
    """The end of a process: exit code or signal, and whether the run requested it."""

    code: ExitNumber | None
    signal: ExitNumber | None
    time_ns: TimeNs
    expected: bool
    starved: bool = False  # the kernel killed it, or a child, because a throttle left it too little memory


@dataclass(frozen=True, slots=True)
class ProcessRecord:
    """A process from one start to its end. exit: None while it runs, or if its end was not observed.

    processor_s: processor time of the process and its children, from time 0 or its start until all was
    delivered; None if it had ended by then.
    """

    name: Name
    host: Name
    pid: Count | None = None
    exit: ProcessExit | None = None
    machine: Name | None = None
    processor_s: Annotated[float, Field(ge=0)] | None = None

    @property
    def died(self) -> bool:
        """Whether it ended unexpectedly."""
        return self.exit is not None and not self.exit.expected


@dataclass(frozen=True, slots=True)
class ThrottleRecord:
    """A period in which a process had little processor time or memory, and what its control group used.

    processor: the largest share of one processor. killed: how often it lacked memory and was killed.
    """

    process: Name
    from_ns: TimeNs
    to_ns: TimeNs
    processor: Duration | None
    memory_bytes: Count | None
    processor_s: Duration
    killed: Count
    machine: Name | None = None


@dataclass(frozen=True, slots=True)
class CaptureRecord:
    """A capture of a host or of one side of a link. packets, kernel_drops: None if tcpdump reported none."""

    file: Annotated[str, AfterValidator(_capture_path)]  # "captures/r2-r3@r2.pcap"
    host: Name | None = None
    link: Name | None = None
    side: Name | None = None
    interface: Name = "eth0"
    packets: Count | None = None
    kernel_drops: Count | None = None
    machine: Name | None = None

    @property
    def name(self) -> str:
        """The file's name, without its folder."""
        return PurePosixPath(self.file).name


@dataclass(frozen=True, slots=True)
class RoundTripProbe:
    """Round trips from one region to another, before the nodes start or after they end."""

    when: When
    origin: Annotated[Name, Field(alias="from")]
    target: Annotated[Name, Field(alias="to")]
    rtt_us: tuple[Duration, ...]
    machine: Name | None = None


@dataclass(frozen=True, slots=True)
class LinkCounters:
    """Counters of one link direction since its start. Frames are MTU-sized segments that left it."""

    frames: Count
    bytes: Count
    dropped_loss: Count
    dropped_queue: Count
    dropped_blackhole: Count
    dropped_kernel: Count  # lost before the emulator: any loss makes the run invalid
    lateness_p50_us: Duration | None = None  # delay beyond the due time; None with kernel emulation
    lateness_p99_us: Duration | None = None
    dropped_size: Count = 0  # larger than the link's MTU
    dropped_send: Count = 0  # refused by the outgoing interface, for example while it is down
    ring_peak: Duration = 0.0  # the highest fill level of the receive rings, 0 to 1; full ones drop


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkCounts(LinkCounters):
    """The counters of one direction of a link."""

    link: Name
    direction: LinkDirectionName
    machine: Name | None = None


@dataclass(frozen=True, slots=True)
class RouteChange:
    """A change of a gateway's route to another region; no link: it has none from then on."""

    t_ns: TimeNs
    region: Name
    target: Name
    link: Text


@dataclass(frozen=True, slots=True)
class CpuSample:
    """The processor load of a machine in the last second, as a fraction of all its processors."""

    t_ns: TimeNs
    busy: Duration
    machine: Name | None = None


@dataclass(frozen=True, slots=True)
class MachineShare:
    """A machine of the run: its hosts, its time 0, and its clock relative to the controller's."""

    name: FileName
    hosts: tuple[Name, ...] = ()
    zero_ns: TimeNs | None = None
    control_offset_ns: OffsetNs | None = None
    control_error_ns: OffsetNs | None = None
    versions: dict[Text, Text | None] = field(default_factory=dict)  # versions of the required programs


@dataclass(frozen=True, slots=True)
class UnshippedFile:
    """A machine's file that was not, or not completely, copied here."""

    file: Text
    bytes: Count
    of_bytes: Count
    note: str = ""


@dataclass(frozen=True, slots=True)
class Shipment:
    """The result of copying a machine's files. said: notes for the reader."""

    machine: Name
    complete: bool
    problem: str = ""
    bytes: Count = 0
    wire_bytes: Count = 0
    connections: Count = 0
    whole: Count = 0
    partial: tuple[UnshippedFile, ...] = ()
    missing: tuple[UnshippedFile, ...] = ()
    changed: tuple[str, ...] = ()
    said: tuple[str, ...] = ()
