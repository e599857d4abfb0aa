"""Events with attributes, for who subscribes to ranges of their values.

Subscriptions are drawn from templates: which attributes they name, and how much of all that these can be they
want of each; a template is as frequent as its weight says. Where a range lies, and the values of events, are
drawn with all values alike. Who asks for what follows from the run's seed and the subscriber's name alone.
"""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from experiments.workloads.workload import RATE_PER_S_MAX, Stream, Subscribing, Workload
from node.core.specification import Subscription
from topologies.strict import EventRatePerS, Fraction, Name, StrictModel, WholeNumber, problem, suggestion

ATTRIBUTES_MAX = 100
TEMPLATES_MAX = 100
EACH_MAX = 10_000
VALUE_BYTES = 8
"""Of an attribute in an event, if a system writes it as a double."""


class Attribute(StrictModel):
    """What an event has a value of."""

    name: Name
    """What templates call it."""
    type: Literal["real", "integer"] = "real"
    """Of its values."""
    min: float = 0.0
    """The lowest value."""
    max: float
    """The highest value."""

    @model_validator(mode="after")
    def _some_values(self) -> Self:
        if self.max <= self.min:
            raise problem(f"should be more than min, {self.min:g}", "max")
        if self.type == "integer" and not (self.min.is_integer() and self.max.is_integer()):
            raise problem("has a bound that is no integer")
        return self

    def part(self, share: float, rng: Random) -> tuple[float, float]:
        """A range of so much of all values, anywhere among them."""
        if self.type == "integer":
            size = max(1, round(share * (self.max - self.min + 1)))
            low = self.min + rng.randrange(int(self.max - self.min) + 2 - size)
            return low, low + size - 1
        width = share * (self.max - self.min)
        low = rng.uniform(self.min, self.max - width)
        return low, min(low + width, self.max)


class Template(StrictModel):
    """A kind of subscription."""

    weight: float = Field(1.0, gt=0)
    """How frequent it is beside the others."""
    ranges: dict[Name, Fraction] = Field(max_length=ATTRIBUTES_MAX)
    """How much of the values of each attribute it wants, such as 10%; of one that is not named, all."""


class Asking(Subscribing):
    """What subscribers ask for."""

    each: WholeNumber = Field(1, ge=1, le=EACH_MAX)
    """Subscriptions of each subscriber."""
    templates: tuple[Template, ...] = Field(min_length=1, max_length=TEMPLATES_MAX)
    """What they are like."""


class ContentWorkload(Workload):
    """Events are for who wants what they are about."""

    kind: Literal["content"]
    """What is published: events with values, for those whose subscriptions match."""
    attributes: tuple[Attribute, ...] = Field(min_length=1, max_length=ATTRIBUTES_MAX)
    """What events have values of."""
    rate_per_s: EventRatePerS = Field(gt=0, le=RATE_PER_S_MAX)
    """Events a second of each publisher."""
    subscriptions_: Asking = Field(alias="subscriptions")
    """Who asks for what, and when."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        names = [each.name for each in self.attributes]
        if twice := next((name for place, name in enumerate(names) if name in names[:place]), None):
            raise problem(f"there are two {twice}", "attributes")
        for number, template in enumerate(self.subscriptions_.templates):
            for name in template.ranges:
                if name not in names:
                    path = ("subscriptions", "templates", number, "ranges", name)
                    raise problem(f"there is no such attribute{suggestion(name, names)}", *path)
        if self.event_size_bytes < VALUE_BYTES * len(names):
            least = VALUE_BYTES * len(names)
            raise problem(f"is less than {len(names)} values need, {least} B", "event_size")
        return self

    def as_plan(self) -> dict[str, Any]:
        """{"kind", "attributes", "event_size_bytes", "rate_per_s"}: subscribers are told theirs."""
        return {
            "kind": self.kind,
            "attributes": [
                {"name": each.name, "kind": each.type, "low": each.min, "high": each.max}
                for each in self.attributes
            ],
            "event_size_bytes": self.event_size_bytes,
            "rate_per_s": self.rate_per_s,
            "closed_loop": False,
        }

    def streams_in(self, regions: Sequence[str]) -> tuple[Stream, ...]:
        """One of each region."""
        return tuple(Stream(region=region) for region in regions)

    def subscriptions(
        self, subscribers: Sequence[str], duration_us: int, seed: int
    ) -> Mapping[str, tuple[Subscription, ...]]:
        """See `Workload.subscriptions`. Numbers count the subscriptions of each subscriber."""
        asking = self.subscriptions_
        asking.refuse_too_many(duration_us)
        weights = [template.weight for template in asking.templates]
        found = {}
        for name in subscribers:
            rng = Random(f"subscriptions {seed} {name}")  # noqa: S311  to be replayed, not to be kept secret
            begin_us, changes_us = asking.times(duration_us, rng)
            times_us = [begin_us] * asking.each + list(changes_us)
            templates = rng.choices(asking.templates, weights, k=len(times_us))
            asked = [
                Subscription(at_us, number, ranges=self._ranges(template, rng))
                for number, (at_us, template) in enumerate(zip(times_us, templates, strict=True))
            ]
            found[name] = tuple(_with_ends(asked, asking.each, rng))
        return found

    def _ranges(self, template: Template, rng: Random) -> tuple[tuple[float, float], ...]:
        return tuple(
            each.part(template.ranges[each.name], rng)
            if each.name in template.ranges
            else (each.min, each.max)
            for each in self.attributes
        )


def _with_ends(asked: Sequence[Subscription], each: int, rng: Random) -> list[Subscription]:
    """The subscriptions; each after the first ones takes the place of one before it, which ends."""
    found, now = list(asked[:each]), list(asked[:each])
    for new in asked[each:]:
        old = now.pop(rng.randrange(each))
        now.append(new)
        found += [Subscription(new.at_us, old.number, False, old.ranges), new]
    return found
