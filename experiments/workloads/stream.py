"""Streams of events, each for all clients: at a rate (open loop) or as fast as they are acknowledged;
optionally with the events that each event collects (paper 3.4) and the keys of events (paper 5.4).
"""

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from experiments.workloads.workload import RATE_PER_S_MAX, SKEW_MAX, STREAMS_MAX, Workload, WorkloadStream
from topologies.strict import (
    DurationUs,
    EventRatePerS,
    Flag,
    Fraction,
    StrictModel,
    WholeNumber,
    problem,
)

LAST_MAX = 1 << 62
KEY_BYTES_MAX = 255
ONE_OF_MAX = 1_000_000_000
KEYS_MAX = 1_000_000_000


class CollectRule(StrictModel):
    """The predicate of garbage collection events that drivers publish: exactly one rule, and its
    frequency.
    """

    last: WholeNumber | None = Field(None, ge=1, le=LAST_MAX)
    """Event i collects the events before i - N."""
    older_than_us: DurationUs | None = Field(None, gt=0)
    """An event collects those that are older by this time, such as 1d."""
    same_key: WholeNumber | None = Field(None, ge=1, le=KEY_BYTES_MAX)
    """An event collects the earlier ones with the same key, which is this many bytes at its beginning."""
    every_us: DurationUs | None = Field(None, gt=0)
    """Only one event per period of each driver collects, such as 1d; the others are data."""
    one_of: WholeNumber | None = Field(None, ge=2, le=ONE_OF_MAX)
    """Only one of this many events of each driver collects; the others are data."""

    @model_validator(mode="after")
    def _one_rule(self) -> Self:
        if sum(value is not None for value in (self.last, self.older_than_us, self.same_key)) != 1:
            raise problem("should be one of: last, older_than, same_key")
        if self.every_us is not None and self.one_of is not None:
            raise problem("cannot be combined with every: remove one of the two", "one_of")
        return self

    def as_plan(self) -> dict[str, Any]:
        """Return predicate and argument (events, microseconds or bytes), and "every_us" or "one_of" if
        given.
        """
        arguments = {"last": self.last, "older_than": self.older_than_us, "same_key": self.same_key}
        [(predicate, argument)] = [item for item in arguments.items() if item[1] is not None]
        seldom = {"every_us": self.every_us, "one_of": self.one_of}
        given = {name: value for name, value in seldom.items() if value is not None}
        return {"predicate": predicate, "argument": argument, **given}


class KeySettings(StrictModel):
    """The keys at the beginning of events, by popularity (paper 5.4)."""

    distribution: Literal["zipf", "zeta", "uniform"] = "zipf"
    """zipf: over `count` keys. zeta: over all positive numbers. uniform: over `count` keys."""
    skew: float = Field(1.1, gt=0, le=SKEW_MAX, strict=True)
    """The exponent of zipf and zeta."""
    count: WholeNumber = Field(100_000, ge=1, le=KEYS_MAX)
    """The number of keys at the start."""
    insertions: Fraction = Field(0.0, lt=1)
    """The share of events that add a new key; 0% keeps the keys fixed."""

    @model_validator(mode="after")
    def _zeta_converges(self) -> Self:
        if self.distribution == "zeta" and self.skew <= 1:
            raise problem("should be more than 1 for zeta, whose sum diverges otherwise", "skew")
        return self


Streams = Annotated[
    Annotated[WholeNumber, Field(ge=1, le=STREAMS_MAX), Tag("<number>")]
    | Annotated[tuple[WorkloadStream, ...], Field(min_length=1, max_length=STREAMS_MAX), Tag("<list>")],
    Discriminator(lambda given: "<list>" if isinstance(given, list | tuple) else "<number>"),
]


class StreamWorkload(Workload):
    """A workload whose events go to all clients."""

    kind: Literal["stream"] = "stream"
    """The kind: streams of numbered events."""
    streams: Streams = 1
    """The number of streams per region, if the system supports several; or a list of all streams."""
    rate_per_s: EventRatePerS | None = Field(None, gt=0, le=RATE_PER_S_MAX)
    """Open loop: events per second of each driver, whether or not the system keeps up."""
    closed_loop: Flag = False
    """Closed loop: each driver publishes as fast as its events are acknowledged."""
    collect: CollectRule | None = None
    """The events that an event collects: it is then a garbage collection event. Default: none."""
    keys: KeySettings | None = None
    """The keys of events. Default: every event has a key of its own."""

    @property
    def most_streams(self) -> int:
        """The largest number of streams of a region."""
        if isinstance(self.streams, int):
            return self.streams
        return max(Counter(stream.region for stream in self.streams).values())

    def streams_in(self, regions: Sequence[str]) -> tuple[WorkloadStream, ...]:
        """Return the listed streams, or the given number for each region, region by region."""
        if not isinstance(self.streams, int):
            return self.streams
        return tuple(WorkloadStream(region=region) for region in regions for _ in range(self.streams))

    def as_plan(self) -> dict[str, Any]:
        """Return {"event_size_bytes", "rate_per_s", "closed_loop"} for the nodes.

        If given, also "collect" {"predicate", "argument"} and "keys" {"distribution", "skew", "count",
        "insertions"}. The plan holds streams separately.
        """
        plain: dict[str, Any] = {
            "event_size_bytes": self.event_size_bytes,
            "rate_per_s": self.rate_per_s,
            "closed_loop": self.closed_loop,
        }
        if self.collect is not None:
            plain["collect"] = self.collect.as_plan()
        if self.keys is not None:
            plain["keys"] = self.keys.model_dump()
        return plain

    @model_validator(mode="after")
    def _one_kind_of_loop(self) -> Self:
        if self.closed_loop and self.rate_per_s is not None:
            raise problem("a closed loop has no rate: remove one of the two", "closed_loop")
        if not self.closed_loop and self.rate_per_s is None:
            raise problem("needs a rate, such as 20000/s, or closed_loop: true")
        return self

    @model_validator(mode="after")
    def _keys_fit(self) -> Self:
        key_bytes = self.collect.same_key if self.collect else None
        if key_bytes is not None and key_bytes > self.event_size_bytes:
            raise problem(f"is longer than an event of {self.event_size_bytes} B", "collect", "same_key")
        return self
