"""Captures at a URL (`stores`): listed by the planner, fetched by the tasks that read them.

A plain capture with an index beside it is read by many tasks. Each fetches its own bytes into a sparse file
as large as the capture, so offsets are those of the capture. The index is verified against the records found.
Any other capture is fetched whole, by one task. Fetched bytes are removed after reading, and are never more
than half of the free disk space.
"""

import shutil
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

import pyarrow.fs as pafs

from analysis.capture.pcap.files.compressed import unpack
from analysis.capture.pcap.files.format import FILE_HEADER_BYTES
from analysis.capture.pcap.files.index import CaptureIndex, build_index, parse_index
from analysis.capture.pcap.files.mapping import map_bytes
from analysis.capture.pcap.files.naming import captures_among
from analysis.capture.pcap.files.record_batches import RecordSpan, spans_of
from analysis.capture.pcap.files.scan import CaptureScan, Split
from analysis.capture.pcap.files.stores import COPIED_BYTES, store_and_path, store_errors, url_name
from analysis.capture.time_range import EVER, TimeRange
from analysis.errors import CaptureError
from analysis.spark_home import local_folder
from experiments.files.scratch import scratch
from experiments.records.rundir import INDEX
from topologies.errors import InputError

FREE_SHARE = 0.5
INDEX_BYTES_MAX = 64 << 20
FETCHING = "cutset-captures-"
RECORD_TIME_BYTES = 8
"""The size of the time stamp at the beginning of a classic pcap record."""


@dataclass(frozen=True, slots=True)
class StoredSpan:
    """Bytes of a capture at a URL, for a task to fetch.

    url: of the store. path: of the capture there. size, changed_ns: the file's size and modification time at
    planning. span: the records in these bytes by the index; None: the whole file. splits: the span's, by the
    index. times: the wanted time range.
    """

    url: str
    path: str
    size: int
    changed_ns: int | None
    start: int
    end: int
    span: RecordSpan | None
    times: TimeRange
    splits: tuple[Split, ...] = ()

    @contextmanager
    def fetched(self) -> Iterator[Iterator[RecordSpan]]:
        """Fetch the bytes, and return their spans, valid within the block. Raises CaptureError."""
        with scratch(FETCHING, local_folder()) as folder:
            file = folder / PurePosixPath(self.path).name
            with _captured(self.url):
                self.fetch(file)
            yield self._whole(file) if self.span is None else self._part(self.span, file)

    def _check_room(self, folder: Path) -> None:
        free, needed = shutil.disk_usage(folder).free, self.end - self.start
        if needed > free * FREE_SHARE:
            allowed = f"at most {FREE_SHARE:.0%} of the {free:,} bytes free in {folder.parent} may be used"
            raise CaptureError(f"{self.path}: cannot fetch {needed:,} bytes: {allowed}")

    def fetch(self, file: Path) -> None:
        """Copy the bytes to their place in a file. Raises CaptureError, and the errors of the store."""
        self._check_room(file.parent)
        store, _ = store_and_path(self.url)
        now = store.get_file_info(self.path)
        if (now.size, now.mtime_ns) != (self.size, self.changed_ns):
            raise CaptureError(f"{self.path}: changed since its reading was planned")
        with store.open_input_file(self.path) as source, file.open("wb") as target:
            target.truncate(self.size)
            source.seek(self.start)
            target.seek(self.start)
            while target.tell() < self.end:
                if not (some := source.read(min(self.end - target.tell(), COPIED_BYTES))):
                    raise CaptureError(f"{self.path}: became shorter while it was read")
                target.write(some)

    def _whole(self, file: Path) -> Iterator[RecordSpan]:
        plain = unpack(file)
        yield from spans_of(plain, build_index(plain), self.times)

    def _part(self, span: RecordSpan, file: Path) -> Iterator[RecordSpan]:
        """Yield the span if there are records from its beginning to its end. Raises CaptureError if not."""
        scan = CaptureScan.within(file.name, span.form, span.start)
        scan.go_on(map_bytes(file), span.end)
        if scan.problem is not None or scan.end != span.end or _sums(scan.splits) != _sums(self.splits):
            raise CaptureError(
                f"{self.path}: its index, {self.path}{INDEX}, is of another capture: remove it"
            )
        yield replace(span, path=str(file))


def _sums(splits: Sequence[Split]) -> tuple[int, int | None, int | None]:
    """Return the number of packets, and the first and last time."""
    first = min((split.first_ns for split in splits), default=None)
    last = max((split.last_ns for split in splits), default=None)
    return sum(split.packets for split in splits), first, last


def stored_spans(url: str, times: TimeRange) -> Iterator[StoredSpan]:
    """Yield the spans of all captures at a URL: a capture, a folder, or a pattern of names in a folder.

    Raises CaptureError if there are none.
    """
    with _captured(url):
        store, files, wanted = _listed(url)
        for name in wanted:
            yield from _spans(url, files[name], _index(store, files[name], files.get(name + INDEX)), times)


def fetch_captures(url: str, folder: Path) -> Iterator[Path]:
    """Copy all captures at a URL into a folder, and yield their files. Raises CaptureError."""
    with _captured(url):
        _, files, wanted = _listed(url)
        for number, name in enumerate(wanted):
            [whole] = _spans(url, files[name], None, EVER)
            (place := folder / f"{url_name(url)}-{number}").mkdir()
            whole.fetch(place / name)
            yield place / name


def _listed(url: str) -> tuple[pafs.FileSystem, dict[str, pafs.FileInfo], list[str]]:
    """Return the store of a URL, the files there by name, and the names of those that are captures."""
    store, path = store_and_path(url)
    path = path.rstrip("/")
    there = store.get_file_info(path).type
    folder, _, name = (path, "", "*") if there == pafs.FileType.Directory else path.rpartition("/")
    if not folder:
        raise CaptureError(f"{url}: no captures there")
    found = store.get_file_info(pafs.FileSelector(folder, allow_not_found=True))
    files = {PurePosixPath(info.path).name: info for info in found if info.is_file}
    wanted = [name] if name in files else captures_among(files, name)
    if not wanted:
        raise CaptureError(f"{url}: no captures there")
    return store, files, wanted


def _spans(
    url: str, capture: pafs.FileInfo, index: CaptureIndex | None, times: TimeRange
) -> Iterator[StoredSpan]:
    size = capture.size
    whole = StoredSpan(url, capture.path, size, capture.mtime_ns, 0, size, None, times)
    if index is None:
        yield whole
        return
    for span in spans_of(Path(PurePosixPath(capture.path).name), index, times):
        splits = tuple(split for split in index.splits if span.start <= split.offset < span.end)
        yield replace(whole, start=span.start, end=span.end, span=span, splits=splits)


def _index(
    store: pafs.FileSystem, capture: pafs.FileInfo, index: pafs.FileInfo | None
) -> CaptureIndex | None:
    """Return the index of a plain capture; None if there is none, or if it is of another capture."""
    if index is None:
        return None
    try:
        with store.open_input_stream(index.path, compression=None) as stream:
            found = parse_index(stream.read(INDEX_BYTES_MAX))
    except (OSError, ValueError):
        return None
    fits = found.is_plain and found.file_bytes == capture.size and found.good_bytes > FILE_HEADER_BYTES
    return found if fits and _has_records(store, capture.path, found) else None


def _has_records(store: pafs.FileSystem, path: str, index: CaptureIndex) -> bool:
    """Return whether the first, middle and last split begin with a record within the index's times."""
    form, splits = index.sections[0], index.splits
    with store.open_input_file(path) as source:
        for split in {splits[0], splits[len(splits) // 2], splits[-1]}:
            source.seek(split.offset)
            seconds, fraction = struct.unpack(form.order + "II", source.read(RECORD_TIME_BYTES))
            t_ns = seconds * 10**9 + fraction * 10**9 // form.fraction_end
            if not split.first_ns <= t_ns <= split.last_ns:
                return False
    return True


@contextmanager
def _captured(url: str) -> Iterator[None]:
    """Turn errors of the store into CaptureError."""
    try:
        with store_errors(url):
            yield
    except InputError as error:
        raise CaptureError(str(error)) from error
