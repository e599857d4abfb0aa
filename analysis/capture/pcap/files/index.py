"""The sidecar index of a capture: makes one big file splittable, and lets a time filter skip most of it.

An index cuts a capture into splits of about 4 MB at record boundaries, with the number of records and the
time range of each, and gives the length of the valid part. It is exact: built by a walk over every record
header. It is stored beside its capture, written atomically, and rebuilt when it is missing, unreadable, or of
another version of the capture. It only saves time.

A damaged header (an impossible length or time) or a truncated tail ends the valid part (`scan`); `problem`
describes it. Unusable records within the valid part are counted by reason in `unused`.
"""

import json
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter

from analysis.capture.pcap.files.compressed import unpacking_problem
from analysis.capture.pcap.files.format import CHAINS, PCAPNG, Format
from analysis.capture.pcap.files.mapping import map_bytes
from analysis.capture.pcap.files.scan import CaptureScan, Split
from analysis.capture.pcap.fragments import Fragment
from analysis.errors import CaptureError
from experiments.files.whole_files import write_whole
from experiments.records.rundir import RunDirectory

SCHEMA = 4


@dataclass(frozen=True, slots=True)
class CaptureIndex:
    """The index of a capture: its sections and splits."""

    sections: tuple[Format, ...]
    file_bytes: int
    file_mtime_ns: int
    good_bytes: int
    splits: tuple[Split, ...]
    problem: str | None  # with the bytes from `good_bytes` on
    unused: dict[str, int]  # counts of unusable records before `good_bytes` by reason
    fragments: tuple[Fragment, ...] = ()  # later fragments of TCP segments, in the order of the file

    @property
    def is_plain(self) -> bool:
        """Whether the capture is a classic pcap file, whose records can be read independently, and the splits
        cover all its records.
        """
        places = [
            self.sections[0].chain.first,
            *(place for split in self.splits for place in (split.offset, split.end)),
        ]
        joined = all(end == begin for end, begin in zip(places[::2], places[1::2], strict=False))
        return (
            len(self.sections) == 1
            and self.sections[0].kind != PCAPNG
            and joined
            and places[-1] == self.good_bytes
        )

    @property
    def packets(self) -> int:
        """The number of whole records in the capture."""
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
    """Return the path of a capture's index."""
    return RunDirectory(capture.parent.parent).capture_index(capture)


def load_index(capture: Path) -> CaptureIndex:
    """Read the index beside a capture, or build and store it. Raises CaptureError if it is not a capture."""
    with suppress(OSError, ValueError):  # missing, torn or of another schema: rebuilt below
        index = parse_index(sidecar(capture).read_bytes())
        if (index.file_bytes, index.file_mtime_ns) == _identity(capture):
            return index
    index = build_index(capture)
    with suppress(OSError):  # a read-only run directory: the index only saves time
        write_whole(sidecar(capture), json.dumps({"schema": SCHEMA, **asdict(index)}), sync=False)
    return index


def build_index(capture: Path) -> CaptureIndex:
    """Walk a whole capture. The window bounds the memory. Raises CaptureError if it is not a capture."""
    data = map_bytes(capture)
    status = capture.stat()
    scan = CaptureScan(capture.name)
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
        unused=dict(scan.unused) | scan.unread.by_name(),
        fragments=fragments,
    )


def _identity(capture: Path) -> tuple[int, int]:
    status = capture.stat()
    return status.st_size, status.st_mtime_ns


def parse_index(content: bytes) -> CaptureIndex:
    """Parse an index file's content. Raises ValueError if it is torn, of another schema, or not an index."""
    try:
        fields = json.loads(content)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(fields, dict) or fields.pop("schema", None) != SCHEMA:
        raise ValueError("another schema")
    found = _reader().validate_python(fields)
    end = 0
    for split in found.splits:
        if not (0 <= split.section < len(found.sections) and end <= split.offset < split.end):
            raise ValueError("impossible splits")
        end = split.end
    if not found.sections or not all(map(_is_possible, found.sections)):
        raise ValueError("no sections")
    if not end <= found.good_bytes <= found.file_bytes:
        raise ValueError("ends beyond its capture")
    if found.sections[0].kind != PCAPNG and not found.is_plain:
        raise ValueError("does not cover the whole capture")
    return found


def _is_possible(form: Format) -> bool:
    return form.kind in CHAINS and (form.kind == PCAPNG or bool(form.interfaces))


@cache
def _reader() -> TypeAdapter[CaptureIndex]:
    return TypeAdapter(CaptureIndex)
