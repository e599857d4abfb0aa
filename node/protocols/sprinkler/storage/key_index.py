"""Index of the last event for each key of a stream, used by collection by key (paper 3.4).

Events with sequence numbers up to `floor` are no longer in Hist. Their entries are dropped now and then.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Seqs = NDArray[np.int64]

KEY_MEMORY_BYTES = 144  # of a key in a dictionary, besides its bytes
SWEPT_FROM = 4096  # entries of a dictionary before those of removed events are dropped


class KeyIndex:
    """The last event of each key. All keys of a stream have one length."""

    def __init__(self) -> None:
        self.floor = 0
        self._last: dict[bytes, int] = {}
        self._limit = SWEPT_FROM

    def __len__(self) -> int:
        return len(self._last)

    @property
    def used_bytes(self) -> int:
        """Bytes of memory that the index uses."""
        key_bytes = len(next(iter(self._last), b""))
        return (KEY_MEMORY_BYTES + key_bytes) * len(self._last)

    def exchange(self, keys: Sequence[bytes], seqs: Seqs) -> tuple[list[int], list[int]]:
        """Enter these events as the last ones with their keys.

        Returns the events, given or earlier, that are no longer the last ones with their key: the position of
        the key in `keys`, and the event's sequence number.
        """
        positions, displaced = [], []
        last, floor = self._last, self.floor
        for position, (key, seq) in enumerate(zip(keys, seqs.tolist(), strict=True)):
            before = last.get(key, 0)
            last[key] = seq
            if before > floor:
                positions.append(position)
                displaced.append(before)
        if len(last) > self._limit:
            self._last = {key: seq for key, seq in last.items() if seq > floor}
            self._limit = 2 * len(self._last) + SWEPT_FROM
        return positions, displaced

    def last(self, keys: Sequence[bytes]) -> Seqs:
        """Return for each of these keys the last event that has it; 0 if there is none."""
        last = self._last
        return np.array([last.get(key, 0) for key in keys], np.int64)
