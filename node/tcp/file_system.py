"""The few operations on files that a log needs, each of which can fail or be the last before a crash."""

import os
from pathlib import Path

MODE = 0o644


class FileSystem:
    """The operating system's."""

    def open_write(self, path: Path, *, truncate: bool) -> int:
        """A descriptor for appending; the file is made if it is not there."""
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
        """Throw away what is behind that size."""
        os.ftruncate(descriptor, size_bytes)

    def sync(self, descriptor: int) -> None:
        """Have the file's content and size on disk."""
        os.fsync(descriptor)

    def sync_folder(self, folder: Path) -> None:
        """Have the folder's names on disk."""
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def rename(self, old: Path, new: Path) -> None:
        """Put a file in another's place, at once."""
        old.replace(new)

    def unlink(self, path: Path) -> None:
        """Remove a file that may be gone already."""
        path.unlink(missing_ok=True)

    def make_folder(self, folder: Path) -> None:
        """Make a folder and those above it, all on disk."""
        if folder.is_dir():
            return
        self.make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        self.sync_folder(folder.parent)
