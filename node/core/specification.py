"""Specification of one node of a run, as plain data: its own attributes and those of the others.

The testbed writes it as a JSON object (`NodeSpec.from_json`); the protocols build their machines from it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

from node.core.wrong_clock import WrongClock


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
class PlannedSubscription:
    """A subscription that a subscriber makes (`on`) or ends at a time of the run.

    number: the topic; for a subscription by content, the subscriber's own number for it. ranges: by content,
    the lowest and the highest value of each attribute.
    """

    at_us: int
    number: int
    on: bool = True
    ranges: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True, slots=True)
class SendWatch:
    """A message at which a process stops and reports: the `times`-th with a name since a time of the run.

    index: identifies the watch.
    """

    index: int
    at_us: int
    sends: str
    times: int


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """Specification of one process. Paths and namespace are for the runner; the machine sees the rest.

    members: all processes that it may need to know, itself included; if peers discover each other
    (`Trait.PEER`) only its first contact, and none if it is the first peer.
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
    homes: tuple[str, ...] = ()  # the region that owns each stream, by the stream's number
    publishers: tuple[
        tuple[str, ...], ...
    ] = ()  # likewise the publishers of each stream: regions or single processes
    subscriptions: tuple[PlannedSubscription, ...] = ()  # ordered by time, if the workload has any
    rows: str = ""  # values of its events, if they come from a file: see `node.core.content.event_values`
    start: int = 0  # number of earlier starts of this process
    netns: str | None = None  # path of the network namespace; None stays in the launcher's
    log: str | None = None
    deliveries: str | None = None
    storage: str | None = None  # directory that survives the process; None: nothing does
    watches: tuple[
        SendWatch, ...
    ] = ()  # faults that are triggered when this or another process has sent something
    slow_disk: bool = False  # whether its calls that sync a disk are delayed: `node.tcp.sync_filter`
    clock: WrongClock | None = None  # its clock by CLOCK_REALTIME, if that can be made wrong during the run
    control_groups: tuple[str, ...] = ()  # files through which its process enters its control group
    program: Mapping[str, Any] | None = (
        None  # a program that runs in place of a machine: `node.programs.launch`
    )

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Self:
        """Parse the JSON object. Raises ValueError that names what is missing or unknown."""
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
                    "control_groups": tuple(given.get("control_groups", ())),
                    "clock": None if (clock := given.get("clock")) is None else WrongClock(**clock),
                    "watches": tuple(SendWatch(**each) for each in given.get("watches", ())),
                    "subscriptions": tuple(
                        PlannedSubscription(**each) for each in given.get("subscriptions", ())
                    ),
                }
            )
        except (KeyError, TypeError) as error:
            raise ValueError(f"node specification of {given.get('name', '?')}: {error}") from error

    def owned_by(self, region: str) -> tuple[int, ...]:
        """Return the streams that a region owns."""
        return tuple(stream for stream, home in enumerate(self.homes) if home == region)

    def published_by(self, member: Member | Self) -> tuple[int, ...]:
        """Return the streams on which a process publishes, if its role publishes: by default its region's."""
        who = {member.region, member.name}
        publishers = self.publishers or [(home,) for home in self.homes]
        return tuple(stream for stream, names in enumerate(publishers) if not who.isdisjoint(names))
