"""Subscriptions drawn in bulk from the templates of a `content` workload.

A template restricts some attributes; it accepts all values of the others. A wish with several ranges of an
attribute becomes one subscription for each range, or for each combination if there are several such
attributes (Meghdoot 3.1: a disjunction is several subscriptions).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from node.core.content.content import ContentAttribute, Range
from node.core.content.event_values import EventValues
from node.core.content.value_distributions import Distribution, Floats, ValueDraws

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RangePredicate:
    """Condition on an attribute. share: a part of all its values. equal: one value. below, above: up to or
    from a value. between: from one value to another. fixed: from low to high.
    """

    kind: Literal["share", "equal", "below", "above", "between", "fixed"]
    share: float = 0.0
    low: float = 0.0
    high: float = 0.0


@dataclass(frozen=True, slots=True)
class DrawnSubscriptions:
    """Subscriptions, a row each with a column for each attribute; `wish`: the wish of each, in order."""

    wish: Ints
    low: Floats
    high: Floats

    def first(self, count: int) -> Self:
        """Return the first `count` ones."""
        return type(self)(self.wish[:count], self.low[:count], self.high[:count])

    def by_wish(self) -> list[list[tuple[Range, ...]]]:
        """Return the ranges of each subscription of each wish."""
        found: list[list[tuple[Range, ...]]] = [
            [] for _ in range(int(self.wish[-1]) + 1 if len(self.wish) else 0)
        ]
        for wish, low, high in zip(self.wish.tolist(), self.low.tolist(), self.high.tolist(), strict=True):
            found[wish].append(tuple(zip(low, high, strict=True)))
        return found


class SubscriptionDraws:
    """Draws wishes. events: of the workload; the parameters of a wish may be drawn from them."""

    def __init__(self, workload: Mapping[str, Any], events: EventValues) -> None:
        self._attributes, self._events = events.attributes, events
        self._wanted = [Distribution.from_plan(each.get("wanted")) for each in workload["attributes"]]
        self._values = [ValueDraws(*each) for each in zip(self._attributes, self._wanted, strict=True)]
        templates = workload["templates"]
        weights = np.array([template["weight"] for template in templates], float)
        self._shares = weights / weights.sum()
        self._templates = [
            {name: [RangePredicate(**each) for each in wanted] for name, wanted in template["ranges"].items()}
            for template in templates
        ]

    def draw(self, wishes: int, generator: np.random.Generator) -> DrawnSubscriptions:
        """Draw the subscriptions of `wishes` wishes; they depend only on the generator."""
        template = generator.choice(len(self._templates), size=wishes, p=self._shares)
        nothing = np.zeros((0, len(self._attributes)))
        parts = [DrawnSubscriptions(np.zeros(0, np.int64), nothing, nothing)]
        parts += [
            self._of_template(self._templates[number], np.flatnonzero(template == number), generator)
            for number in np.unique(template).tolist()
        ]
        wish = np.concatenate([each.wish for each in parts])
        order = np.argsort(wish, kind="stable")
        low, high = (
            np.concatenate([getattr(each, name) for each in parts])[order] for name in ("low", "high")
        )
        return DrawnSubscriptions(wish[order], low, high)

    def _of_template(
        self, wanted: Mapping[str, Sequence[RangePredicate]], wish: Ints, generator: np.random.Generator
    ) -> DrawnSubscriptions:
        """Draw all wishes of one template; a wish's subscriptions are in the order of its ranges."""
        parameters = _Parameters(self._values, self._wanted, self._events, len(wish), generator)
        ranges = [
            [
                _range(each, attribute, parameters, place)
                for each in wanted.get(
                    attribute.name, (RangePredicate("fixed", 0, attribute.low, attribute.high),)
                )
            ]
            for place, attribute in enumerate(self._attributes)
        ]
        combined = list(product(*ranges))
        bounds = np.array(combined).reshape(len(combined), len(ranges), 2, len(wish))
        low, high = np.ascontiguousarray(bounds.transpose(2, 3, 0, 1)).reshape(2, -1, len(ranges))
        return DrawnSubscriptions(np.repeat(wish, len(combined)), low, high)


class _Parameters:
    """Draws the parameters of a template's wishes. Parameters drawn from events come from one event for all
    attributes of a wish; a second value of an attribute comes from another event.
    """

    def __init__(
        self,
        values: Sequence[ValueDraws],
        wanted: Sequence[Distribution],
        events: EventValues,
        count: int,
        generator: np.random.Generator,
    ) -> None:
        self.count, self.generator = count, generator
        self._values, self._wanted, self._events = values, wanted, events
        self._samples: list[Floats] = []
        self._drawn = [0] * len(values)

    def draw(self, place: int) -> Floats:
        """Draw a value of this attribute for each wish."""
        if self._wanted[place].kind != "events":
            return self._values[place].draw(self.count, self.generator)
        number = self._drawn[place]
        self._drawn[place] += 1
        if number == len(self._samples):
            self._samples.append(self._events.sample(self.count, self.generator))
        return self._samples[number][:, place]

    def draw_low(self, place: int, attribute: ContentAttribute, width: float) -> Floats:
        """Draw the lower bounds of ranges of this width."""
        last = attribute.high - width
        if self._wanted[place].kind == "uniform":
            return ValueDraws(
                ContentAttribute(attribute.name, attribute.kind, attribute.low, last), Distribution()
            ).draw(self.count, self.generator)
        middle = self.draw(place) - (width // 2 if attribute.is_whole else width / 2)
        return np.clip(middle, attribute.low, last)


def _range(
    predicate: RangePredicate, attribute: ContentAttribute, parameters: _Parameters, place: int
) -> tuple[Floats, Floats]:
    """Return the lowest and the highest value for each wish."""
    lowest, highest = (np.full(parameters.count, each) for each in (attribute.low, attribute.high))
    match predicate.kind:
        case "fixed":
            return np.full(parameters.count, predicate.low), np.full(parameters.count, predicate.high)
        case "below":
            return lowest, parameters.draw(place)
        case "above":
            return parameters.draw(place), highest
        case "equal":
            value = parameters.draw(place)
            return value, value
        case "between":
            both = parameters.draw(place), parameters.draw(place)
            return np.minimum(*both), np.maximum(*both)
    width = predicate.share * (attribute.high - attribute.low)
    if attribute.is_whole:
        width = max(1, round(predicate.share * (attribute.high - attribute.low + 1))) - 1
    low = parameters.draw_low(place, attribute, width)
    return low, np.minimum(low + width, attribute.high)
