"""What every workload says: the size of events and their rate; and what it computes for the plan."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Annotated, Any

from pydantic import Field

from node.core.specification import Subscription
from topologies.document import FieldPath
from topologies.quantities import DURATION
from topologies.strict import DurationUs, Name, SizeBytes, StrictModel, problem

EVENT_SIZE_BYTES_MAX = 65_536
STREAMS_MAX = 10_000
PUBLISHERS_MAX = 10_000
NAME_LENGTH_MAX = 60
RATE_PER_S_MAX = 100_000_000
CHANGES_MAX = 1_000_000
SKEW_MAX = 10.0
"""Of Zipf's law."""


class Stream(StrictModel):
    """A stream of the run: what numbers events, where, and who publishes on it."""

    name: Name | None = None
    """What `--stream` calls it, beside its number; its region if that has no other stream."""
    region: str = Field(max_length=NAME_LENGTH_MAX)
    """The region that owns the stream."""
    publishers: Annotated[tuple[str, ...], Field(max_length=PUBLISHERS_MAX)] | None = None
    """Regions, each for all of its drivers, and drivers such as r1/driver-0; the owner's unless given."""


def named_streams(streams: Sequence[Stream]) -> Iterator[tuple[str, Stream]]:
    """Each with its name: if it has none, that of its region, with a number where that has several."""
    owned, before = Counter(stream.region for stream in streams), Counter[str]()
    for stream in streams:
        region = stream.region
        own_name = region if owned[region] == 1 else f"{region}.{before[region]}"
        before[region] += 1
        yield stream.name or own_name, stream


class Subscribing(StrictModel):
    """When subscribers subscribe, and to something else."""

    within_us: DurationUs = Field(0, ge=0)
    """The first subscriptions are made at some time between the start and so long after it."""
    change_us: DurationUs | None = Field(None, gt=0)
    """So often each subscriber leaves one subscription for another one."""

    def times(self, duration_us: int, rng: Random) -> tuple[int, Sequence[int]]:
        """When a subscriber begins, and when it changes."""
        begin_us = rng.randrange(self.within_us + 1)
        if self.change_us is None:
            return begin_us, ()
        return begin_us, range(begin_us + self.change_us, duration_us, self.change_us)

    def problems(self, duration_us: int) -> Iterator[tuple[FieldPath, str]]:
        """Path in the workload and what does not fit into a run of this length."""
        if self.within_us > duration_us:
            said = f"{DURATION.format(self.within_us)} is longer than the run, {DURATION.format(duration_us)}"
            yield ("subscriptions", "within"), said

    def refuse_too_many(self, duration_us: int) -> None:
        """Raises a problem if each subscriber would change more often than a plan can hold."""
        if self.change_us and duration_us // self.change_us > CHANGES_MAX:
            raise problem(f"makes more than {CHANGES_MAX} changes of each subscriber", "change")


class Workload(StrictModel, ABC):
    """The load of each publisher, shared evenly by the streams that it publishes on."""

    event_size_bytes: SizeBytes = Field(ge=1, le=EVENT_SIZE_BYTES_MAX)
    """Payload of an event."""

    @property
    def is_changing(self) -> bool:
        """Whether subscribers leave subscriptions for others during the run."""
        return False

    @abstractmethod
    def as_plan(self) -> dict[str, Any]:
        """As the nodes are told: plain data, names with units."""

    @abstractmethod
    def streams_in(self, regions: Sequence[str]) -> tuple[Stream, ...]:
        """The streams of a run in these regions, by number."""

    def subscriptions(
        self, subscribers: Sequence[str], duration_us: int, seed: int
    ) -> Mapping[str, tuple[Subscription, ...]]:
        """What each of these processes asks for, in order of time; nothing where all get all."""
        return {}

    def problems(self, streams: int, duration_us: int) -> Iterator[tuple[FieldPath, str]]:
        """Path in the workload and what is wrong there: with a run of this length, or in files of its own."""
        yield from ()

    def rows(self, streams: int, duration_us: int) -> Sequence[str]:
        """What events are about where that stands in a file: of each stream, by number, as nodes are told it.

        Raises InputError for what `problems` names.
        """
        return ()
