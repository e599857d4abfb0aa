"""The sidecar index of a capture: what makes one big file splittable, and lets a time filter skip most of it.

An index says where a record begins every 4 MB or so, how many records and which time span each split holds,
and how much of the file is good. It is exact: made by walking every record header from the beginning. It
stands beside its capture, is written atomically, and is made again when it is missing, unreadable, or older
than the capture. Nothing here depends on it being there.

A damaged header (a length or time that cannot be) or a cut-off tail ends the good part; what follows is not
read, because nothing says where the next record begins. `problem` says so in words. What is in the good part
and cannot be used all the same is counted by name in `unused`.
"""

import json
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter

from analysis.capture.pcap.files.compressed import unpacking_problem
from analysis.capture.pcap.files.format import FILE_HEADER_BYTES, PCAP, Format
from analysis.capture.pcap.files.mapping import map_bytes
from analysis.capture.pcap.files.scan import Scan, Split
from analysis.capture.pcap.fragments import Fragment
from analysis.errors import CaptureError
from experiments.files.whole_files import write_whole
from experiments.records.rundir import RunDirectory

SCHEMA = 3


@dataclass(frozen=True, slots=True)
class CaptureIndex:
    """The index of a capture: its sections and splits."""

    sections: tuple[Format, ...]
    file_bytes: int
    file_mtime_ns: int
    good_bytes: int
    splits: tuple[Split, ...]
    problem: str | None  # what is wrong with the bytes from `good_bytes` on
    unused: dict[str, int]  # what cannot be used of those before, by name: how many
    fragments: tuple[Fragment, ...] = ()  # later fragments of TCP segments, in the order of the file

    @property
    def is_plain(self) -> bool:
        """Whether it is of one classic pcap file, whose records need nothing that stands before them, and it
        says of all of them where they are.
        """
        places = [FILE_HEADER_BYTES, *(place for split in self.splits for place in (split.offset, split.end))]
        joined = all(end == begin for end, begin in zip(places[::2], places[1::2], strict=False))
        return (
            len(self.sections) == 1
            and self.sections[0].kind == PCAP
            and joined
            and places[-1] == self.good_bytes
        )

    @property
    def packets(self) -> int:
        """How many whole records the capture holds."""
        return sum(split.packets for split in self.splits)

    @property
    def first_ns(self) -> int | None:
        """Smallest time stamp, CLOCK_REALTIME ns."""
        return min((split.first_ns for split in self.splits), default=None)

    @property
    def last_ns(self) -> int | None:
        """Largest time stamp, CLOCK_REALTIME ns."""
        return max((split.last_ns for split in self.splits), default=None)


def sidecar(capture: Path) -> Path:
    """The path of a capture's index."""
    return RunDirectory(capture.parent.parent).capture_index(capture)


def load_index(capture: Path) -> CaptureIndex:
    """Read the index beside a capture, or build and store it. Raises CaptureError if it is not a capture."""
    with suppress(OSError, ValueError):  # missing, torn or of another schema: made again
        index = parse_index(sidecar(capture).read_bytes())
        if (index.file_bytes, index.file_mtime_ns) == _identity(capture):
            return index
    index = build_index(capture)
    with suppress(OSError):  # a read-only run directory: the index is only a saving of time
        write_whole(sidecar(capture), json.dumps({"schema": SCHEMA, **asdict(index)}), sync=False)
    return index


def build_index(capture: Path) -> CaptureIndex:
    """Walk a whole capture. Memory is bounded by the window, not by the file."""
    data = map_bytes(capture)
    status = capture.stat()
    scan = Scan(capture.name)
    scan.go_on(data)
    if not scan.sections:
        raise CaptureError(f"{capture.name}: {scan.problem}")
    problem = "; ".join(filter(None, (unpacking_problem(capture), scan.problem))) or None
    fragments = scan.fragments.finish()
    if scan.fragments.lost:
        scan.unused["fragments of TCP segments whose beginning is missing"] = scan.fragments.lost
    return CaptureIndex(
        sections=tuple(scan.sections),
        file_bytes=status.st_size,
        file_mtime_ns=status.st_mtime_ns,
        good_bytes=scan.end,
        splits=tuple(scan.splits),
        problem=problem,
        unused=dict(scan.unused),
        fragments=fragments,
    )


def _identity(capture: Path) -> tuple[int, int]:
    status = capture.stat()
    return status.st_size, status.st_mtime_ns


def parse_index(content: bytes) -> CaptureIndex:
    """An index as it stands in a file. Raises ValueError if it is torn, of another schema, or none."""
    try:
        fields = json.loads(content)
    except RecursionError:
        raise ValueError("nested too deep") from None
    if not isinstance(fields, dict) or fields.pop("schema", None) != SCHEMA:
        raise ValueError("another schema")
    found = _reader().validate_python(fields)
    end = 0
    for split in found.splits:
        if not (0 <= split.section < len(found.sections) and end <= split.offset < split.end):
            raise ValueError("splits that cannot be")
        end = split.end
    if not found.sections or not all(form.interfaces for form in found.sections if form.kind == PCAP):
        raise ValueError("no sections")
    if not end <= found.good_bytes <= found.file_bytes:
        raise ValueError("it goes on beyond its capture")
    if [form.kind for form in found.sections] == [PCAP] and not found.is_plain:
        raise ValueError("it leaves something out")
    return found


@cache
def _reader() -> TypeAdapter[CaptureIndex]:
    return TypeAdapter(CaptureIndex)
