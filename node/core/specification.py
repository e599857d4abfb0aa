"""What one node of a run is told about itself and the others, as plain data.

The testbed writes it as a JSON object (`NodeSpec.from_json`); the protocols build their machines from it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class Member:
    """A process of the run, as the others know it."""

    name: str  # "r2/proxy-0"
    host: str
    region: str
    role: str
    index: int
    address: str


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a subscriber asks for (`on`) at a time of the run, or no longer wants.

    number: the topic; of a subscription by content the subscriber's own number of it. ranges: by content, the
    lowest and the highest value that is wanted of each attribute.
    """

    at_us: int
    number: int
    on: bool = True
    ranges: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Watch:
    """A message that a process is to tell of, standing still: its name, for the so-manieth time since a time
    of the run. index: what it goes by.
    """

    index: int
    at_us: int
    sends: str
    times: int


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """What one process is told. Paths and namespace are for what runs it; the machine sees the rest.

    members: all that it may have to know, itself as well; where peers find each other (`Trait.PEER`) only the
    one through which it finds them, and none if it is the first of all.
    """

    name: str
    host: str
    region: str
    role: str
    index: int
    seed: int
    system: str
    members: tuple[Member, ...]
    address: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    workload: Mapping[str, Any] = field(default_factory=dict)
    homes: tuple[str, ...] = ()  # of each stream, by its number, the region that owns it
    publishers: tuple[tuple[str, ...], ...] = ()  # likewise who publishes on it: regions, single processes
    subscriptions: tuple[Subscription, ...] = ()  # in order of time, of a workload that has them
    rows: str = (
        ""  # what its events are about, if that stands in a file: see `node.core.content.event_values`
    )
    start: int = 0  # how often this process was started before
    netns: str | None = None  # path of the network namespace; None stays in the launcher's
    log: str | None = None
    deliveries: str | None = None
    storage: str | None = None  # directory of what survives the process; None: nothing does
    watches: tuple[
        Watch, ...
    ] = ()  # what is to be done to a process when it, or this one, has sent something
    slow_disk: bool = False  # whether its calls that wait for a disk are held back: `node.tcp.sync_filter`
    program: Mapping[str, Any] | None = None  # what is started in place of a machine: `node.programs.launch`

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Self:
        """From the JSON object; raises ValueError that names what is missing or unknown."""
        known = {f.name for f in fields(cls)}
        unknown = sorted(set(given) - known)
        if unknown:
            raise ValueError(f"node specification: unknown {', '.join(unknown)}")
        try:
            return cls(
                **{
                    **given,
                    "members": tuple(Member(**member) for member in given["members"]),
                    "homes": tuple(given.get("homes", ())),
                    "publishers": tuple(map(tuple, given.get("publishers", ()))),
                    "watches": tuple(Watch(**each) for each in given.get("watches", ())),
                    "subscriptions": tuple(Subscription(**each) for each in given.get("subscriptions", ())),
                }
            )
        except (KeyError, TypeError) as error:
            raise ValueError(f"node specification of {given.get('name', '?')}: {error}") from error

    def owned_by(self, region: str) -> tuple[int, ...]:
        """The streams that a region owns."""
        return tuple(stream for stream, home in enumerate(self.homes) if home == region)

    def published_by(self, member: Member | Self) -> tuple[int, ...]:
        """The streams on which a process publishes, if its role publishes at all: its region's by default."""
        who = {member.region, member.name}
        publishers = self.publishers or [(home,) for home in self.homes]
        return tuple(stream for stream, names in enumerate(publishers) if not who.isdisjoint(names))
