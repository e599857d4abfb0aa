"""Parts of a capture, each in its own file (`experiments.records.capture_parts`), as tasks read them.
Offsets are those of the joined capture.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from analysis.capture.pcap.files.format import FILE_HEADER_BYTES
from analysis.capture.pcap.files.index import build_index
from analysis.capture.pcap.files.record_batches import RecordSpan, spans_of
from analysis.capture.time_range import EVER
from analysis.errors import CaptureError


@dataclass(frozen=True, slots=True)
class Lenience:
    """Errors to skip instead of raising, as with Spark's own file sources."""

    missing: bool = False  # captures or parts that were removed before they were read
    corrupt: bool = False  # files that are not captures, or not the ones read before


STRICT = Lenience()


@dataclass(frozen=True, slots=True)
class CapturePart:
    """A complete part of a capture, for a task to read."""

    path: str
    capture: str
    shift: int  # offset in the capture minus offset in the part
    start: int
    end: int

    def spans(self, lenience: Lenience) -> Iterator[RecordSpan]:
        """Yield the part's records up to the first damaged one. Raises CaptureError."""
        path = Path(self.path)
        if self.end < FILE_HEADER_BYTES:  # the writer died as it began the part
            return
        try:
            index = build_index(path)
        except CaptureError:
            if lenience.corrupt or (lenience.missing and not path.exists()):
                return
            raise
        for span in spans_of(path, index, EVER):
            yield replace(span, capture=self.capture, shift=self.shift)


def end_when_joined(place: int, size: int) -> int:
    """Return the end, in the joined capture, of a part of this size that begins at `place`."""
    if size < FILE_HEADER_BYTES:
        return place
    return place + size - (FILE_HEADER_BYTES if place else 0)
