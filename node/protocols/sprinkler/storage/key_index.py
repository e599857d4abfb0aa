"""Index of the last event for each key of a stream, used by collection by key (paper 3.4).

It handles tens of millions of keys, thousands of them per call, without long pauses. Keys of up to 8 bytes
are numbers in a hash table of segments (extendible hashing): linear probing within a segment, all keys of a
call at once with NumPy; a segment that becomes full is split alone, so that the table grows without a
rebuild. It takes about 32 bytes a key. Longer keys are in a plain dictionary.

Events with sequence numbers up to `floor` are no longer in Hist. Their entries are dropped when their segment
is full.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.uint64]
Seqs = NDArray[np.int64]

NUMBER_BYTES = 8  # maximum length of keys that are stored as numbers
SEGMENT = 4096  # slots
FILLED = 2800  # maximum of used slots in a segment
INSERTED_AT_ONCE = 512  # new keys; with FILLED, this bounds what one call may put in a segment
MULTIPLIERS = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93))
SHIFT = np.uint64(32)
WITHIN = np.uint64(SEGMENT - 1)
LONG_KEY_BYTES = 144  # memory for a key in a dictionary, besides its bytes
SWEPT_FROM = 4096  # entries of a dictionary before those of removed events are dropped
NEW = -1  # in a slot whose sequence number is not known yet


class NumberIndex:
    """Keys of up to 8 bytes, as numbers. `keys` and `seqs` are parallel, in the stream's order."""

    def __init__(self) -> None:
        self.floor = 0
        self._depth = 1  # bits of the hash that choose a place of the directory
        self._directory = np.array([0, 1], np.int64)  # bits of the hash that select an entry of the directory
        self._depths = [1, 1]  # bits that all keys of a segment share
        self._used = np.zeros(2, np.int64)  # used slots of each segment
        self._keys = np.zeros(2 * SEGMENT, np.uint64)
        self._seqs = np.zeros(2 * SEGMENT, np.int64)  # 0: the slot is empty

    def __len__(self) -> int:
        return int(self._used.sum())

    @property
    def used_bytes(self) -> int:
        """Bytes of memory that the index uses."""
        return self._keys.nbytes + self._seqs.nbytes + self._directory.nbytes + self._used.nbytes

    def exchange(self, keys: Numbers, seqs: Seqs) -> tuple[NDArray[np.int64], Seqs]:
        """Enter these events as the last ones with their keys.

        Returns the events, given or earlier, that are no longer the last ones with their key: the position of
        the key in `keys`, and the event's sequence number.
        """
        hashes = hash_of(keys)
        slots, found = self._find(keys, hashes)
        if not found.all():
            missing = np.unique(keys[~found])
            for start in range(0, len(missing), INSERTED_AT_ONCE):
                self._insert_new(missing[start : start + INSERTED_AT_ONCE])
            slots, _ = self._find(keys, hashes)
        before = self._seqs[slots]
        self._seqs[slots] = seqs  # for a repeated key, its last event stays
        is_last = self._seqs[slots] == seqs
        displaced = is_last & (before > self.floor)
        repeated = ~is_last
        positions = np.concatenate((displaced.nonzero()[0], repeated.nonzero()[0]))
        return positions, np.concatenate((before[displaced], seqs[repeated]))

    def last(self, keys: Numbers) -> Seqs:
        """Return for each of these keys the last event that has it; 0 if there is none."""
        slots, found = self._find(keys, hash_of(keys))
        return np.where(found, self._seqs[slots], 0)

    def _find(self, keys: Numbers, hashes: Numbers) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return the slot of each key, and whether the key is in it; if not, the slot is empty."""
        slots = self._first_slots(hashes)
        found, going_on = self._compare(slots, keys)
        active = going_on.nonzero()[0]
        while len(active):
            at = slots[active] = next_slot(slots[active])
            found[active], going_on = self._compare(at, keys[active])
            active = active[going_on]
        return slots, found

    def _compare(
        self, slots: NDArray[np.int64], keys: Numbers
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return which keys are in these slots, and which slots have other keys."""
        taken = self._seqs[slots] != 0
        found = self._keys[slots] == keys
        found &= taken
        return found, taken ^ found

    def _first_slots(self, hashes: Numbers) -> NDArray[np.int64]:
        segments = self._directory[(hashes >> np.uint64(64 - self._depth)).view(np.int64)]
        return segments * SEGMENT + (hashes & WITHIN).view(np.int64)

    def _insert_new(self, keys: Numbers) -> None:
        """Assign slots to distinct keys that have none."""
        hashes = hash_of(keys)
        while True:
            segments = self._first_slots(hashes) // SEGMENT
            coming = np.bincount(segments, minlength=len(self._used))
            full = np.nonzero((self._used + coming > FILLED) & (coming > 0))[0]
            if not len(full):
                break
            for segment in full.tolist():
                self._make_room(segment)
        self._used += coming
        self._insert(keys, np.full(len(keys), NEW, np.int64), self._first_slots(hashes))

    def _insert(self, keys: Numbers, seqs: Seqs, slots: NDArray[np.int64]) -> None:
        """Write distinct keys into the first empty slots from these on."""
        while len(keys):
            empty = np.nonzero(self._seqs[slots] == 0)[0]
            self._keys[slots[empty]] = keys[empty]
            self._seqs[slots[empty]] = seqs[empty]
            waiting = np.ones(len(keys), np.bool_)
            waiting[empty] = self._keys[slots[empty]] != keys[empty]  # another key took the same slot
            keys, seqs, slots = keys[waiting], seqs[waiting], next_slot(slots[waiting])

    def _make_room(self, segment: int) -> None:
        """Drop the segment's entries of removed events; split it if that is not enough."""
        place = slice(segment * SEGMENT, (segment + 1) * SEGMENT)
        kept = (self._seqs[place] > self.floor) | (self._seqs[place] == NEW)
        keys, seqs = self._keys[place][kept], self._seqs[place][kept]
        self._seqs[place] = 0
        self._used[segment] = len(keys)
        if len(keys) > FILLED // 2:
            self._split(segment, keys)
        self._insert(keys, seqs, self._first_slots(hash_of(keys)))

    def _split(self, segment: int, keys: Numbers) -> None:
        """Divide the segment's part of the directory with a new segment."""
        if self._depths[segment] == self._depth:
            self._directory = np.repeat(self._directory, 2)
            self._depth += 1
        new = len(self._used)
        if (new + 1) * SEGMENT > len(self._keys):
            slots = (new + 1 + new // 16) * SEGMENT
            self._keys.resize(slots, refcheck=False)  # in place: the system moves pages, not bytes
            self._seqs.resize(slots, refcheck=False)
        places = np.nonzero(self._directory == segment)[0]
        self._directory[places[len(places) // 2 :]] = new
        self._depths[segment] += 1
        self._depths.append(self._depths[segment])
        moved = int((self._first_slots(hash_of(keys)) // SEGMENT == new).sum())
        self._used = np.append(self._used, moved)
        self._used[segment] -= moved


class LongKeyIndex:
    """Keys of more than 8 bytes, with the same methods."""

    def __init__(self) -> None:
        self.floor = 0
        self._last: dict[bytes, int] = {}
        self._limit = SWEPT_FROM

    @property
    def used_bytes(self) -> int:
        """See `NumberIndex`. Keys of a stream have one length."""
        key_bytes = len(next(iter(self._last), b""))
        return (LONG_KEY_BYTES + key_bytes) * len(self._last)

    def exchange(self, keys: Sequence[bytes], seqs: Seqs) -> tuple[NDArray[np.int64], Seqs]:
        """See `NumberIndex`."""
        positions, displaced = [], []
        for position, (key, seq) in enumerate(zip(keys, seqs.tolist(), strict=True)):
            before = self._last.get(key, 0)
            self._last[key] = seq
            if before > self.floor:
                positions.append(position)
                displaced.append(before)
        if len(self._last) > self._limit:
            self._last = {key: seq for key, seq in self._last.items() if seq > self.floor}
            self._limit = 2 * len(self._last) + SWEPT_FROM
        return np.array(positions, np.int64), np.array(displaced, np.int64)

    def last(self, keys: Any) -> Seqs:
        """See `NumberIndex`."""
        return np.array([self._last.get(key, 0) for key in keys], np.int64)


def hash_of(keys: Numbers) -> Numbers:
    """Return a well mixed number for each key; distinct keys have distinct numbers."""
    mixed = keys * MULTIPLIERS[0]
    mixed ^= mixed >> SHIFT
    mixed *= MULTIPLIERS[1]
    mixed ^= mixed >> SHIFT
    return mixed


def next_slot(slots: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the next slot of the same segment; the first one follows the last one."""
    return (slots & ~(SEGMENT - 1)) | ((slots + 1) & (SEGMENT - 1))
