"""Subscriptions as a peer stores them: who wants what, and since when; all that match an event at one look.

A subscriber numbers its subscriptions. What it says of one later has a greater version, its end as well, so
that what several peers have can be put together in any order: the latest word counts (`Subscriptions.put`).
Ends are remembered for a while, so that no older word brings a subscription back.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from node.core.peers.peer_pool import Address
from node.protocols.can.zone_table import Floats, Mask
from node.protocols.can.zones import TOP, Point, Zone
from node.protocols.meghdoot.space import Range, Space
from node.protocols.meghdoot.zones.bounds import Bounds

Key = tuple[Address, int]
"""Of a subscription: its subscriber, and that one's number of it."""
ROWS_MIN = 16
ZONES_MAX = 8
LIFE_BITS = 32


def version_of(life: int, count: int) -> int:
    """The version of a subscriber's `count`-th word in one of its lives."""
    return life << LIFE_BITS | count


@dataclass(frozen=True, slots=True)
class Subscription:
    """A word about a subscription.

    subscriber: where it listens. refreshed_us: when it last said so, by the clock of whoever has this.
    """

    subscriber: Address
    number: int
    version: int
    is_on: bool
    refreshed_us: int
    ranges: tuple[Range, ...]

    @property
    def key(self) -> Key:
        """Which one it is."""
        return self.subscriber, self.number

    @property
    def life(self) -> int:
        """In which life of the subscriber it was asked for."""
        return self.version >> LIFE_BITS


class Subscriptions:
    """Those of a peer, by their points. Rows of the arrays are those that stand, in no order."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self._ranges = Bounds(len(space.attributes))
        self._points = np.empty((space.dimensions, ROWS_MIN))
        self._standing: list[Subscription] = []
        self._rows: dict[Key, int] = {}
        self._ended: dict[Key, Subscription] = {}
        self._inside: dict[Zone, Mask] = {}  # which rows are in a zone, until any of them changes

    def __len__(self) -> int:
        """How many stand."""
        return len(self._standing)

    def __iter__(self) -> Iterator[Subscription]:
        """Those that stand, then the ends that are remembered."""
        yield from self._standing
        yield from self._ended.values()

    def get(self, key: Key) -> Subscription | None:
        """The latest word, if there is one."""
        row = self._rows.get(key)
        return self._ended.get(key) if row is None else self._standing[row]

    # --- Changes

    def put(self, told: Subscription) -> bool:
        """Take a word, unless a later one is known. Whether it says anything new but that it still holds."""
        known = self.get(told.key)
        if known is not None and known.version >= told.version:
            if known.version == told.version and known.refreshed_us < told.refreshed_us:
                self._replace(replace(known, refreshed_us=told.refreshed_us))
            return False
        self.remove(told.key)
        if told.is_on:
            self._append(told)
        else:
            self._ended[told.key] = told
        return True

    def _replace(self, same: Subscription) -> None:
        row = self._rows.get(same.key)
        if row is None:
            self._ended[same.key] = same
        else:
            self._standing[row] = same

    def _append(self, told: Subscription) -> None:
        self._inside.clear()
        row = len(self._standing)
        if row == self._points.shape[1]:
            self._points = np.concatenate((self._points, np.empty_like(self._points)), axis=1)
        ranges = np.array(told.ranges)
        self._ranges.append(ranges[:, :1], ranges[:, 1:])
        self._points[:, row] = self._space.point(told.ranges)
        self._rows[told.key] = row
        self._standing.append(told)

    def remove(self, key: Key) -> None:
        """Forget all about a subscription. The last row moves to where it stood."""
        self._ended.pop(key, None)
        row = self._rows.pop(key, None)
        if row is None:
            return
        self._inside.clear()
        last = self._standing.pop()
        self._ranges.remove(row)
        if row < len(self._standing):
            self._points[:, row] = self._points[:, len(self._standing)]
            self._standing[row] = last
            self._rows[last.key] = row

    def expire(self, before_us: int) -> list[Subscription]:
        """Forget what no subscriber has spoken of since then; which those are."""
        late = [each for each in self if each.refreshed_us < before_us]
        for each in late:
            self.remove(each.key)
        return late

    # --- Questions

    def matching(self, values: Floats, zone: Zone | None = None) -> list[Subscription]:
        """Those that cover an event's values, one or all of each attribute (3.4; `bounds.covering`): of all,
        or of those with points in a zone.
        """
        if not self._standing:
            return []
        inside = self._ranges.fitting(values)
        if zone is not None:
            inside &= self.rows_in(zone)
        return [self._standing[row] for row in inside.nonzero()[0].tolist()]

    def within(self, zone: Zone) -> list[Subscription]:
        """All words about subscriptions with points in a zone."""
        standing = [self._standing[row] for row in np.flatnonzero(self.rows_in(zone)).tolist()]
        ended = self._ended.values()
        return standing + [each for each in ended if zone.contains(self._space.point(each.ranges))]

    def outside(self, zones: Iterable[Zone]) -> list[Subscription]:
        """All words about subscriptions with points in none of these zones."""
        outside, zones = np.ones(len(self._standing), np.bool_), tuple(zones)
        for zone in zones:
            outside &= ~self.rows_in(zone)
        ended = ((each, self._space.point(each.ranges)) for each in self._ended.values())
        return [self._standing[row] for row in outside.nonzero()[0].tolist()] + [
            each for each, point in ended if not any(zone.contains(point) for zone in zones)
        ]

    def rows_in(self, zone: Zone) -> Mask:
        """Which of those that stand have points in a zone."""
        known = self._inside.get(zone)
        if known is None:
            points = self.points()
            low, high = np.array(zone.low)[:, None], np.array(zone.high)[:, None]
            inside = (low <= points) & ((points < high) | (high == TOP))
            if len(self._inside) >= ZONES_MAX:
                self._inside.clear()
            known = self._inside[zone] = np.logical_and.reduce(inside, axis=0)
        return known

    def points(self) -> Floats:
        """The points of those that stand, a row for each dimension."""
        return self._points[:, : len(self._standing)]


class Packing:
    """Many subscriptions as bytes. Times travel as how long ago they were, for clocks differ."""

    def __init__(self, attributes: int) -> None:
        self._attributes = attributes
        self._row = struct.Struct(f">IIQBQ{2 * attributes}d")
        self._place = struct.Struct(f">{2 * attributes}d")

    def pack(self, subscriptions: Iterable[Subscription], now_us: int) -> bytes:
        """The bytes."""
        return b"".join(
            self._row.pack(
                each.subscriber,
                each.number,
                each.version,
                each.is_on,
                max(0, now_us - each.refreshed_us),
                *(bound for both in each.ranges for bound in both),
            )
            for each in subscriptions
        )

    def unpack(self, packed: bytes | memoryview, now_us: int) -> Sequence[Subscription]:
        """The inverse. What is no whole row at the end is left out."""
        size = self._row.size
        whole = memoryview(packed)[: len(packed) // size * size]
        found = []
        for subscriber, number, version, is_on, refreshed, *bounds in self._row.iter_unpack(whole):
            ranges = tuple(zip(bounds[::2], bounds[1::2], strict=True))
            found.append(Subscription(subscriber, number, version, bool(is_on), now_us - refreshed, ranges))
        return found

    def at(self, place: Point, packed: bytes) -> bytes:
        """Where subscriptions go, then these."""
        return self._place.pack(*place) + packed

    def place(self, packed: bytes | memoryview) -> Point:
        """Where they go."""
        return self._place.unpack_from(packed)

    def without_place(self, packed: bytes | memoryview) -> memoryview:
        """The subscriptions."""
        return memoryview(packed)[self._place.size :]
