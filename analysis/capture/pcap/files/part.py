"""Parts of a capture as tasks read them: each a file of its own, with the places of the capture that they are
joined to (`experiments.records.capture_parts`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from analysis.capture.pcap.files.format import FILE_HEADER_BYTES
from analysis.capture.pcap.files.index import build_index
from analysis.capture.pcap.files.record_batches import Span, spans_of
from analysis.capture.time_range import EVER
from analysis.errors import CaptureError


@dataclass(frozen=True, slots=True)
class Lenience:
    """What is passed over rather than raised, as of Spark's own files."""

    missing: bool = False  # captures, or parts, that are gone before they were read
    corrupt: bool = False  # files that are no captures, or not what was read before


STRICT = Lenience()


@dataclass(frozen=True, slots=True)
class Part:
    """A whole part of a capture, for a task to read."""

    path: str
    capture: str
    shift: int  # what a place in the capture is more than one in the part
    start: int
    end: int

    def spans(self, lenience: Lenience) -> Iterator[Span]:
        """The records of the part, as far as they are good. Raises CaptureError."""
        path = Path(self.path)
        if self.end < FILE_HEADER_BYTES:  # begun as the writer died
            return
        try:
            index = build_index(path)
        except CaptureError:
            if lenience.corrupt or (lenience.missing and not path.exists()):
                return
            raise
        for span in spans_of(path, index, EVER):
            yield replace(span, capture=self.capture, shift=self.shift)


def pieces(stretch: Span | Part, lenience: Lenience) -> Iterator[Span]:
    """The spans of what `between` gave."""
    if isinstance(stretch, Part):
        yield from stretch.spans(lenience)
    else:
        yield stretch


def joined(place: int, size: int) -> int:
    """Where a part of this size ends in the capture that its parts are joined to, after those before it."""
    if size < FILE_HEADER_BYTES:
        return place
    return place + size - (FILE_HEADER_BYTES if place else 0)
