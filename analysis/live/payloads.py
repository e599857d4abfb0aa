"""Where the bytes stand that packets carry: Spark's rows name a place of a capture, which is in parts while
the run goes on.

A place in a capture is one in a part and what all parts before it hold. That is added up as parts are asked
for, and kept. Once parts are joined, the capture itself has the same places.
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
class _Parts:
    """The parts of a capture, as far as their places are known."""

    first: list[int] = field(default_factory=list)  # the place of each one's first record
    paths: list[Path] = field(default_factory=list)
    end: int = FILE_HEADER_BYTES  # the place that follows the last of them

    def look(self, folder: Path) -> None:
        """Learn of the parts that were begun since."""
        known = capture_parts.number(self.paths[-1]) if self.paths else -1
        begun = [path for path in capture_parts.parts(folder) if capture_parts.number(path) > known]
        with suppress(FileNotFoundError):  # they are joined: the capture has what is wanted
            if self.paths:  # the last one has grown, until the next was begun
                self.end = self.first[-1] + _record_bytes(self.paths[-1])
            for path in begun:
                size = _record_bytes(path)
                self.first.append(self.end)
                self.paths.append(path)
                self.end += size

    def at(self, place: int) -> tuple[Path | None, int, int | None]:
        """The part that holds a place, if it is known; what the place is more than one in the part; and at
        which place the next part begins.
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
    """The bytes of the captures in a folder, by the place in each."""

    captures: Path
    _known: dict[str, _Parts] = field(default_factory=dict)

    def find(self, capture: str, places: Integers) -> Iterator[tuple[slice, memoryview, int]]:
        """Stretches of ascending places of one capture that stand in one file: which, its bytes, and what a
        place in the capture is more than one in the file. Of those that are gone there are none.
        """
        whole = self.captures / f"{capture}.pcap"
        parts = self._known.setdefault(capture, _Parts())
        if places.size and parts.end <= places[-1]:
            parts.look(capture_parts.folder_of(whole))
        begin = 0
        while begin < places.size:
            path, shift, following = parts.at(int(places[begin]))
            end = places.size if following is None else int(np.searchsorted(places, following))
            # The parts may have been joined meanwhile.
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
