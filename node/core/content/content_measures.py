"""Measures of each event's values and each subscriber's ranges (`node.core.content.content`).

They are kept beside the record of deliveries, under names reserved for them. From these the analysis derives
which subscriber must receive which event.
"""

from collections.abc import Sequence

from node.core.deliveries import RecordKind
from node.core.machine import Measure
from node.core.specification import PlannedSubscription

EVENT, INTEREST = "_event", "_interest"
"""Reserved names of measures; a name that begins with "_" is not a figure of the system."""
LOW, HIGH = "low_{}", "high_{}"
VALUE = "value_{}"


def event(stream: int, seq: int, values: Sequence[float]) -> Measure:
    """Return the measure of a published event: a value for each attribute, in order."""
    return Measure(EVENT, {"stream": stream, "seq": seq} | _named(VALUE, values))


def interest(kind: RecordKind, session: int, subscription: PlannedSubscription) -> Measure:
    """Return the measure of a subscription requested, confirmed or ended; session: `NodeSpec.start`."""
    ranges = subscription.ranges
    bounds = _named(LOW, [low for low, _ in ranges]) | _named(HIGH, [high for _, high in ranges])
    return Measure(INTEREST, {"kind": int(kind), "session": session, "number": subscription.number} | bounds)


def _named(name: str, values: Sequence[float]) -> dict[str, float]:
    return {name.format(place): value for place, value in enumerate(values)}
