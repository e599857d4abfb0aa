"""The payload bytes of a capture: Spark's rows have offsets in it, but it is in parts during the run.

An offset in the capture is the offset in a part plus the size of all parts before it. The sizes are summed
when bytes behind the known parts are asked for. Once parts are joined, offsets in the capture itself are the
same.
"""

from bisect import bisect_right
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from analysis.capture.pcap.files.format import FILE_HEADER_BYTES
from analysis.capture.pcap.files.mapping import map_bytes
from analysis.capture.pcap.files.part import end_when_joined
from analysis.errors import CaptureError
from experiments.records import capture_parts


@dataclass(slots=True)
class PartedCapture:
    """The bytes of a capture by their offsets, from its parts or, once they are joined, from itself."""

    path: Path
    _first: list[int] = field(default_factory=list)  # offset of each part's first record
    _parts: list[Path] = field(default_factory=list)
    _end: int = FILE_HEADER_BYTES  # the end of the last part
    _open: range = range(0)  # offsets of the bytes in the file that was read last
    _shift: int = 0  # offset in the capture minus offset in this file
    _content: memoryview | bytes = b""

    @property
    def data(self) -> "PartedCapture":
        """The buffer to slice, as that of an array."""
        return self

    def __getitem__(self, wanted: slice) -> memoryview | bytes:
        """Return the bytes of one packet; zeros if they were removed."""
        if wanted.start not in self._open and not self._opens(wanted.start):
            return bytes(wanted.stop - wanted.start)
        return self._content[wanted.start - self._shift : wanted.stop - self._shift]

    def _opens(self, offset: int) -> bool:
        """Map the file that has the byte, if there is one."""
        self._open = range(0)
        if offset >= self._end:
            self._look()
        number = bisect_right(self._first, offset) - 1
        places = [(self.path, 0, 0)]  # parts may have been joined in the meantime
        if number >= 0 and offset < self._end:
            first = self._first[number]
            places.insert(0, (self._parts[number], first, first - FILE_HEADER_BYTES))
        for file, first, self._shift in places:
            with suppress(CaptureError):
                self._content = map_bytes(file).data
                self._open = range(first, self._shift + len(self._content))
                return True
        return False

    def _look(self) -> None:
        """Add the parts begun since the last call."""
        known = capture_parts.number(self._parts[-1]) if self._parts else -1
        with suppress(FileNotFoundError):  # they were joined: the capture has the bytes
            if self._parts:  # the last part has grown until the next was begun
                self._end = end_when_joined(self._first[-1], self._parts[-1].stat().st_size)
            for path in capture_parts.parts(capture_parts.folder_of(self.path)):
                if capture_parts.number(path) > known:
                    end = end_when_joined(self._end, path.stat().st_size)
                    self._first.append(self._end)
                    self._parts.append(path)
                    self._end = end
