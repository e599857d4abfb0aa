"""Topics, of which subscribers follow some: how many, how popular each is, who joins and leaves when.

A stream is a publisher in a topic: a topic with several publishers has as many streams, one after the other,
of regions in turn, and who follows it is subscribed to all of them. Regions own topics in turn, too, from the
most popular one, 0, on. Who follows what follows from the run's seed and the subscriber's name alone.
"""

from bisect import bisect
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from random import Random
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from experiments.workloads.workload import (
    PUBLISHERS_MAX,
    RATE_PER_S_MAX,
    SKEW_MAX,
    STREAMS_MAX,
    Stream,
    Subscribing,
    Workload,
)
from node.core.specification import Subscription
from topologies.document import FieldPath
from topologies.strict import EventRatePerS, WholeNumber, problem

MEMBERS_MAX = 1_000_000
DRAWS_MAX = 20
"""For each topic of a subscriber; then the rest is taken from all that are left, weighing each."""


class Following(Subscribing):
    """How subscribers choose topics: so many of each, or so many of each topic."""

    each: WholeNumber | None = Field(None, ge=1, le=STREAMS_MAX)
    """Topics of each subscriber; popular ones more often."""
    members: WholeNumber | None = Field(None, ge=1, le=MEMBERS_MAX)
    """Subscribers of each topic; of the most popular one, where some are more popular."""
    distribution: Literal["uniform", "zipf"] = "uniform"
    """Popularity: all alike, or in proportion to 1 / rank^skew."""
    skew: float = Field(1.25, gt=0, le=SKEW_MAX, strict=True)
    """The exponent of zipf."""

    @model_validator(mode="after")
    def _one_count(self) -> Self:
        if (self.each is None) == (self.members is None):
            raise problem("should have one of: each (topics of each subscriber), members (of each topic)")
        if self.members is not None and self.change_us is not None:
            raise problem("can only be together with each", "change")
        return self

    def popularity(self, rank: int) -> float:
        """Of the topic of this rank, from 1 on; the first one's is 1."""
        return rank**-self.skew if self.distribution == "zipf" else 1.0


class TopicsWorkload(Workload):
    """Events are for who follows their topic."""

    kind: Literal["topics"]
    """What is published: events of topics, for those who follow them."""
    topics: WholeNumber = Field(ge=1, le=STREAMS_MAX)
    """How many there are, all regions together."""
    publishers: WholeNumber = Field(1, ge=1, le=PUBLISHERS_MAX)
    """Regions that publish in each topic."""
    rate_per_s: EventRatePerS = Field(gt=0, le=RATE_PER_S_MAX)
    """Events a second of each publisher, over its region's streams."""
    subscriptions_: Following = Field(alias="subscriptions")
    """Who follows what, and when."""

    @property
    def is_changing(self) -> bool:
        """See `Workload`."""
        return self.subscriptions_.change_us is not None

    @model_validator(mode="after")
    def _enough_topics(self) -> Self:
        if self.subscriptions_.each is not None and self.subscriptions_.each > self.topics:
            raise problem(f"is more than there are topics, {self.topics}", "subscriptions", "each")
        if self.topics * self.publishers > STREAMS_MAX:
            raise problem(f"makes more than {STREAMS_MAX} streams of {self.topics} topics", "publishers")
        return self

    def as_plan(self) -> dict[str, Any]:
        """{"kind", "topics", "publishers", "event_size_bytes", "rate_per_s"}: subscribers are told theirs."""
        return {
            "kind": self.kind,
            "topics": self.topics,
            "publishers": self.publishers,
            "event_size_bytes": self.event_size_bytes,
            "rate_per_s": self.rate_per_s,
            "closed_loop": False,
        }

    def streams_in(self, regions: Sequence[str]) -> tuple[Stream, ...]:
        """Topic by topic those of its publishers; regions own topics in turn."""
        return tuple(
            Stream(
                name=f"t{topic}" if self.publishers == 1 else f"t{topic}-{number}",
                region=regions[(topic + number) % len(regions)],
            )
            for topic in range(self.topics)
            for number in range(self.publishers)
        )

    def subscriptions(
        self, subscribers: Sequence[str], duration_us: int, seed: int
    ) -> Mapping[str, tuple[Subscription, ...]]:
        """See `Workload.subscriptions`."""
        following = self.subscriptions_
        following.refuse_too_many(duration_us)
        popularity = _Popularity.of(self.topics, following)
        members = popularity.members(subscribers, following.members or 0, seed)
        found = {}
        for name in subscribers:
            rng = Random(f"subscriptions {seed} {name}")  # noqa: S311  to be replayed, not to be kept secret
            begin_us, changes_us = following.times(duration_us, rng)
            topics = members[name] if following.each is None else popularity.drawn(following.each, rng)
            first = [Subscription(begin_us, topic) for topic in topics]
            asked = (*first, *popularity.changes(topics, changes_us, rng))
            found[name] = tuple(each for topic in asked for each in self._streams_of(topic))
        return found

    def problems(self, streams: int, duration_us: int) -> Iterator[tuple[FieldPath, str]]:
        """See `Workload.problems`."""
        return self.subscriptions_.problems(duration_us)

    def _streams_of(self, topic: Subscription) -> Iterator[Subscription]:
        """The subscriptions to a topic's streams."""
        first = topic.number * self.publishers
        return (replace(topic, number=first + number) for number in range(self.publishers))


@dataclass(frozen=True, slots=True)
class _Popularity:
    """The topics' weights, and these added up."""

    weights: Sequence[float]
    up_to: Sequence[float]

    @classmethod
    def of(cls, topics: int, following: Following) -> Self:
        """From the most popular one on."""
        weights = [following.popularity(rank) for rank in range(1, topics + 1)]
        return cls(weights, list(accumulate(weights)))

    def drawn(self, count: int, rng: Random, without: Sequence[int] = ()) -> list[int]:
        """So many different topics by popularity, none of which is in `without`."""
        found: dict[int, None] = {}
        for _ in range(DRAWS_MAX * count):
            if len(found) == count:
                break
            topic = bisect(self.up_to, rng.random() * self.up_to[-1], hi=len(self.up_to) - 1)
            if topic not in without:
                found[topic] = None
        else:
            taken = {*found, *without}
            left = [topic for topic in range(len(self.weights)) if topic not in taken]
            left.sort(key=lambda topic: rng.expovariate(self.weights[topic]))
            found |= dict.fromkeys(left[: count - len(found)])
        return list(found)

    def members(self, subscribers: Sequence[str], most: int, seed: int) -> defaultdict[str, list[int]]:
        """The topics of each subscriber, where the most popular topic has so many."""
        rng = Random(f"members {seed}")  # noqa: S311  as above
        found: defaultdict[str, list[int]] = defaultdict(list)
        for topic, weight in enumerate(self.weights):
            for name in rng.sample(subscribers, min(int(most * weight + 0.5), len(subscribers))):
                found[name].append(topic)
        return found

    def changes(self, topics: Sequence[int], times_us: Sequence[int], rng: Random) -> Iterator[Subscription]:
        """At each time one topic is left and another one joined, where there are others."""
        following = list(topics)
        for at_us in times_us if len(following) < len(self.weights) else ():
            [joined] = self.drawn(1, rng, following)
            left = following.pop(rng.randrange(len(following)))
            following.append(joined)
            yield Subscription(at_us, left, on=False)
            yield Subscription(at_us, joined)
