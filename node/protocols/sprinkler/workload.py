"""The events that a driver publishes, and when: computed, so that the same driver always publishes the same
events.

An event consists of its request number and its driver's tag (so that all events of a run differ), padded or
cut to the configured size; in a workload with keys its key comes first. In an open loop the number of due
events depends only on the time since the start: nothing drifts, and a delayed driver catches up. Events are
generated in bulk: between consecutive numbers only the low bytes change.
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import add
from typing import Any

from node.protocols.sprinkler.messages import Predicate

US_PER_S = 1_000_000
NUMBERS = struct.Struct(">QH")
NUMBER_BYTES = 8  # of the request number, at the beginning of NUMBERS
PADDING = b"."
START_BITS = 4  # of a driver's tag: number of earlier starts of the process
_ALL_BYTES = bytes(range(256))


@dataclass(frozen=True, slots=True)
class CollectionRule:
    """The predicate of garbage collection events (paper 3.4), and which events are such; default: all."""

    predicate: Predicate = Predicate.NONE
    argument: int = 0
    every_us: int = 0
    one_of: int = 0

    @property
    def seldom(self) -> bool:
        """Whether few events collect, and most are data."""
        return bool(self.every_us or self.one_of)


@dataclass(frozen=True, slots=True)
class DriverWorkload:
    """Workload of one driver. Without a rate it is a closed loop: as fast as its window allows."""

    event_size_bytes: int
    rate_per_s: float | None
    collect: CollectionRule = CollectionRule()
    keys: Mapping[str, Any] | None = None  # by which keys are drawn, for `key_popularity.KeyDraws`

    @classmethod
    def from_mapping(cls, given: Mapping[str, Any]) -> "DriverWorkload":
        """Parse a plan's `workload`. Raises ValueError if it is neither an open nor a closed loop."""
        rate_per_s = None if given.get("closed_loop") else given.get("rate_per_s")
        if rate_per_s is None and not given.get("closed_loop"):
            raise ValueError("workload: neither rate_per_s nor closed_loop")
        collect = CollectionRule()
        if rule := given.get("collect"):
            collect = CollectionRule(
                Predicate[rule["predicate"].upper()],
                rule["argument"],
                rule.get("every_us", 0),
                rule.get("one_of", 0),
            )
        return cls(given["event_size_bytes"], rate_per_s, collect, given.get("keys"))

    def due(self, elapsed_us: int) -> int:
        """Return how many events an open loop has published `elapsed_us` after its start."""
        if self.rate_per_s is None or elapsed_us <= 0:
            return 0
        return int(self.rate_per_s * elapsed_us / US_PER_S)

    def events(self, first_request: int, count: int, tag: int, keys: Sequence[bytes] = ()) -> Sequence[bytes]:
        """Return the events with these request numbers; `tag` is the driver's (see `driver_tag`).

        keys: of the events, if they have any: one for each, of at least a byte.
        """
        if not keys:
            return numbered_events(first_request, count, tag, self.event_size_bytes)
        rest_bytes = self.event_size_bytes - len(keys[0])
        if rest_bytes <= 0:  # the low bytes of a key differ most
            return [key[-self.event_size_bytes :] for key in keys]
        return list(map(add, keys, numbered_events(first_request, count, tag, rest_bytes)))


def driver_tag(number: int, start: int) -> int:
    """Return a number that distinguishes the events of a run's drivers, and of each start of a driver."""
    return (number << START_BITS | start & (1 << START_BITS) - 1) & 0xFFFF


def numbered_events(first_request: int, count: int, tag: int, size: int) -> Sequence[bytes]:
    """Return events of `size` bytes, each with its number and the tag; if these do not fit, the low bytes."""
    cut = NUMBER_BYTES - min(size, NUMBER_BYTES)  # the low bytes of the number differ most
    first = NUMBERS.pack(first_request, tag)[cut : cut + size].ljust(size, PADDING)
    if count == 1:
        return [first]
    joined = bytearray(first * count)
    last_request = first_request + count - 1
    for place in range(NUMBER_BYTES - cut):
        if first_request >> 8 * place == last_request >> 8 * place:
            break
        joined[NUMBER_BYTES - cut - 1 - place :: size] = _bytes_at(place, first_request, count)
    return _splitter(size, count).unpack(joined)


def _bytes_at(place: int, first: int, count: int) -> bytes:
    """Return the byte at this place (0 is the lowest) of each number from `first` on."""
    if place == 0:
        return (_ALL_BYTES * (count // 256 + 2))[first & 255 : (first & 255) + count]
    runs, at, end = [], first, first + count
    while at < end:
        until = min(end, ((at >> 8 * place) + 1) << 8 * place)
        runs.append(_ALL_BYTES[at >> 8 * place & 255 : (at >> 8 * place & 255) + 1] * (until - at))
        at = until
    return b"".join(runs)


@lru_cache(maxsize=4)  # a closed loop has one; each holds `count` fields
def _splitter(size: int, count: int) -> struct.Struct:
    return struct.Struct(f"{size}s" * count)
