"""The events that a driver publishes, and when: computed, so that the same driver always makes the same
ones.

An event is its request number and its driver's (so that no two of a run are alike), padded or cut to the
asked size. In an open loop the number that is due follows from the time since the start alone: nothing
drifts, and a driver that was held up catches up.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

US_PER_S = 1_000_000
NUMBERS = struct.Struct(">QH")
PADDING = b"."


@dataclass(frozen=True, slots=True)
class Workload:
    """What one driver does. Without a rate it is a closed loop: as fast as its window allows."""

    event_size_bytes: int
    rate_per_s: float | None

    @classmethod
    def from_mapping(cls, given: Mapping[str, Any]) -> "Workload":
        """From a plan's `workload`; raises ValueError if it is neither open nor closed loop."""
        rate_per_s = None if given.get("closed_loop") else given.get("rate_per_s")
        if rate_per_s is None and not given.get("closed_loop"):
            raise ValueError("workload: neither rate_per_s nor closed_loop")
        return cls(given["event_size_bytes"], rate_per_s)

    def due(self, elapsed_us: int) -> int:
        """How many events an open loop has published `elapsed_us` after its start."""
        if self.rate_per_s is None or elapsed_us <= 0:
            return 0
        return int(self.rate_per_s * elapsed_us / US_PER_S)

    def events(self, first_request: int, count: int, driver: int) -> list[bytes]:
        """The events with these request numbers; `driver` tells the run's drivers apart."""
        size, pack, tag = self.event_size_bytes, NUMBERS.pack, driver & 0xFFFF
        requests = range(first_request, first_request + count)
        if size == NUMBERS.size:
            return [pack(request, tag) for request in requests]
        if size < NUMBERS.size:  # the low bytes of the number differ most
            cut = 8 - min(size, 8)
            return [pack(request, tag)[cut : cut + size] for request in requests]
        padding = PADDING * (size - NUMBERS.size)
        return [pack(request, tag) + padding for request in requests]
