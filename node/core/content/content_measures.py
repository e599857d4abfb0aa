"""What an event is about and what a subscriber asks for, as measures (`node.core.content.content`).

They stand beside the record of deliveries, under names that no one else has; from these the analysis knows
who is to get what.
"""

from collections.abc import Sequence

from node.core.deliveries import RecordKind
from node.core.machine import Measure
from node.core.specification import Subscription

EVENT, INTEREST = "_event", "_interest"
"""Names of measures; those that begin so are not figures of the system."""
LOW, HIGH = "low_{}", "high_{}"
VALUE = "value_{}"


def event(stream: int, seq: int, values: Sequence[float]) -> Measure:
    """Put down what a published event is about: a value of each attribute, in their order."""
    return Measure(EVENT, {"stream": stream, "seq": seq} | _named(VALUE, values))


def interest(kind: RecordKind, session: int, asked: Subscription) -> Measure:
    """That a subscription was asked for or confirmed, or its end; session: `NodeSpec.start`."""
    bounds = _named(LOW, [low for low, _ in asked.ranges]) | _named(HIGH, [high for _, high in asked.ranges])
    return Measure(INTEREST, {"kind": int(kind), "session": session, "number": asked.number} | bounds)


def _named(name: str, values: Sequence[float]) -> dict[str, float]:
    return {name.format(place): value for place, value in enumerate(values)}
