"""The base of all workloads: event size and load, and what they compute for the plan."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Annotated, Any

from pydantic import Field

from node.core.specification import PlannedSubscription
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
"""Limit of the exponent in Zipf's law."""


class WorkloadStream(StrictModel):
    """A stream of the run: its region, which numbers the events, and its publishers."""

    name: Name | None = None
    """Its name for `--stream`, besides its number; default: its region, if that has no other stream."""
    region: str = Field(max_length=NAME_LENGTH_MAX)
    """The region that owns the stream."""
    publishers: Annotated[tuple[str, ...], Field(max_length=PUBLISHERS_MAX)] | None = None
    """Regions, each for all its drivers, or drivers such as r1/driver-0; default: the owner's."""


def named_streams(streams: Sequence[WorkloadStream]) -> Iterator[tuple[str, WorkloadStream]]:
    """Yield each stream with its name; default: its region, with a number if the region has several."""
    owned, before = Counter(stream.region for stream in streams), Counter[str]()
    for stream in streams:
        region = stream.region
        own_name = region if owned[region] == 1 else f"{region}.{before[region]}"
        before[region] += 1
        yield stream.name or own_name, stream


class SubscriptionTimes(StrictModel):
    """The times of subscriptions and of their changes."""

    within_us: DurationUs = Field(0, ge=0)
    """The first subscriptions are made at a random time up to this long after the start."""
    change_us: DurationUs | None = Field(None, gt=0)
    """The interval at which each subscriber replaces one subscription by another."""

    def times(self, duration_us: int, rng: Random) -> tuple[int, Sequence[int]]:
        """Draw the time of a subscriber's first subscriptions, and the times of its changes."""
        begin_us = rng.randrange(self.within_us + 1)
        if self.change_us is None:
            return begin_us, ()
        return begin_us, range(begin_us + self.change_us, duration_us, self.change_us)

    def problems(self, duration_us: int) -> Iterator[tuple[FieldPath, str]]:
        """Yield the path in the workload and the problem of each time that does not fit into the run."""
        if self.within_us > duration_us:
            message = (
                f"{DURATION.format(self.within_us)} is longer than the run, {DURATION.format(duration_us)}"
            )
            yield ("subscriptions", "within"), message

    def refuse_too_many(self, duration_us: int) -> None:
        """Check that a plan can hold each subscriber's changes. Raises a problem."""
        if self.change_us and duration_us // self.change_us > CHANGES_MAX:
            raise problem(f"makes more than {CHANGES_MAX} changes of each subscriber", "change")


class Workload(StrictModel, ABC):
    """The load of each publisher, shared evenly by the streams on which it publishes."""

    event_size_bytes: SizeBytes = Field(ge=1, le=EVENT_SIZE_BYTES_MAX)
    """The payload of an event."""

    @property
    def is_changing(self) -> bool:
        """Whether subscribers replace subscriptions during the run."""
        return False

    @abstractmethod
    def as_plan(self) -> dict[str, Any]:
        """Return the form for the nodes: plain data, names with units."""

    @abstractmethod
    def streams_in(self, regions: Sequence[str]) -> tuple[WorkloadStream, ...]:
        """Return the streams of a run in these regions, by number."""

    def subscriptions(
        self, subscribers: Sequence[str], duration_us: int, seed: int
    ) -> Mapping[str, tuple[PlannedSubscription, ...]]:
        """Return the subscriptions of each process, in order of time; {} if all processes get all events."""
        return {}

    def problems(self, streams: int, duration_us: int) -> Iterator[tuple[FieldPath, str]]:
        """Yield the path in the workload and the problem of each mismatch with the run or its files."""
        yield from ()

    def rows(self, streams: int, duration_us: int) -> Sequence[str]:
        """Return the rows of each stream, by number, as nodes receive them; () if events are not from a file.

        Raises InputError for what `problems` names.
        """

        return ()
