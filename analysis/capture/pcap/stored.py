"""Captures that a URL names (`experiments.stores`): listed by who plans, fetched by the tasks that read them.

A plain capture with its index beside it is read by many tasks, each of which fetches its own bytes. They come
into a file as large as the capture with nothing in the rest of it, so places are those of the capture. What
an index says is believed no further than the records that are then found. Any other capture is fetched whole,
by one task. What is fetched goes when it was read; it is never more than half of what is free.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

import pyarrow.fs as pafs

from analysis.capture.pcap.compressed import unpack
from analysis.capture.pcap.index import build_index, parse_index
from analysis.capture.pcap.mapping import map_bytes
from analysis.capture.pcap.naming import captures_among
from analysis.capture.pcap.record_batches import Span, TimeRange, spans_of
from analysis.capture.pcap.scan import Scan
from analysis.errors import CaptureError
from analysis.spark_home import local_folder
from experiments.rundir import INDEX
from experiments.scratch import scratch
from experiments.stores import COPIED_BYTES, reached, told
from topologies.errors import InputError

FREE_SHARE = 0.5
INDEX_BYTES_MAX = 64 << 20
FETCHING = "cutset-captures-"


@dataclass(frozen=True, slots=True)
class StoredSpan:
    """Bytes of a capture at a URL, for a task to fetch.

    url: leads to the store. path: of the capture there. span: what stands in these bytes, if an index says
    so; None: they are all of the file. times: which packets of it are wanted.
    """

    url: str
    path: str
    size: int
    start: int
    end: int
    span: Span | None
    times: TimeRange

    @contextmanager
    def fetched(self) -> Iterator[Iterator[Span]]:
        """The spans in it, which can be read until the end of the block. Raises CaptureError."""
        with _captured(self.url), scratch(FETCHING, local_folder()) as folder:
            free = shutil.disk_usage(folder).free
            if self.end - self.start > free * FREE_SHARE:
                said = f"only {free:,} bytes are free in {folder.parent}"
                raise CaptureError(
                    f"{self.path}: {self.end - self.start:,} bytes are to be fetched, and {said}"
                )
            file = folder / PurePosixPath(self.path).name
            self._fetch(file)
            yield self._whole(file) if self.span is None else self._part(self.span, file)

    def _fetch(self, file: Path) -> None:
        store, _ = reached(self.url)
        with store.open_input_file(self.path) as source, file.open("wb") as target:
            target.truncate(self.size)
            source.seek(self.start)
            target.seek(self.start)
            while target.tell() < self.end:
                if not (some := source.read(min(self.end - target.tell(), COPIED_BYTES))):
                    raise CaptureError(f"{self.path}: became shorter while it was read")
                target.write(some)

    def _whole(self, file: Path) -> Iterator[Span]:
        plain = unpack(file)
        yield from spans_of(plain, build_index(plain), self.times)

    def _part(self, span: Span, file: Path) -> Iterator[Span]:
        """A span, once it is sure that there are records from its beginning to its end."""
        scan = Scan.within(file.name, span.form, span.start)
        scan.go_on(map_bytes(file), span.end)
        if scan.problem is not None or scan.end != span.end or len(scan.sections) != 1:
            raise CaptureError(
                f"{self.path}: its index, {self.path}{INDEX}, is of another capture: remove it"
            )
        yield replace(span, path=str(file))


def stored_spans(url: str, times: TimeRange) -> Iterator[StoredSpan]:
    """All of the captures that a URL means: a capture, a folder of captures, or a pattern of names in one.

    Raises CaptureError if there are none.
    """
    with _captured(url):
        store, path = reached(url)
        path = path.rstrip("/")
        there = store.get_file_info(path).type
        folder, name = (path, "*") if there == pafs.FileType.Directory else path.rsplit("/", 1)
        found = store.get_file_info(pafs.FileSelector(folder, allow_not_found=True))
        files = {PurePosixPath(info.path).name: info for info in found if info.is_file}
        wanted = [name] if name in files else captures_among(files, name)
        if not wanted:
            raise CaptureError(f"{url}: no captures there")
        for name in wanted:
            index = files.get(name + INDEX)
            spans = None if index is None else _indexed(store, index.path, files[name].size, times)
            yield from _spans(url, files[name], spans, times)


def _spans(
    url: str, capture: pafs.FileInfo, spans: list[Span] | None, times: TimeRange
) -> Iterator[StoredSpan]:
    whole = StoredSpan(url, capture.path, capture.size, 0, capture.size, None, times)
    if spans is None:
        yield whole
    else:
        yield from (replace(whole, start=span.start, end=span.end, span=span) for span in spans)


def _indexed(store: pafs.FileSystem, index: str, size: int, times: TimeRange) -> list[Span] | None:
    """The spans of a plain capture, by its index; None if that is none of a plain capture of this size."""
    try:
        with store.open_input_stream(index, compression=None) as stream:
            found = parse_index(stream.read(INDEX_BYTES_MAX))
    except (OSError, ValueError):
        return None
    spans = list(spans_of(Path(PurePosixPath(index).name.removesuffix(INDEX)), found, times))
    fits = found.file_bytes == size and all(0 < span.start < span.end <= size for span in spans)
    return spans if fits and found.is_plain else None


@contextmanager
def _captured(url: str) -> Iterator[None]:
    """What is wrong with a store, as CaptureError."""
    try:
        with told(url):
            yield
    except InputError as error:
        raise CaptureError(str(error)) from error
