"""The faults of an experiment and their times.

A fault is one action at a time: on links (cut, set, isolate, partition, flap, and restore, which ends them)
or on a process (kill, stop, continue, restart, replace, give-up, separate, reset, block, fill, slow-disk,
join, leave). Times count from time 0 of the run. Nothing changes after the drivers have stopped.
`testbed.faults.timeline` combines overlapping faults.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag, model_validator

from topologies.model import LinkEnds, LinkOverrides
from topologies.strict import DurationUs, Flag, Name, StrictModel, WholeNumber, problem, suggestion

FAULTS_MAX = 1_000
FLAPS_MAX = 10_000  # of one fault
TIMES_MAX = 1_000_000  # occurrences of a trigger

Mode = Literal["blackhole", "down"]
WhichWay = Literal["both", "forward", "backward"]


class ExperimentFault(StrictModel):
    """The fields of every fault."""

    kind: ClassVar[str]

    name: Name = ""
    """Its name in reports and expectations; default: its kind and a number."""
    at_us: DurationUs
    """The time at which it happens, from the start of the run."""

    @property
    def target(self) -> str:
        """The target of the fault, as text."""
        raise NotImplementedError

    @property
    def ends(self) -> tuple[str, str] | None:
        """The two regions of the one link that it acts on; None if it acts on anything else."""
        return None

    @property
    def regions(self) -> tuple[str, ...]:
        """All regions that it names, as checked against the topology."""
        if self.ends is None:
            raise NotImplementedError
        return self.ends


class FaultTrigger(StrictModel):
    """A trigger: a process sends its n-th message of one name."""

    process: str
    """The process that sends it, such as r1/proxy-0."""
    sends: str
    """The message's name, such as FOLLOW (`cutset dissector --format markdown`)."""
    times: WholeNumber = Field(1, ge=1, le=TIMES_MAX)
    """The number of such messages since `at`."""


class TriggeredFault(ExperimentFault):
    """A fault that happens at a time or right after a trigger. With a trigger, only a restore can end it,
    since its start is not known in advance.
    """

    at_us: DurationUs = 0
    """The time at which it happens, from the start of the run; with `when`, the earliest time."""
    when: FaultTrigger | None = None
    """The trigger; only on this machine and in virtual time."""

    @model_validator(mode="after")
    def _at_some_time(self) -> Self:
        if self.when is None and "at_us" not in self.model_fields_set:
            raise problem("is missing: when does it happen?", "at")
        return self

    @model_validator(mode="after")
    def _ends_at_some_time(self) -> Self:
        if self.when is not None and getattr(self, "for_us", None) is not None:
            raise problem("counts from `at`, and with `when` it begins later: end it by a restore", "for")
        return self


class LastingFault(ExperimentFault):
    """A fault on links that lasts until a restore or for a given time."""

    for_us: DurationUs | None = Field(None, gt=0)
    """How long it lasts; default: until a restore or the end of the run."""


class TriggeredLinkFault(TriggeredFault, LastingFault):
    """A fault on links that may wait for a trigger."""


class Outage(LastingFault):
    """A fault that stops packets on links."""

    mode: Mode = "blackhole"
    """blackhole: packets are dropped silently. down: the gateways' interfaces go down."""
    direction: WhichWay = "both"
    """The affected direction: forward is from the first region to the second, or out of an isolated region.
    """


class CutFault(TriggeredLinkFault, Outage):
    """Cuts the link between two regions."""

    kind: ClassVar[str] = "cut"
    link: LinkEnds = Field(alias="cut")
    """The two regions that the link joins."""

    @property
    def target(self) -> str:
        """`r2-r3`."""
        return "-".join(self.link)

    @property
    def ends(self) -> tuple[str, str]:
        """The link's regions."""
        return self.link


class Isolate(TriggeredLinkFault, Outage):
    """Cuts all links of a region."""

    kind: ClassVar[str] = "isolate"
    region: str = Field(alias="isolate")
    """The region."""

    @property
    def target(self) -> str:
        """`r2`."""
        return self.region

    @property
    def regions(self) -> tuple[str, ...]:
        """The region."""
        return (self.region,)


class PartitionFault(TriggeredLinkFault, Outage):
    """Cuts all links between groups of regions: the cut-set."""

    kind: ClassVar[str] = "partition"
    groups: tuple[tuple[str, ...], ...] = Field(alias="partition", min_length=2)
    """The groups, such as [[r0, r1], [r2, r3]]. A region in none of them keeps its links."""

    @property
    def target(self) -> str:
        """`r0 r1 | r2 r3`."""
        return " | ".join(" ".join(group) for group in self.groups)

    @property
    def regions(self) -> tuple[str, ...]:
        """The regions of all groups."""
        return sum(self.groups, ())

    @model_validator(mode="after")
    def _groups_are_apart(self) -> Self:
        twice = [region for region, times in Counter(sum(self.groups, ())).items() if times > 1]
        if twice:
            raise problem(f"{twice[0]} stands in it twice", "partition")
        return self


class Flap(Outage):
    """Cuts a link repeatedly: `down` first, then `up`, and so on for the given time; it ends up."""

    kind: ClassVar[str] = "flap"
    link: LinkEnds = Field(alias="flap")
    """The two regions that the link joins."""
    down_us: DurationUs = Field(gt=0)
    """How long it is cut each time."""
    up_us: DurationUs = Field(gt=0)
    """How long it works between cuts."""
    for_us: DurationUs = Field(gt=0)
    """The total time."""

    @property
    def target(self) -> str:
        """`r2-r3`."""
        return "-".join(self.link)

    @property
    def ends(self) -> tuple[str, str]:
        """The link's regions."""
        return self.link

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        if self.for_us > FLAPS_MAX * (self.down_us + self.up_us):
            raise problem(f"flaps more than {FLAPS_MAX} times", "for")
        return self


class SetLink(TriggeredLinkFault, LinkOverrides):
    """Changes parameters of a link; those that are not given stay as they are."""

    kind: ClassVar[str] = "set"
    link: LinkEnds = Field(alias="set")
    """The two regions that the link joins."""
    direction: WhichWay = "both"
    """The direction that changes; forward is from the first region to the second."""

    @property
    def target(self) -> str:
        """`r2-r3`."""
        return "-".join(self.link)

    @property
    def ends(self) -> tuple[str, str]:
        """The link's regions."""
        return self.link

    @model_validator(mode="after")
    def _changes_something(self) -> Self:
        if not self.values():
            raise problem(
                "says nothing to set: give delay, jitter, jitter_correlation, loss, loss_burst, rate, queue"
                " or reorder"
            )
        return self


def _link_or_fault(given: Any) -> Any:
    if isinstance(given, (str, tuple)):
        return given
    if isinstance(given, list) and len(given) == 2 and all(isinstance(end, str) for end in given):
        return tuple(given)
    raise problem(f"should be a fault's name or two regions, such as [r0, r1], not {given!r:.40}")


class Restore(ExperimentFault):
    """Ends a fault by its name, or everything that earlier faults do to a link."""

    kind: ClassVar[str] = "restore"
    what: Annotated[tuple[str, str] | str, BeforeValidator(_link_or_fault)] = Field(alias="restore")
    """A fault's name, or two regions."""

    @property
    def target(self) -> str:
        """`cut` or `r2-r3`."""
        return self.what if isinstance(self.what, str) else "-".join(self.what)

    @property
    def ends(self) -> tuple[str, str] | None:
        """The link's regions; None if it restores a fault by its name."""
        return None if isinstance(self.what, str) else self.what

    @property
    def regions(self) -> tuple[str, ...]:
        """The link's regions, if any."""
        return self.ends or ()


class ProcessFault(ExperimentFault):
    """A fault on a process, named like `r2/proxy-0`."""

    process: str

    @property
    def target(self) -> str:
        """`r2/proxy-0`."""
        return self.process

    @property
    def regions(self) -> tuple[str, ...]:
        """None: the process is checked instead."""
        return ()


class Kill(TriggeredFault, ProcessFault):
    """Ends a process at once (SIGKILL)."""

    kind: ClassVar[str] = "kill"
    process: str = Field(alias="kill")
    """The process, such as r2/proxy-0."""


class Stop(TriggeredFault, ProcessFault):
    """Halts a process (SIGSTOP)."""

    kind: ClassVar[str] = "stop"
    process: str = Field(alias="stop")
    """The process, such as r2/proxy-0."""


class Continue(ProcessFault):
    """Resumes a stopped process (SIGCONT)."""

    kind: ClassVar[str] = "continue"
    process: str = Field(alias="continue")
    """The process, such as r2/proxy-0."""


class Restart(ProcessFault):
    """Restarts a process that was killed or has left."""

    kind: ClassVar[str] = "restart"
    process: str = Field(alias="restart")
    """The process, such as r2/proxy-0."""


class Replace(ProcessFault):
    """Restarts a process that was killed or has left on an empty disk: its stored data is lost."""

    kind: ClassVar[str] = "replace"
    process: str = Field(alias="replace")
    """The process, such as r2/proxy-0."""


class GiveUpFault(ProcessFault):
    """Announces to all processes, as an operator would, that a killed or departed process will not come back.
    A chain then continues without the data that only that process may have.
    """

    kind: ClassVar[str] = "give-up"
    process: str = Field(alias="give-up")
    """The process, such as r2/proxy-0."""


class EnvironmentFault(ProcessFault):
    """A fault in a process's environment; the process itself may be running or not."""


class PacketFault(EnvironmentFault):
    """A fault on a process's packets or connections."""

    others: tuple[str, ...]


class Separate(TriggeredFault, PacketFault):
    """Silently drops packets on the LAN between a process and others of its region."""

    kind: ClassVar[str] = "separate"
    process: str = Field(alias="separate")
    """The process, such as r2/proxy-0."""
    others: tuple[str, ...] = Field(alias="from", min_length=1)
    """The processes of its region from which it is separated."""
    direction: WhichWay = "both"
    """The affected direction: forward is from the process to the others."""
    for_us: DurationUs | None = Field(None, gt=0)
    """How long it lasts; default: until a restore by its name or the end of the run."""

    @property
    def target(self) -> str:
        """`r2/proxy-0 from r2/client-0 r2/client-1`."""
        return f"{self.process} from {' '.join(self.others)}"


class Reset(TriggeredFault, PacketFault):
    """Resets the established TCP connections of a process: both ends get a RST."""

    kind: ClassVar[str] = "reset"
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


class Block(PacketFault):
    """Drops some of the packets between a process and others, in any region, as a firewall would."""

    kind: ClassVar[str] = "block"
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
    direction: WhichWay = "both"
    """The packets that are blocked; forward are those that the process sends."""
    for_us: DurationUs | None = Field(None, gt=0)
    """How long it lasts; default: until a restore by its name or the end of the run."""

    @property
    def target(self) -> str:
        """`r2/proxy-0 from r3/proxy-0 port 7000`."""
        return f"{self.process} from {' '.join(self.others)}" + (f" port {self.port}" if self.port else "")


class DiskFault(EnvironmentFault):
    """A fault on a process's disk."""

    for_us: DurationUs | None = Field(None, gt=0)
    """How long it lasts; default: until a restore by its name, a replace, or the end of the run."""


class Fill(DiskFault):
    """Fills the free space of a process's own file system."""

    kind: ClassVar[str] = "fill"
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


class JoinFault(ProcessFault):
    """Starts a process that was absent at the start of the run."""

    kind: ClassVar[str] = "join"
    process: str = Field(alias="join")
    """The process, such as r0/client-3."""


class LeaveFault(TriggeredFault, ProcessFault):
    """Lets a process end in an orderly way, not as a failure."""

    kind: ClassVar[str] = "leave"
    process: str = Field(alias="leave")
    """The process, such as r0/client-1."""


KINDS: tuple[type[ExperimentFault], ...] = (
    CutFault,
    Restore,
    SetLink,
    Isolate,
    PartitionFault,
    Flap,
    Kill,
    Stop,
    Continue,
    Restart,
    Replace,
    GiveUpFault,
    Separate,
    Reset,
    Block,
    Fill,
    SlowDisk,
    JoinFault,
    LeaveFault,
)
KIND_NAMES = tuple(kind.kind for kind in KINDS)


def _kinds_given(given: Any) -> list[str]:
    return [kind for kind in KIND_NAMES if kind in given] if isinstance(given, dict) else []


def _one_action(given: Any) -> Any:
    if isinstance(given, ExperimentFault):
        return given
    if not isinstance(given, dict):
        raise problem(f"should be a mapping such as {{at: 19s, cut: [r2, r3]}}, not {given!r:.40}")
    kinds = _kinds_given(given)
    if len(kinds) > 1:
        raise problem(f"is both {kinds[0]} and {kinds[1]}: make two faults of it")
    if not kinds:
        known_fields = {field.alias for kind in KINDS for field in kind.model_fields.values()}
        stray = next((name for name in given if name not in known_fields), None)
        if stray is None:
            raise problem(f"has no action: give one of {', '.join(KIND_NAMES)}")
        raise problem(f"unknown field{suggestion(stray, KIND_NAMES)}", stray)
    return given


def _tag(given: Any) -> str:
    return f"<{given.kind if isinstance(given, ExperimentFault) else _kinds_given(given)[0]}>"


AnyFault = Annotated[
    Annotated[CutFault, Tag("<cut>")]
    | Annotated[Restore, Tag("<restore>")]
    | Annotated[SetLink, Tag("<set>")]
    | Annotated[Isolate, Tag("<isolate>")]
    | Annotated[PartitionFault, Tag("<partition>")]
    | Annotated[Flap, Tag("<flap>")]
    | Annotated[Kill, Tag("<kill>")]
    | Annotated[Stop, Tag("<stop>")]
    | Annotated[Continue, Tag("<continue>")]
    | Annotated[Restart, Tag("<restart>")]
    | Annotated[Replace, Tag("<replace>")]
    | Annotated[GiveUpFault, Tag("<give-up>")]
    | Annotated[Separate, Tag("<separate>")]
    | Annotated[Reset, Tag("<reset>")]
    | Annotated[Block, Tag("<block>")]
    | Annotated[Fill, Tag("<fill>")]
    | Annotated[SlowDisk, Tag("<slow-disk>")]
    | Annotated[JoinFault, Tag("<join>")]
    | Annotated[LeaveFault, Tag("<leave>")],
    Discriminator(_tag),
    BeforeValidator(_one_action),
]


def _named(faults: Sequence[ExperimentFault]) -> tuple[ExperimentFault, ...]:
    """Give each fault a unique name: its own, or its kind and its number among those of its kind."""
    named: list[ExperimentFault] = []
    numbers: Counter[str] = Counter()
    first_of: dict[str, int] = {}
    for index, fault in enumerate(faults):
        numbers[fault.kind] += 1
        name = fault.name or _own_name(fault.kind, numbers[fault.kind])
        if name in first_of:
            raise problem(f"the name {name} is taken by faults.{first_of[name]}", index, "name")
        first_of[name] = index
        named.append(fault.model_copy(update={"name": name}))
    return tuple(named)


def _own_name(kind: str, number: int) -> str:
    return f"{kind}-{number}"


def path_to(index: int, faults: Sequence[ExperimentFault]) -> str:
    """Return the path of the fault for `--set`: `faults.cut`, or `faults.0` without a name in the file."""
    fault = faults[index]
    number = sum(other.kind == fault.kind for other in faults[: index + 1])
    return f"faults.{index if fault.name == _own_name(fault.kind, number) else fault.name}"


Faults = Annotated[tuple[AnyFault, ...], Field(max_length=FAULTS_MAX), AfterValidator(_named)]
