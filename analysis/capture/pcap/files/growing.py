"""A growing folder of captures: how far each can be read, and its records between two places.

A place is an offset in the plain, whole capture. So if a capture is compressed in the meantime, reading
continues at the same place, with the rows that the whole capture has. There are two forms:

- plain files are read to their last whole record, and continued when there is more;
- compressed files are decompressed once two successive checks found them unchanged.

Captures may only be appended to. A capture that became shorter, or differs from the one that was read (by a
checksum of its beginning and of the bytes before the place), is damaged. When a capture was removed, its
place is discarded, and a later capture with this name is read from the beginning.

The state of each walk is retained so that no record is walked twice. It can be restored from the places.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn
from zlib import crc32

from analysis.arrays import Bytes
from analysis.capture.pcap.files.compressed import readable, unpack, without_compression
from analysis.capture.pcap.files.format import FILE_HEADER_BYTES
from analysis.capture.pcap.files.mapping import map_bytes
from analysis.capture.pcap.files.naming import captures_among
from analysis.capture.pcap.files.record_batches import RecordSpan, cut_into_spans
from analysis.capture.pcap.files.scan import CaptureScan
from analysis.errors import CaptureError
from experiments.records.rundir import CAPTURE_ENDINGS

BYTES, CHECKSUM = "bytes", "checksum"
Place = Mapping[str, int]
"""How much of a capture was read, in BYTES, and the CHECKSUM that identifies it."""
Places = Mapping[str, Place]
"""Places by the name of a capture's plain file."""
NOTHING_READ: Place = {BYTES: 0}
CHECKED_FIRST, CHECKED_LAST = 64, 4096
"""Bytes of the checksum: at the capture's beginning, and before the place. Both contain a record's time."""
PACKED = tuple({Path(ending).suffix for ending in CAPTURE_ENDINGS} - {".pcap", ".pcapng"})


@dataclass(frozen=True, slots=True)
class Lenience:
    """Errors to skip instead of raising, as with Spark's own file sources."""

    missing: bool = False  # captures that were removed before they were read
    corrupt: bool = False  # files that are not captures, or not the ones read before


STRICT = Lenience()


@dataclass(slots=True)
class _Look:
    """The state of a file at the last check."""

    path: Path
    scan: CaptureScan
    identity: tuple[int, int] = (0, 0)
    size: int = 0


@dataclass(slots=True)
class GrowingCaptures:
    """The captures at a path, now and later: a folder, or a name or glob pattern in a folder."""

    path: str
    lenience: Lenience = STRICT
    problems: dict[str, str] = field(default_factory=dict)
    """Problems by capture, including unfinished records that may still be completed."""
    _looks: dict[str, _Look] = field(default_factory=dict)
    _targets: dict[str, int] | None = None

    def latest(self, start: Places, bytes_max: int | None) -> dict[str, Place]:
        """Return the end of a batch that begins at `start`: oldest data first, about `bytes_max` bytes.

        Raises CaptureError.
        """
        if not self._folder().is_dir():
            return dict(start)
        there = self._there()
        for name in sorted(start.keys() - there.keys()):
            self._forget_removed(name, start[name])
        end = {name: place for name, place in start.items() if name in there}
        room = bytes_max
        for _, name, path in sorted(self._waiting(there)):
            if room is not None and room <= 0:
                break
            before = end.get(name, NOTHING_READ)
            after = self._after(name, path, before, room)
            if room is not None:
                room -= after[BYTES] - before[BYTES]
            if after != before:
                end[name] = after
        return end

    def between(self, start: Places, end: Places) -> Iterator[RecordSpan]:
        """Yield the records between two places, in the order of each capture. Raises CaptureError."""
        there = self._there()
        for name, last in sorted(end.items()):
            first = start.get(name, NOTHING_READ)
            if first[BYTES] == last[BYTES]:
                continue
            path = there.get(name)
            if path is None:
                self._report_removed(name, first, last)
            else:
                yield from self._spans(name, path, first, last)

    def report(self) -> dict[str, Places | Mapping[str, str]]:
        """Return the size of each capture, and the problems after its valid part."""
        sizes = {name: {BYTES: look.size} for name, look in sorted(self._looks.items())}
        return {"captures": sizes, "problems": dict(sorted(self.problems.items()))}

    def stop_growing(self) -> None:
        """Stop at the present end of all captures, and do not wait for compressed files to settle."""
        targets = {}
        for name, path in self._there().items():
            if (status := _status(path)) is not None:
                targets[name], _ = status
        self._targets = targets

    def _folder(self) -> Path:
        path = Path(self.path)
        return path if path.is_dir() else path.parent

    def _there(self) -> dict[str, Path]:
        """Return the present captures, each in its preferred form, by the name of its plain file."""
        folder = self._folder()
        pattern = "*" if folder == Path(self.path) else Path(self.path).name
        names = (path.name for path in (folder.iterdir() if folder.is_dir() else ()) if not path.is_dir())
        wanted = {without_compression(name): folder / name for name in captures_among(names, pattern)}
        if self._targets is None:
            return wanted
        return {name: path for name, path in wanted.items() if name in self._targets}

    def _waiting(self, there: Mapping[str, Path]) -> Iterator[tuple[int, str, Path]]:
        """Yield files that may have unread data, with the second of their last change."""
        for name, path in there.items():
            if (status := _status(path)) is not None:
                yield status[1] // 10**9, name, path

    def _after(self, name: str, path: Path, place: Place, room: int | None) -> Place:
        """Return the place up to which a file can be read."""
        try:
            return self._walk(name, path, place, room)
        except CaptureError as error:
            if not self.lenience.corrupt:
                raise
            self._pass_over(name, error)
            return place

    def _walk(self, name: str, path: Path, place: Place, room: int | None) -> Place:
        """Continue the walk through a file's records, and return its present end. Raises CaptureError."""
        start = place[BYTES]
        identity, is_packed = _status(path), path.suffix in PACKED
        look = self._looks.get(name)
        if look is None or look.path != path:
            look = self._looks[name] = _Look(path, CaptureScan(name))
        settled, look.identity = identity == look.identity, identity or (0, 0)
        if identity is None or (settled and (name in self.problems or 0 < look.size == start)):
            return place
        if is_packed and not settled and self._targets is None:
            return place
        file = unpack(path)
        look.size = file.stat().st_size
        if look.size < start:
            raise CaptureError(
                f"{name}: became shorter: {start} bytes were read before, {look.size} are left"
            )
        until = look.size if self._targets is None or is_packed else min(look.size, self._targets[name])
        if until < max(start, FILE_HEADER_BYTES):
            return place
        data = map_bytes(file)
        _check(name, data, place)
        if until == start:
            return place
        self._go_to(look.scan, name, file, start)
        if until < look.size:
            data = data[:until]
        look.scan.go_on(data, None if room is None else start + room)
        self._note(name, look.scan)
        if look.scan.end <= start:
            return place
        return {BYTES: look.scan.end, CHECKSUM: _checksum(data, look.scan.end)}

    def _go_to(self, scan: CaptureScan, name: str, file: Path, place: int) -> None:
        """Walk to a place that was read to before. Raises CaptureError if no record ends there."""
        if scan.end < place:
            scan.go_on(map_bytes(file), place)
            if scan.end != place:
                raise CaptureError(f"{name}: was read to byte {place} before, but no record ends there")

    def _note(self, name: str, scan: CaptureScan) -> None:
        self.problems.pop(name, None)
        if scan.problem is not None:
            if not scan.sections and not scan.problem.startswith("cut off"):
                raise CaptureError(f"{name}: {scan.problem}")
            self.problems[name] = scan.problem

    def _spans(self, name: str, path: Path, first: Place, last: Place) -> Iterator[RecordSpan]:
        """Yield the records of a file between two places."""
        start, end = first[BYTES], last[BYTES]
        try:
            file = readable(path) if readable(path).exists() else unpack(path)
            _check(name, map_bytes(file), last)
            look = self._looks.get(name)
            if look is None or look.path != path or look.scan.end < end:
                look = self._looks[name] = _Look(path, CaptureScan(name))
                self._go_to(look.scan, name, file, start)
                look.scan.forget(start)
                self._go_to(look.scan, name, file, end)
        except CaptureError as error:
            if not path.exists():
                self._report_removed(name, first, last)
            elif not self.lenience.corrupt:
                raise
            else:
                self._pass_over(name, error)
            return
        look.scan.forget(start)
        of = RecordSpan(str(file), look.scan.sections[0], 0, 0, capture=Path(name).stem)
        yield from cut_into_spans(of, look.scan.between(start, end))

    def _pass_over(self, name: str, error: CaptureError) -> None:
        """Skip a file until it changes; then walk it from its beginning."""
        self.problems[name] = str(error)
        if name in self._looks:
            self._looks[name].scan = CaptureScan(name)

    def _forget_removed(self, name: str, place: Place) -> None:
        """Forget a removed capture, and report it if not all of it was read."""
        look = self._looks.pop(name, None)
        self.problems.pop(name, None)
        if look is not None and look.scan.problem is None and look.size > place[BYTES]:
            self._report_removed(name, place, {BYTES: look.size})

    def _report_removed(self, name: str, first: Place, last: Place) -> None:
        problem = f"{name}: bytes {first[BYTES]} to {last[BYTES]} were removed before they were read"
        if not self.lenience.missing:
            _refuse(problem)
        self.problems[name] = problem


def _checksum(data: Bytes, end: int) -> int:
    """Return the checksum that identifies a capture read up to a place."""
    first, last = data[: min(CHECKED_FIRST, end)], data[max(0, end - CHECKED_LAST) : end]
    return crc32(last.tobytes(), crc32(first.tobytes()))


def _check(name: str, data: Bytes, place: Place) -> None:
    """Check that this is the capture that was read up to a place. Raises CaptureError if not."""
    if len(data) >= place[BYTES] and CHECKSUM in place and place[CHECKSUM] != _checksum(data, place[BYTES]):
        raise CaptureError(f"{name}: differs from the capture that was read to byte {place[BYTES]}")


def _refuse(problem: str) -> NoReturn:
    raise CaptureError(f"{problem}; the option ignoreMissingFiles skips them")


def _status(path: Path) -> tuple[int, int] | None:
    """Return a file's size and modification time, ns; None if it is gone."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_size, status.st_mtime_ns
