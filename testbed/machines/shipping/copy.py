"""One file here, while it is shipped: where the next bytes go, and what is there already.

Bytes are appended to the file itself, so that it can be read while it grows and whatever came is kept; how
much is here is its size, and nothing else is noted anywhere. When a file has to be shipped anew, what is
here stays until the new one is as long as it should be; then it takes its place.
"""

import os
import stat
from io import FileIO
from pathlib import Path

from testbed.machines.shipping.digests import file_digest, tail_digest
from testbed.machines.shipping.names import AGAIN


class Copy:
    """A file that is here in part, in whole, or not at all. Its methods raise OSError."""

    def __init__(self, target: Path) -> None:
        self._target = target
        self._again = target.with_name(target.name + AGAIN)
        self._path = self._again if os.path.lexists(self._again) else target
        self.size = _size(self._path)

    @property
    def kept_bytes(self) -> int:
        """What is here of the file, for those who look at it: the older one's bytes while it comes anew."""
        return _size(self._target)

    def append(self, data: bytes) -> None:
        """Put bytes behind those that are here."""
        if not self.size:
            self._target.parent.mkdir(parents=True, exist_ok=True)
        with FileIO(self._path, "a", opener=_open_no_link) as file:
            view = memoryview(data)
            while view:
                written = file.write(view)
                self.size += written
                view = view[written:]

    def restart(self) -> int:
        """From now on the file is shipped anew, beside what is here. How many bytes that throws away now."""
        thrown_away = self.size if self._path == self._again else 0
        if self.size and self._path == self._target:
            self._path = self._again
        if self._path == self._again:
            FileIO(self._path, "w", opener=_open_no_link).close()
        self.size = 0
        return thrown_away

    def settle(self) -> int:
        """It is as long as it should be: it takes its place. How many bytes of an older one that frees."""
        if self._path == self._target:
            return 0
        freed = self.kept_bytes
        self._path.replace(self._target)
        self._path = self._target
        return freed

    def tail(self) -> str:
        """The digest of the last bytes here."""
        with FileIO(self._path, opener=_open_no_link) as file:
            return tail_digest(file, self.size)

    def digest(self, size: int) -> bytes | None:
        """The SHA-256 of the first `size` bytes here, read from the file; None if there are fewer."""
        with FileIO(self._path, opener=_open_no_link) as file:
            return file_digest(file, size)

    def sync(self) -> None:
        """Put its bytes on the disk; its name is its folder's matter."""
        with FileIO(self._path, opener=_open_no_link) as file:
            os.fsync(file.fileno())


def _size(path: Path) -> int:
    try:
        status = path.lstat()
    except OSError:  # not there, and no folder that it could be in
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else 0


def _open_no_link(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
