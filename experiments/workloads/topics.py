"""Topics and their followers: how many, how popular each topic is, who joins and leaves when.

A stream is one publisher in a topic. A topic with several publishers has as many consecutive streams, owned
by the regions in turn; its followers subscribe to all of them. Topics are also assigned to the regions in
turn, from the most popular one, 0, on. The topics of a subscriber depend only on the run's seed and its name.
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
    SubscriptionTimes,
    Workload,
    WorkloadStream,
)
from node.core.specification import PlannedSubscription
from topologies.document import FieldPath
from topologies.strict import EventRatePerS, WholeNumber, problem

MEMBERS_MAX = 1_000_000
DRAWS_MAX = 20
"""Limit of random draws for each topic of a subscriber; beyond it, the missing topics are sampled by weight
from those left.
"""


class TopicSubscriptions(SubscriptionTimes):
    """How subscribers choose topics: a number per subscriber, or a number per topic."""

    each: WholeNumber | None = Field(None, ge=1, le=STREAMS_MAX)
    """The number of topics per subscriber; popular ones are chosen more often."""
    members: WholeNumber | None = Field(None, ge=1, le=MEMBERS_MAX)
    """The number of subscribers per topic; with zipf, of the most popular one."""
    distribution: Literal["uniform", "zipf"] = "uniform"
    """Popularity: equal, or in proportion to 1 / rank^skew."""
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
        """Return the popularity of the topic of this rank, counted from 1; that of rank 1 is 1."""
        return rank**-self.skew if self.distribution == "zipf" else 1.0


class TopicsWorkload(Workload):
    """A workload whose events go to the followers of their topic."""

    kind: Literal["topics"]
    """The kind: events of topics, for their followers."""
    topics: WholeNumber = Field(ge=1, le=STREAMS_MAX)
    """The number of topics in all regions together."""
    publishers: WholeNumber = Field(1, ge=1, le=PUBLISHERS_MAX)
    """The number of regions that publish in each topic."""
    rate_per_s: EventRatePerS = Field(gt=0, le=RATE_PER_S_MAX)
    """Events per second of each publisher, over its region's streams."""
    subscriptions_: TopicSubscriptions = Field(alias="subscriptions")
    """The followed topics and the times."""

    @property
    def is_changing(self) -> bool:
        """Whether subscriptions change during the run."""
        return self.subscriptions_.change_us is not None

    @model_validator(mode="after")
    def _enough_topics(self) -> Self:
        if self.subscriptions_.each is not None and self.subscriptions_.each > self.topics:
            raise problem(f"is more than there are topics, {self.topics}", "subscriptions", "each")
        if self.topics * self.publishers > STREAMS_MAX:
            raise problem(f"makes more than {STREAMS_MAX} streams of {self.topics} topics", "publishers")
        return self

    def as_plan(self) -> dict[str, Any]:
        """Return {"kind", "topics", "publishers", "event_size_bytes", "rate_per_s"}.

        Subscribers receive their subscriptions separately.
        """
        return {
            "kind": self.kind,
            "topics": self.topics,
            "publishers": self.publishers,
            "event_size_bytes": self.event_size_bytes,
            "rate_per_s": self.rate_per_s,
            "closed_loop": False,
        }

    def streams_in(self, regions: Sequence[str]) -> tuple[WorkloadStream, ...]:
        """Return the streams topic by topic; regions own topics in turn."""
        return tuple(
            WorkloadStream(
                name=f"t{topic}" if self.publishers == 1 else f"t{topic}-{number}",
                region=regions[(topic + number) % len(regions)],
            )
            for topic in range(self.topics)
            for number in range(self.publishers)
        )

    def subscriptions(
        self, subscribers: Sequence[str], duration_us: int, seed: int
    ) -> Mapping[str, tuple[PlannedSubscription, ...]]:
        """Return the subscriptions of each subscriber: see `Workload.subscriptions`."""
        following = self.subscriptions_
        following.refuse_too_many(duration_us)
        popularity = _Popularity.of_topics(self.topics, following)
        members = popularity.members(subscribers, following.members or 0, seed)
        found = {}
        for name in subscribers:
            rng = Random(f"subscriptions {seed} {name}")  # noqa: S311  reproducible, not secret
            begin_us, changes_us = following.times(duration_us, rng)
            topics = members[name] if following.each is None else popularity.drawn(following.each, rng)
            first = [PlannedSubscription(begin_us, topic) for topic in topics]
            asked = (*first, *popularity.changes(topics, changes_us, rng))
            found[name] = tuple(each for topic in asked for each in self._streams_of(topic))
        return found

    def problems(self, streams: int, duration_us: int) -> Iterator[tuple[FieldPath, str]]:
        """Yield each problem of the workload with the run: see `Workload.problems`."""
        return self.subscriptions_.problems(duration_us)

    def _streams_of(self, topic: PlannedSubscription) -> Iterator[PlannedSubscription]:
        """Return the subscriptions to a topic's streams."""
        first = topic.number * self.publishers
        return (replace(topic, number=first + number) for number in range(self.publishers))


@dataclass(frozen=True, slots=True)
class _Popularity:
    """The topics' weights and their running sums."""

    weights: Sequence[float]
    up_to: Sequence[float]

    @classmethod
    def of_topics(cls, topics: int, following: TopicSubscriptions) -> Self:
        """Compute the weights, from the most popular topic on."""
        weights = [following.popularity(rank) for rank in range(1, topics + 1)]
        return cls(weights, list(accumulate(weights)))

    def drawn(self, count: int, rng: Random, without: Sequence[int] = ()) -> list[int]:
        """Draw this many different topics by popularity, none of them in `without`."""
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
        """Return the topics of each subscriber; the most popular topic has `most` subscribers."""
        rng = Random(f"members {seed}")  # noqa: S311  as above
        found: defaultdict[str, list[int]] = defaultdict(list)
        for topic, weight in enumerate(self.weights):
            for name in rng.sample(subscribers, min(int(most * weight + 0.5), len(subscribers))):
                found[name].append(topic)
        return found

    def changes(
        self, topics: Sequence[int], times_us: Sequence[int], rng: Random
    ) -> Iterator[PlannedSubscription]:
        """Yield one topic left and one joined at each time, if there are other topics."""
        following = list(topics)
        for at_us in times_us if len(following) < len(self.weights) else ():
            [joined] = self.drawn(1, rng, following)
            left = following.pop(rng.randrange(len(following)))
            following.append(joined)
            yield PlannedSubscription(at_us, left, on=False)
            yield PlannedSubscription(at_us, joined)
