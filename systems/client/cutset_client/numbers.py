"""The sequence numbers that a publisher has used, in a file, so that a restarted publisher reuses none."""

import mmap
import os
import struct
from collections.abc import Sequence

_NUMBER = struct.Struct("=Q")


class SequenceNumbers:
    """The last number of each of these streams; 0 before the first."""

    def __init__(self, path: str, streams: Sequence[int]) -> None:
        self._place = {stream: n * _NUMBER.size for n, stream in enumerate(streams)}
        size = max(1, len(streams) * _NUMBER.size)
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            if os.fstat(file).st_size < size:
                os.truncate(file, size)
            self._map = mmap.mmap(file, size)
        finally:
            os.close(file)

    def next(self, stream: int) -> int:
        """Return the next number of a stream, from 1 on."""
        place = self._place[stream]
        number: int = _NUMBER.unpack_from(self._map, place)[0] + 1
        _NUMBER.pack_into(self._map, place, number)
        return number

    def close(self) -> None:
        """Close the file."""
        self._map.close()
