"""Regular files of an image. Opening another kind could hang (a pipe) or leave the image (a link)."""

import errno
import os
import stat
from pathlib import Path

SIZE_BYTES_MAX = 16 << 20
"""The largest file that is read as text; dpkg's status has some MB."""


def regular_text(path: str | Path) -> str:
    """Return the text of a regular file. Raises OSError, also if it is another kind of file, or too large."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_size > SIZE_BYTES_MAX:
            raise OSError(errno.EINVAL, "not a regular file of at most 16 MiB", str(path))
        return file.read(SIZE_BYTES_MAX).decode(errors="replace")
