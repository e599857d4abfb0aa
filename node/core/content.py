"""Events by their content: attributes with values, and subscriptions to ranges of these.

Values are numbers: a workload `content` says which attributes there are. What an event is about and what a
subscriber asks for stand beside the record of deliveries, as measures under names that no one else has; from
these the analysis knows who is to get what.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from node.core.deliveries import RecordKind
from node.core.machine import Measure, Randomness
from node.core.specification import Subscription

EVENT, INTEREST = "_event", "_interest"
"""Names of measures; those that begin so are not figures of the system."""
LOW, HIGH = "low_{}", "high_{}"
VALUE = "value_{}"


@dataclass(frozen=True, slots=True)
class Attribute:
    """What events have a value of. kind: real or integer. Values lie between low and high, both possible."""

    name: str
    kind: str
    low: float
    high: float


def attributes_of(workload: Mapping[str, Any]) -> tuple[Attribute, ...]:
    """The attributes of a plan's workload, in their order; none if it is of another kind."""
    return tuple(Attribute(**each) for each in workload.get("attributes", ()))


def draw_values(attributes: Sequence[Attribute], rng: Randomness) -> tuple[float, ...]:
    """The values of one event: uniform, one for each attribute."""
    return tuple(
        rng.uniform(each.low, each.high)
        if each.kind == "real"
        else each.low + rng.randrange(int(each.high - each.low) + 1)
        for each in attributes
    )


def matches(ranges: Sequence[tuple[float, float]], values: Sequence[float]) -> bool:
    """Whether each value lies within its range, bounds included."""
    return all(low <= value <= high for (low, high), value in zip(ranges, values, strict=True))


def event(stream: int, seq: int, values: Sequence[float]) -> Measure:
    """Put down what a published event is about: a value of each attribute, in their order."""
    return Measure(EVENT, {"stream": stream, "seq": seq} | _named(VALUE, values))


def interest(kind: RecordKind, session: int, asked: Subscription) -> Measure:
    """That a subscription was asked for or confirmed, or its end; session: `NodeSpec.start`."""
    bounds = _named(LOW, [low for low, _ in asked.ranges]) | _named(HIGH, [high for _, high in asked.ranges])
    return Measure(INTEREST, {"kind": int(kind), "session": session, "number": asked.number} | bounds)


def _named(name: str, values: Sequence[float]) -> dict[str, float]:
    return {name.format(place): value for place, value in enumerate(values)}
