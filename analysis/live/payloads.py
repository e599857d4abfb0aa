"""Finds the payload bytes of packets: Spark's rows have offsets in a capture, which is in parts during the
run.

An offset in the capture is the offset in a part plus the size of all parts before it. The sizes are summed
when parts are requested, and retained. Once parts are joined, offsets in the capture itself are the same.
"""

from bisect import bisect_right
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from analysis.capture.pcap.files.format import FILE_HEADER_BYTES, Integers
from analysis.capture.pcap.files.mapping import map_bytes
from analysis.errors import CaptureError
from experiments.records import capture_parts


@dataclass(slots=True)
class _CaptureParts:
    """The known parts of a capture and their offsets in it."""

    first: list[int] = field(default_factory=list)  # offset of each part's first record
    paths: list[Path] = field(default_factory=list)
    end: int = FILE_HEADER_BYTES  # the end of the last part

    def look(self, folder: Path) -> None:
        """Add the parts begun since the last call."""
        known = capture_parts.number(self.paths[-1]) if self.paths else -1
        begun = [path for path in capture_parts.parts(folder) if capture_parts.number(path) > known]
        with suppress(FileNotFoundError):  # they were joined: the capture has the bytes
            if self.paths:  # the last part has grown until the next was begun
                self.end = self.first[-1] + _record_bytes(self.paths[-1])
            for path in begun:
                size = _record_bytes(path)
                self.first.append(self.end)
                self.paths.append(path)
                self.end += size

    def at(self, place: int) -> tuple[Path | None, int, int | None]:
        """Return the part at an offset, if known, the shift (offset in the capture minus offset in the part),
        and where the next part begins.
        """
        number = bisect_right(self.first, place) - 1
        if number < 0 or place >= self.end:
            return None, 0, None
        following = self.first[number + 1] if number + 1 < len(self.first) else None
        return self.paths[number], self.first[number] - FILE_HEADER_BYTES, following


def _record_bytes(part: Path) -> int:
    return max(part.stat().st_size - FILE_HEADER_BYTES, 0)


@dataclass(slots=True)
class Payloads:
    """The bytes of the captures in a folder, by their offsets in each."""

    captures: Path
    _known: dict[str, _CaptureParts] = field(default_factory=dict)

    def find(self, capture: str, places: Integers) -> Iterator[tuple[slice, memoryview, int]]:
        """Split ascending offsets of a capture by file; yield their slice, the file's bytes, and the shift
        (offset in the capture minus offset in the file). Offsets in removed files are left out.
        """
        whole = self.captures / f"{capture}.pcap"
        parts = self._known.setdefault(capture, _CaptureParts())
        if places.size and parts.end <= places[-1]:
            parts.look(capture_parts.folder_of(whole))
        begin = 0
        while begin < places.size:
            path, shift, following = parts.at(int(places[begin]))
            end = places.size if following is None else int(np.searchsorted(places, following))
            # The parts may have been joined in the meantime.
            for file, more in ((path, shift), (whole, 0)):
                content = None if file is None else _bytes(file)
                if content is not None:
                    yield slice(begin, end), content, more
                    break
            begin = end


def _bytes(file: Path) -> memoryview | None:
    try:
        return map_bytes(file).data
    except CaptureError:
        return None
