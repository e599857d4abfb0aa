"""A local file while it is shipped: appends bytes, and determines what has arrived.

Bytes are appended to the file itself, so that it can be read while it grows and all bytes that arrived are
kept. The progress is the file's size; no other state is recorded. When a file has to be shipped again, the
old content stays until the new content is complete and replaces it. Both sides compute SHA-256 of files in
the same way.
"""

import hashlib
import os
import stat
from collections.abc import Callable
from io import FileIO
from pathlib import Path

from testbed.machines.shipping.names import AGAIN

TAIL_BYTES = 64 << 10
STEP_BYTES = 1 << 20
BUSY_EVERY_BYTES = 16 << 20
"""Little enough for a slow disk to read within a sender's idle time."""


class PartialFile:
    """A file that has arrived in part, completely or not at all. Its methods raise OSError."""

    def __init__(self, target: Path) -> None:
        self._target = target
        self._again = target.with_name(target.name + AGAIN)
        self._path = self._again if os.path.lexists(self._again) else target
        self.size = _size(self._path)

    @property
    def kept_bytes(self) -> int:
        """The readable size of the file: that of the old content while it is shipped again."""
        return _size(self._target)

    def append(self, data: bytes) -> None:
        """Append bytes."""
        if not self.size:
            self._target.parent.mkdir(parents=True, exist_ok=True)
        with FileIO(self._path, "a", opener=_open_no_link) as file:
            view = memoryview(data)
            while view:
                written = file.write(view)
                self.size += written
                view = view[written:]

    def restart(self) -> int:
        """Ship the file again, beside the old content. Returns the number of discarded bytes."""
        thrown_away = self.size if self._path == self._again else 0
        if self.size and self._path == self._target:
            self._path = self._again
        if self._path == self._again:
            FileIO(self._path, "w", opener=_open_no_link).close()
        self.size = 0
        return thrown_away

    def settle(self) -> int:
        """Complete the file: it replaces the old content. Returns the number of freed bytes."""
        if self._path == self._target:
            return 0
        freed = self.kept_bytes
        self._path.replace(self._target)
        self._path = self._target
        return freed

    def tail(self) -> str:
        """Return the digest of the last bytes here."""
        with FileIO(self._path, opener=_open_no_link) as file:
            return tail_digest(file, self.size)

    def digest(self, size: int) -> bytes | None:
        """Return the SHA-256 of the first `size` bytes here, read from the file; None if there are fewer."""
        with FileIO(self._path, opener=_open_no_link) as file:
            return file_digest(file, size)

    def sync(self) -> None:
        """Sync the file's content to the disk; the caller syncs the folder."""
        with FileIO(self._path, opener=_open_no_link) as file:
            os.fsync(file.fileno())


def _size(path: Path) -> int:
    try:
        status = path.lstat()
    except OSError:  # the file or its folder does not exist
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else 0


def _open_no_link(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)


def tail_digest(file: FileIO, offset: int) -> str:
    """Return the SHA-256 of the last TAIL_BYTES (or fewer) before `offset`, in hexadecimal digits."""
    start = max(0, offset - TAIL_BYTES)
    file.seek(start)
    return hashlib.sha256(file.read(offset - start)).hexdigest()


def file_digest(file: FileIO, size: int, busy: Callable[[], object] = lambda: None) -> bytes | None:
    """Return the SHA-256 of the first `size` bytes; None if there are fewer.

    busy: called every BUSY_EVERY_BYTES.
    """
    digest, view, done = hashlib.sha256(), memoryview(bytearray(STEP_BYTES)), 0
    file.seek(0)
    while done < size:
        got = file.readinto(view[: min(STEP_BYTES, size - done)])
        if not got:
            return None
        digest.update(view[:got])
        if (done + got) // BUSY_EVERY_BYTES != done // BUSY_EVERY_BYTES:
            busy()
        done += got
    return digest.digest()
