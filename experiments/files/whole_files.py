"""Files that stand whole or not at all: written beside their place, and renamed (rename(2)).

Whatever ends the writer, at any moment, a reader sees the old content or the new, never a part. What a killed
writer leaves beside it ends with `BEGUN`, and begins with a dot, so that readers of whole folders pass it by.
"""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

BEGUN: Final = ".tmp"
_NO_FSYNC: Final = frozenset({errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS})


@contextmanager
def replacing(path: Path, *, sync: bool = True) -> Iterator[BinaryIO]:
    """A stream that becomes the file at `path` at the end of the block, unless the block raises.

    Processes may replace the same file at once: it is one's, or another's. sync: whether it also has to
    outlive a power cut, which what can be made again need not. Raises OSError.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}{BEGUN}")
    temporary.unlink(missing_ok=True)  # what a crash left, or a link that leads elsewhere
    try:
        with temporary.open("xb") as stream:
            yield stream
            stream.flush()
            if sync:
                os.fsync(stream.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)  # nothing, if all went well
    if sync:
        sync_folder(path.parent)


def write_whole(path: Path, text: str, *, sync: bool = True) -> None:
    """Write text as UTF-8; see `replacing`. Raises OSError."""
    with replacing(path, sync=sync) as stream:
        stream.write(text.encode())


def remove(path: Path) -> None:
    """Remove a file, a link, or a folder with all that is in it, if it is there. Raises OSError."""
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
    else:
        shutil.rmtree(path)


def sync_folder(folder: Path) -> None:
    """Put the names in a folder on the disk. Raises OSError.

    Where the file system has no fsync(2) for folders it keeps names in its own time: what is lost in a power
    cut then is the last change, and a file is still whole.
    """
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in _NO_FSYNC:
            raise
    finally:
        os.close(handle)
