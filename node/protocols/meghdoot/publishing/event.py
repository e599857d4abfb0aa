"""An event as zones look at it: its values, the region that it affects, and how much of it a zone has."""

import struct
from collections.abc import Sequence
from functools import cached_property, lru_cache

from node.core.content.content import Attribute, event_ranges
from node.protocols.can.zone_table import Floats
from node.protocols.can.zones import Point
from node.protocols.meghdoot.region import Region, Steps, affected, steps_of_region
from node.protocols.meghdoot.space import Space
from node.protocols.meghdoot.zones.bounds import covering

READ_MAX = 1_024
SPACES_MAX = 16


class SeenEvent:
    """An event's content; values: asks for subscriptions that match them (`bounds`). What is not
    asked for is not computed.
    """

    def __init__(self, space: Space, values: Sequence[float]) -> None:
        self._space, self._ranges = space, event_ranges(space.attributes, values)
        low, high = zip(*self._ranges, strict=True)
        self.values: Floats = covering(low, high)

    @cached_property
    def point(self) -> Point:
        """Where it lies."""
        return self._space.point(self._ranges)

    @cached_property
    def region(self) -> Region:
        """What it affects."""
        return affected(self.point)

    @cached_property
    def steps(self) -> Steps:
        """The region's."""
        return steps_of_region(self.region)


@lru_cache(maxsize=SPACES_MAX)
def _lately(space: Space) -> dict[bytes, SeenEvent]:
    """Events that were read lately, by whichever peer of this process."""
    return {}


class EventReader:
    """Reads events by their payload; one that comes several times in a row of events is read once."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self._values = struct.Struct(f">{len(space.attributes)}d")
        self._read = _lately(space)

    def read(self, payload: bytes) -> SeenEvent:
        """What is in a payload."""
        seen = self._read.get(payload)
        if seen is None:
            seen = SeenEvent(self._space, self._values.unpack_from(payload))
            self._read[payload] = seen
            if len(self._read) > READ_MAX:
                del self._read[next(iter(self._read))]
        return seen


def payload_of(values: Sequence[float], size_bytes: int) -> bytes:
    """An event with these values, filled up to a size."""
    return struct.pack(f">{len(values)}d", *values).ljust(size_bytes, b".")


def fits(attributes: Sequence[Attribute], payload: bytes | memoryview) -> bool:
    """Whether a payload is long enough to hold a value of each attribute."""
    return len(payload) >= struct.calcsize("d") * len(attributes)
