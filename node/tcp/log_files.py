"""A log's files: reads them back, and executes `Append` and `Rewrite` so that they survive a crash.

Blocking; `node.tcp.storage` calls it from a thread. The order of the operations is essential: a segment gets
its end mark, on disk, before the next one is begun, so only the last segment may lack it. A rewrite writes a
new file, syncs it and renames it over the first of the segments that it replaces. Its header names the
replaced segments: if a crash leaves some of them, they are removed at the next start.

At the start the last segment is truncated at the first invalid byte, which is the result of a crash, and
closed. An invalid byte anywhere else is damage: StorageError, and nothing is served.

Failed operations can be retried: a segment's file is first truncated to its durable part, and everything else
is written once more. `FileSystem` has the few file operations that this needs; each of them can fail or be
the last before a crash.
"""

import errno
import fcntl
import os
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TypeVar

from node.core import log
from node.core import machine as m
from node.core.errors import StorageError
from node.core.framing import FRAME_LIMIT_BYTES
from node.core.message_layout import Codec

MODE = 0o644


class FileSystem:
    """The operating system's files."""

    def open_write(self, path: Path, *, truncate: bool) -> int:
        """Open a file for appending, creating it if needed; returns the descriptor."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | (os.O_TRUNC if truncate else 0)
        return os.open(path, flags, MODE)

    def write(self, descriptor: int, data: bytes, at: int) -> None:
        """Write all of it at an offset."""
        view = memoryview(data)
        while view:
            written = os.pwrite(descriptor, view, at)
            at += written
            view = view[written:]

    def cut(self, descriptor: int, size_bytes: int) -> None:
        """Truncate the file to that size."""
        os.ftruncate(descriptor, size_bytes)

    def sync(self, descriptor: int) -> None:
        """Sync the file's content and size."""
        os.fsync(descriptor)

    def sync_folder(self, folder: Path) -> None:
        """Sync the folder's names, if the file system has fsync(2) for folders."""
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        except OSError as error:
            if error.errno not in {errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS}:
                raise
        finally:
            os.close(descriptor)

    def rename(self, old: Path, new: Path) -> None:
        """Rename a file over another, atomically."""
        old.replace(new)

    def unlink(self, path: Path) -> None:
        """Remove a file if it exists."""
        path.unlink(missing_ok=True)

    def make_folder(self, folder: Path) -> None:
        """Make a folder and its parents, all on disk."""
        if folder.is_dir():
            return
        self.make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        self.sync_folder(folder.parent)


SUFFIX = ".log"
ASIDE = ".new"  # of a rewrite that is not yet in place
REMEDY = (
    "Later segments exist, so the file is damaged, not cut by a crash. Restore it from a copy; or move the "
    "folder away: then the process starts empty and recovers from its peers"
)
Operation = m.Append | m.Rewrite
T = TypeVar("T")


class LogFiles:
    """One log in one folder. Call `open` first; `lock` excludes every other process."""

    def __init__(
        self,
        folder: Path,
        codec: Codec,
        limit_bytes: int = FRAME_LIMIT_BYTES,
        files: FileSystem | None = None,
    ) -> None:
        self.folder = folder
        self.syncs = 0  # of segments' files, to measure how well commits are grouped
        self._codec = codec
        self._limit_bytes = limit_bytes  # of a frame
        self._files = files or FileSystem()
        self._lock: int | None = None
        self._segments: list[log.SegmentHeader] = []  # closed ones, in order
        self._current: _OpenSegment | None = None

    def open(self) -> list[str]:
        """Lock the folder and repair the last segment. Returns descriptions of what was cut off.

        Raises StorageError if another process has the lock, or if anything other than the tail is damaged.
        """
        if not self.folder.is_dir():
            return []  # made by the first Append: a process that stores nothing leaves no folder
        self._take_lock()
        for path in sorted(self.folder.glob(f"*{ASIDE}")):
            self._files.unlink(path)
        paths = sorted(self.folder.glob(f"*{SUFFIX}"))
        self._segments = []
        for path in paths[:-1]:
            self._register(path, self._header(path))
        return self._repair(paths[-1]) if paths else []

    def read(self) -> Iterator[m.StoredSegment]:
        """Yield the stored segments, in order, one in memory at a time. Raises StorageError on damage."""
        for header in list(self._segments):
            path = self._path(header.first)
            found = _checked(path, lambda: log.scan(path.read_bytes(), self._limit_bytes))  # noqa: B023 - called at once
            if found.problem or not found.closed:
                raise StorageError(f"{path}: {found.problem or 'has no end mark'}. {REMEDY}")
            messages = _checked(path, lambda: log.decode_frames(self._codec, found.frames))  # noqa: B023
            yield m.StoredSegment(header.first, messages)

    def perform(self, operations: Sequence[Operation]) -> Iterator[int]:
        """Execute operations in order; after each step yield how many of them are durable.

        Adjacent appends to one segment are one step: one write, one sync. Raises OSError; operations not yet
        counted may be retried.
        """
        done = 0
        for segment, group in groupby(operations, _segment_of):
            step = list(group)
            if segment is None:
                for rewrite in step:
                    assert isinstance(rewrite, m.Rewrite)  # by its segment
                    self._rewrite(rewrite)
            else:
                self._append(segment, [message for each in step for message in each.messages])
            done += len(step)
            yield done

    def close(self) -> None:
        """Release everything. The last segment gets its end mark at the next start."""
        if self._current is not None:
            os.close(self._current.descriptor)
            self._current = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    # --- The start

    def _take_lock(self) -> None:
        self._lock = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            self._lock = None
            raise StorageError(f"{self.folder} is used by another process; end that one first") from None

    def _header(self, path: Path) -> log.SegmentHeader:
        """Return a segment's header. Raises StorageError if it is invalid."""
        with path.open("rb") as file:
            header = _checked(path, lambda: log.scan_header(file.read(log.HEADER_BYTES)))
        if header is None or self._path(header.first) != path:
            raise StorageError(f"{path}: no whole header. {REMEDY}")
        return header

    def _register(self, path: Path, header: log.SegmentHeader) -> None:
        """Register a segment; delete one that a rewrite, interrupted by a crash, has replaced."""
        if self._segments and header.first <= self._segments[-1].last:
            self._files.unlink(path)
        else:
            self._segments.append(header)

    def _repair(self, path: Path) -> list[str]:
        """Truncate and close the last segment, or remove it if it has no header."""
        data = path.read_bytes()
        found = _checked(path, lambda: log.scan(data, self._limit_bytes))
        cut = [f"{path}: {found.problem}; cut off {len(data) - found.end} bytes"] if found.problem else []
        if found.header is not None and self._path(found.header.first) != path:
            raise StorageError(f"{path} is another segment's file: that of number {found.header.first}")
        if found.header is None:
            self._files.unlink(path)
            self._files.sync_folder(self.folder)
            return cut if data else []
        if not found.closed or found.problem:
            descriptor = self._files.open_write(path, truncate=False)
            try:
                self._files.cut(descriptor, found.end)
                if not found.closed:
                    end = log.LogRecordWriter(found.header, len(found.frames) + 1).encode_end()
                    self._files.write(descriptor, end, found.end)
                self._files.sync(descriptor)
            finally:
                os.close(descriptor)
        self._register(path, found.header)
        return cut

    # --- Operations

    def _append(self, segment: int, messages: Sequence[object]) -> None:
        current = self._current
        if current is not None and current.header.first != segment:
            self._finish(current)
            current = None
        if current is None:
            current = self._begin(segment)
        current.cut(self._files)
        writer = log.LogRecordWriter(current.header, current.records + 1)
        records = [
            buffer
            for message in messages
            for buffer in writer.encode(self._codec, message, self._limit_bytes)
        ]
        head: list[bytes | memoryview] = [] if current.synced_bytes else [current.header.encode()]
        self._write(current, b"".join(head + records))
        current.records += len(messages)

    def _begin(self, segment: int) -> "_OpenSegment":
        if self._lock is None:
            self._files.make_folder(self.folder)
            self._take_lock()
        assert not self._segments or segment > self._segments[-1].last, segment
        descriptor = self._files.open_write(self._path(segment), truncate=True)
        self._current = _OpenSegment(log.SegmentHeader(segment, segment), descriptor)
        return self._current

    def _finish(self, current: "_OpenSegment") -> None:
        current.cut(self._files)
        self._write(current, log.LogRecordWriter(current.header, current.records + 1).encode_end())
        os.close(current.descriptor)
        self._segments.append(current.header)
        self._current = None

    def _write(self, current: "_OpenSegment", data: bytes) -> None:
        current.dirty = True
        self._files.write(current.descriptor, data, current.synced_bytes)
        self._files.sync(current.descriptor)
        if not current.synced_bytes:
            self._files.sync_folder(self.folder)  # the file's name
        self.syncs += 1
        current.synced_bytes += len(data)
        current.dirty = False

    def _rewrite(self, rewrite: m.Rewrite) -> None:
        replaced = [header for header in self._segments if header.first in rewrite.segments]
        assert len(replaced) == len(rewrite.segments), rewrite.segments
        at = self._segments.index(replaced[0])
        if rewrite.messages:
            header = log.SegmentHeader(replaced[0].first, replaced[-1].last)
            path = self._path(header.first)
            aside = path.with_suffix(ASIDE)
            descriptor = self._files.open_write(aside, truncate=True)
            try:
                data = log.encode_segment(self._codec, header, rewrite.messages, self._limit_bytes)
                self._files.write(descriptor, data, 0)
                self._files.sync(descriptor)
            finally:
                os.close(descriptor)
            self._files.rename(aside, path)
            self._files.sync_folder(self.folder)
        for old in replaced[bool(rewrite.messages) :]:
            self._files.unlink(self._path(old.first))
        self._files.sync_folder(self.folder)
        self._segments[at : at + len(replaced)] = [header] if rewrite.messages else []

    def _path(self, segment: int) -> Path:
        return self.folder / f"{segment:016d}{SUFFIX}"


def _segment_of(operation: Operation) -> int | None:
    return operation.segment if isinstance(operation, m.Append) else None


def _checked(path: Path, look: Callable[[], T]) -> T:
    """Call `look`; its StorageError gets the file's name."""
    try:
        return look()
    except StorageError as error:
        raise StorageError(f"{path}: {error}") from error


class _OpenSegment:
    """The segment that is being written."""

    def __init__(self, header: log.SegmentHeader, descriptor: int) -> None:
        self.header = header
        self.descriptor = descriptor
        self.records = 0  # durable ones
        self.synced_bytes = 0
        self.dirty = False  # a write or sync failed: the content after synced_bytes is unknown

    def cut(self, files: FileSystem) -> None:
        """After a failure, discard data that may not be on disk."""
        if self.dirty:
            files.cut(self.descriptor, self.synced_bytes)
