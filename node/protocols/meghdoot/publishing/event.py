"""An event as zones process it: its values, the region that it affects, and its grid points in a zone."""

import struct
from collections.abc import Sequence
from functools import cached_property, lru_cache

from node.core.content.content import event_ranges
from node.protocols.can.zone_table import Floats
from node.protocols.can.zones import Point
from node.protocols.meghdoot.region import SpaceRegion, Steps, affected, steps_of_region
from node.protocols.meghdoot.space import Space
from node.protocols.meghdoot.zones.bounds import covering

READ_MAX = 1_024
SPACES_MAX = 16


class EventContent:
    """The content of an event. Its properties are computed on first use."""

    def __init__(self, space: Space, values: Sequence[float]) -> None:
        self._space, self._ranges = space, event_ranges(space.attributes, values)

    @cached_property
    def values(self) -> Floats:
        """Query for matching subscriptions (`bounds`)."""
        low, high = zip(*self._ranges, strict=True)
        return covering(low, high)

    @cached_property
    def point(self) -> Point:
        """Point of the event."""
        return self._space.point(self._ranges)

    @cached_property
    def region(self) -> SpaceRegion:
        """Region that the event affects."""
        return affected(self.point)

    @cached_property
    def steps(self) -> Steps:
        """Grid steps of the region."""
        return steps_of_region(self.region)


@lru_cache(maxsize=SPACES_MAX)
def _lately(space: Space) -> dict[bytes, EventContent]:
    """Return the cache of recently read events, shared by all peers of this process."""
    return {}


class EventReader:
    """Decoder of event payloads, with a cache for repeated ones."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self._values = struct.Struct(f">{len(space.attributes)}d")
        self._read = _lately(space)

    def read(self, payload: bytes) -> EventContent:
        """Return the content of a payload."""
        seen = self._read.get(payload)
        if seen is None:
            seen = EventContent(self._space, self._values.unpack_from(payload))
            self._read[payload] = seen
            if len(self._read) > READ_MAX:
                del self._read[next(iter(self._read))]
        return seen


def payload_of(values: Sequence[float], size_bytes: int) -> bytes:
    """Return the payload of an event with these values, padded to a size."""
    return struct.pack(f">{len(values)}d", *values).ljust(size_bytes, b".")
