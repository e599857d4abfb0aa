"""A case of a hunt: settings, a few disturbances and a seed. Plain data, and JSON.

A *disturbance* is something that goes wrong and is put right again, as a link cut for two seconds, a process
killed and started again; or a process that comes or goes, or a link that does. It stands for one or more
faults as experiments have them (`written`). What is put right again is so before the run's drivers stop.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import ConfigDict, Field

from experiments.records.validated_json import STRICT, Name, Seed, from_json

Kind = Literal[
    "cut",
    "isolate",
    "partition",
    "flap",
    "delay",
    "loss",
    "sever",
    "crash",
    "die",
    "pause",
    "leave",
    "join",
    "depart",
    "separate",
    "reset",
    "fill",
    "slow-disk",
    "power",
    "power-and-disks",
]
KINDS: tuple[Kind, ...] = get_args(Kind)
ON_LINKS: tuple[Kind, ...] = ("cut", "isolate", "partition", "flap", "delay", "loss", "sever")
ON_PROCESSES: tuple[Kind, ...] = (
    "crash", "die", "pause", "leave", "join", "depart", "separate", "reset", "fill", "slow-disk"
)  # fmt: skip
ON_REGIONS: tuple[Kind, ...] = ("power", "power-and-disks")
COMING_AND_GOING: tuple[Kind, ...] = ("leave", "join", "depart")
"""Left and came back, was not there before, left for good: of processes that may."""
FOR_GOOD: tuple[Kind, ...] = ("sever", "die", "depart")
"""Cut, killed, left, and never there again."""
ON_DISKS: tuple[Kind, ...] = ("fill", "slow-disk")
AT_ONCE: tuple[Kind, ...] = ("join", "reset", *FOR_GOOD)
"""What is over when it has begun."""
FORGETTING: tuple[Kind, ...] = ("crash", "die", "leave", "depart", "power", "power-and-disks")
"""What ends processes, and with them what they have in memory."""
FAULTS: Mapping[Kind, str] = {
    "delay": "set",
    "loss": "set",
    "sever": "cut",
    "crash": "kill",
    "die": "kill",
    "pause": "stop",
    "depart": "leave",
    "power": "kill",
    "power-and-disks": "kill",
}
"""The kind of fault that a disturbance is, where it has another name."""
DISTURBANCES_MAX = 60
STEP_US = 1_000  # drawn times are whole milliseconds; right after something happened, microseconds count

TimeUs = Annotated[int, Field(ge=0, le=24 * 3600 * 1_000_000)]
Direction = Literal["both", "forward", "backward"]


@dataclass(frozen=True, slots=True)
class After:
    """What a disturbance waits for: a process sends such a message for the so-manieth time since then."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    process: Name
    sends: Name
    times: Annotated[int, Field(ge=1)]
    since_us: TimeUs


@dataclass(frozen=True, slots=True)
class Disturbance:
    """One thing that goes wrong, and is put right `for_us` later.

    target: two regions of a link, a region whose links or all of whose processes it is, the regions of one
    side of a partition, or processes. others: the other side, or from whom a process is separated. amount: of
    a delay, microseconds; of a loss, parts per thousand; of a flap, for how long the link is down each time,
    and up, in microseconds; of a slow disk, how much longer a sync takes, in microseconds. after: of
    links, or of a process that is killed, stopped, told to leave, cut off from its connections or kept from
    others: it begins then, at about `at_us`; it ends at its time.
    """

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kind: Kind
    at_us: TimeUs
    for_us: TimeUs
    target: tuple[Name, ...]
    others: tuple[Name, ...] = ()
    direction: Direction = "both"
    amount: Annotated[int, Field(ge=0)] = 0
    after: After | None = None

    @property
    def end_us(self) -> int:
        """When all is as it was."""
        return self.at_us + self.for_us

    @property
    def regions(self) -> frozenset[str]:
        """In which it is, or between which."""
        return frozenset({name.partition("/")[0] for name in (*self.target, *self.others)})


@dataclass(frozen=True, slots=True)
class Case:
    """One run of a hunt: fields of the experiment by dotted path, disturbances by time, and a seed."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    seed: Seed
    settings: Mapping[str, Any]
    disturbances: Annotated[tuple[Disturbance, ...], Field(max_length=DISTURBANCES_MAX)]

    def key(self) -> str:
        """The same for equal cases."""
        settings = sorted((path, repr(value)) for path, value in self.settings.items())
        return repr((self.seed, settings, self.disturbances))


def by_time(disturbances: Any) -> tuple[Disturbance, ...]:
    """Disturbances in the order of a case."""
    return tuple(sorted(disturbances, key=lambda each: (each.at_us, each.kind, each.target)))


def case_to_json(case: Case) -> dict[str, Any]:
    """A case as plain JSON."""
    return {
        "seed": case.seed,
        "settings": dict(case.settings),
        "disturbances": [asdict(each) for each in case.disturbances],
    }


def case_from_json(content: Any, file: object = "case") -> Case:
    """The case that `case_to_json` wrote. Raises InputError with the field."""
    return from_json(Case, content, file)
