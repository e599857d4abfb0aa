"""A case of a hunt: settings, a few disturbances and a seed. Plain data and JSON.

A *disturbance* is a fault and its repair, such as a link cut for two seconds or a process killed and
restarted; or a process that arrives or leaves; or a permanently cut link. It becomes one or more faults of an
experiment (`case_experiment`). Every repair happens before the run's drivers stop.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import ConfigDict, Field

from experiments.records.validated_json import STRICT, Name, Seed, from_json

LinkKind = Literal["cut", "isolate", "partition", "flap", "delay", "loss", "duplicate", "corrupt", "sever"]
ProcessKind = Literal[
    "crash", "die", "pause", "leave", "join", "depart", "separate", "reset", "fill", "slow-disk", "clock",
    "throttle", "memory",
]  # fmt: skip
RegionKind = Literal["power", "power-and-disks"]
Kind = Literal[LinkKind, ProcessKind, RegionKind]
ON_LINKS: tuple[Kind, ...] = get_args(LinkKind)
ON_PROCESSES: tuple[Kind, ...] = get_args(ProcessKind)
ON_REGIONS: tuple[Kind, ...] = get_args(RegionKind)
KINDS: tuple[Kind, ...] = get_args(Kind)
COMING_AND_GOING: tuple[Kind, ...] = ("leave", "join", "depart")
"""Leave and come back, arrive late, leave permanently: only for processes that may."""
FOR_GOOD: tuple[Kind, ...] = ("sever", "die", "depart")
"""Cut, killed or departed, and never back."""
ON_DISKS: tuple[Kind, ...] = ("fill", "slow-disk")
IF_ASKED: tuple[Kind, ...] = ("duplicate", "corrupt", "clock", "throttle", "memory")
"""Disturbances that are drawn only if `nemesis.kinds` has them."""
AT_ONCE: tuple[Kind, ...] = ("join", "reset", *FOR_GOOD)
"""Disturbances without a duration."""
FORGETTING: tuple[Kind, ...] = ("crash", "memory", "die", "leave", "depart", "power", "power-and-disks")
"""Disturbances that end processes and lose their memory."""
FAULTS: Mapping[Kind, str] = {
    "delay": "set",
    "loss": "set",
    "duplicate": "set",
    "corrupt": "set",
    "memory": "kill",
    "sever": "cut",
    "crash": "kill",
    "die": "kill",
    "pause": "stop",
    "depart": "leave",
    "power": "kill",
    "power-and-disks": "kill",
}
"""The kind of fault that a disturbance is, if the names differ."""
DISTURBANCES_MAX = 60

TimeUs = Annotated[int, Field(ge=0, le=24 * 3600 * 1_000_000)]
Direction = Literal["both", "forward", "backward"]


@dataclass(frozen=True, slots=True)
class DisturbanceTrigger:
    """The trigger of a disturbance: a process sends its n-th such message since `since_us`."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    process: Name
    sends: Name
    times: Annotated[int, Field(ge=1)]
    since_us: TimeUs


@dataclass(frozen=True, slots=True)
class HuntDisturbance:
    """A fault that is repaired `for_us` later.

    target: two regions of a link, and its name if others join them too; a region (its links or all its
    processes); the regions of one side of a partition; or processes. others: the other side, the processes
    from which a process is separated, or the one process whose packets on a link are disturbed. port: only
    packets of this port are disturbed; 0: of any. amount: for a delay microseconds; for a share of packets or
    of a processor parts per thousand; for a flap the time down and the time up in microseconds; for a slow
    disk the time added to a sync in microseconds; for memory bytes; for a clock how far it is set forward or
    backward (direction), in microseconds. after: the trigger, for
    links and for a process that is killed, stopped, asked to leave, disconnected or separated: the
    disturbance begins then, at about `at_us`, and ends at its time.
    """

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kind: Kind
    at_us: TimeUs
    for_us: TimeUs
    target: tuple[Name, ...]
    others: tuple[Name, ...] = ()
    direction: Direction = "both"
    amount: Annotated[int, Field(ge=0)] = 0
    after: DisturbanceTrigger | None = None
    port: Annotated[int, Field(ge=0, le=65_535)] = 0

    @property
    def end_us(self) -> int:
        """The time of the repair."""
        return self.at_us + self.for_us

    @property
    def regions(self) -> frozenset[str]:
        """The regions that it affects."""
        return frozenset({name.partition("/")[0] for name in (*self.target, *self.others)})


@dataclass(frozen=True, slots=True)
class HuntCase:
    """One run of a hunt: fields of the experiment by dotted path, disturbances by time, and a seed."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    seed: Seed
    settings: Mapping[str, Any]
    disturbances: Annotated[tuple[HuntDisturbance, ...], Field(max_length=DISTURBANCES_MAX)]

    def key(self) -> str:
        """Return a text that is equal for equal cases."""
        settings = sorted((path, repr(value)) for path, value in self.settings.items())
        return repr((self.seed, settings, self.disturbances))


def by_time(disturbances: Any) -> tuple[HuntDisturbance, ...]:
    """Return disturbances in the order of a case."""
    return tuple(sorted(disturbances, key=lambda each: (each.at_us, each.kind, each.target)))


def case_to_json(case: HuntCase) -> dict[str, Any]:
    """Convert a case to plain JSON."""
    return {
        "seed": case.seed,
        "settings": dict(case.settings),
        "disturbances": [asdict(each) for each in case.disturbances],
    }


def case_from_json(content: Any, file: object = "case") -> HuntCase:
    """Read the case that `case_to_json` wrote. Raises InputError with the field."""
    return from_json(HuntCase, content, file)
