"""Stored subscriptions of a peer, and the search for all that match an event in one comparison.

A subscriber numbers its subscriptions. Each later update of one, including its end, has a greater version, so
that the stores of several peers can be merged in any order: the latest update counts
(`SubscriptionStore.put`). Ends are remembered for some time, so that no older update reactivates a
subscription.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from node.core.peers.peer_pool import Address
from node.protocols.can.zone_table import Floats, Mask
from node.protocols.can.zones import TOP, Point, Zone
from node.protocols.meghdoot.space import Range, Space
from node.protocols.meghdoot.zones.bounds import BoxArray

Key = tuple[Address, int]
"""Key of a subscription: its subscriber and the subscriber's number of it."""
ROWS_MIN = 16
ZONES_MAX = 8
LIFE_BITS = 32


def version_of(life: int, count: int) -> int:
    """Return the version of the `count`-th update in a process generation of a subscriber."""
    return life << LIFE_BITS | count


@dataclass(frozen=True, slots=True)
class SubscriptionUpdate:
    """An update of a subscription.

    subscriber: listen address. refreshed_us: time of the subscriber's last update, by the local clock.
    """

    subscriber: Address
    number: int
    version: int
    is_on: bool
    refreshed_us: int
    ranges: tuple[Range, ...]

    @property
    def key(self) -> Key:
        """Key of the subscription."""
        return self.subscriber, self.number

    @property
    def life(self) -> int:
        """Process generation of the subscriber that sent it."""
        return self.version >> LIFE_BITS


class SubscriptionStore:
    """Subscriptions of a peer, by their points. Array rows are the active ones, in no order."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self._ranges = BoxArray(len(space.attributes))
        self._points = np.empty((space.dimensions, ROWS_MIN))
        self._standing: list[SubscriptionUpdate] = []
        self._rows: dict[Key, int] = {}
        self._ended: dict[Key, SubscriptionUpdate] = {}
        self._inside: dict[Zone, Mask] = {}  # rows in a zone; cleared on each change

    def __len__(self) -> int:
        """Return the number of active subscriptions."""
        return len(self._standing)

    def __iter__(self) -> Iterator[SubscriptionUpdate]:
        """Iterate over active subscriptions, then over remembered ends."""
        yield from self._standing
        yield from self._ended.values()

    def get(self, key: Key) -> SubscriptionUpdate | None:
        """Return the latest update, if there is one."""
        row = self._rows.get(key)
        return self._ended.get(key) if row is None else self._standing[row]

    # --- Changes

    def put(self, update: SubscriptionUpdate) -> bool:
        """Store an update, unless a later one is known; return whether it is more than a refresh."""
        known = self.get(update.key)
        if known is not None and known.version >= update.version:
            if known.version == update.version and known.refreshed_us < update.refreshed_us:
                self._replace(replace(known, refreshed_us=update.refreshed_us))
            return False
        self.remove(update.key)
        if update.is_on:
            self._append(update)
        else:
            self._ended[update.key] = update
        return True

    def _replace(self, same: SubscriptionUpdate) -> None:
        row = self._rows.get(same.key)
        if row is None:
            self._ended[same.key] = same
        else:
            self._standing[row] = same

    def _append(self, update: SubscriptionUpdate) -> None:
        self._inside.clear()
        row = len(self._standing)
        if row == self._points.shape[1]:
            self._points = np.concatenate((self._points, np.empty_like(self._points)), axis=1)
        ranges = np.array(update.ranges)
        self._ranges.append(ranges[:, :1], ranges[:, 1:])
        self._points[:, row] = self._space.point(update.ranges)
        self._rows[update.key] = row
        self._standing.append(update)

    def remove(self, key: Key) -> None:
        """Forget a subscription. The last row moves to its place."""
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

    def expire(self, before_us: int) -> list[SubscriptionUpdate]:
        """Forget and return subscriptions that were last refreshed before the given time."""
        late = [each for each in self if each.refreshed_us < before_us]
        for each in late:
            self.remove(each.key)
        return late

    # --- Queries

    def matching(self, values: Floats, zone: Zone | None = None) -> list[SubscriptionUpdate]:
        """Return the subscriptions that cover an event's values, single ones or full ranges (3.4).

        See `bounds.covering`. zone: only those with points in it.
        """
        if not self._standing:
            return []
        inside = self._ranges.fitting(values)
        if zone is not None:
            inside &= self.rows_in(zone)
        return [self._standing[row] for row in inside.nonzero()[0].tolist()]

    def within(self, zone: Zone) -> list[SubscriptionUpdate]:
        """Return all updates of subscriptions with points in a zone, including ends."""
        standing = [self._standing[row] for row in np.flatnonzero(self.rows_in(zone)).tolist()]
        ended = self._ended.values()
        return standing + [each for each in ended if zone.contains(self._space.point(each.ranges))]

    def outside(self, zones: Iterable[Zone]) -> list[SubscriptionUpdate]:
        """Return all updates of subscriptions with points in none of the zones, including ends."""
        outside, zones = np.ones(len(self._standing), np.bool_), tuple(zones)
        for zone in zones:
            outside &= ~self.rows_in(zone)
        ended = ((each, self._space.point(each.ranges)) for each in self._ended.values())
        return [self._standing[row] for row in outside.nonzero()[0].tolist()] + [
            each for each, point in ended if not any(zone.contains(point) for zone in zones)
        ]

    def rows_in(self, zone: Zone) -> Mask:
        """Return a mask of the active subscriptions with points in a zone."""
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
        """Return the points of the active subscriptions, one row per dimension."""
        return self._points[:, : len(self._standing)]


class Packing:
    """Encoding of subscriptions. Times are encoded as ages, since clocks differ."""

    def __init__(self, attributes: int) -> None:
        self._attributes = attributes
        self._row = struct.Struct(f">IIQBQ{2 * attributes}d")
        self._place = struct.Struct(f">{2 * attributes}d")

    def pack(self, subscriptions: Iterable[SubscriptionUpdate], now_us: int) -> bytes:
        """Return the encoded subscriptions."""
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

    def unpack(self, packed: bytes | memoryview, now_us: int) -> Sequence[SubscriptionUpdate]:
        """Return the decoded subscriptions; an incomplete row at the end is ignored."""
        size = self._row.size
        whole = memoryview(packed)[: len(packed) // size * size]
        found = []
        for subscriber, number, version, is_on, refreshed, *bounds in self._row.iter_unpack(whole):
            ranges = tuple(zip(bounds[::2], bounds[1::2], strict=True))
            found.append(
                SubscriptionUpdate(subscriber, number, version, bool(is_on), now_us - refreshed, ranges)
            )
        return found

    def at(self, place: Point, packed: bytes) -> bytes:
        """Prefix encoded subscriptions with the place to which they are routed."""
        return self._place.pack(*place) + packed

    def place(self, packed: bytes | memoryview) -> Point:
        """Return the place of encoded subscriptions."""
        return self._place.unpack_from(packed)

    def without_place(self, packed: bytes | memoryview) -> memoryview:
        """Return encoded subscriptions without their place."""
        return memoryview(packed)[self._place.size :]
