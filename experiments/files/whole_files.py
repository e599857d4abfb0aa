"""Atomic file replacement: files are written beside their place and renamed (rename(2)).

Whenever the writer ends, a reader sees either the old content or the new. The new file has no name until it
is complete (O_TMPFILE, open(2)), so a killed writer leaves nothing. Some file systems (NFS, FUSE) have only
named files: the name then ends with `BEGUN` and begins with a dot, so that readers of folders ignore it.
"""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

BEGUN: Final = ".tmp"
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_NO_TMPFILE: Final = frozenset({errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOSYS})
_NO_FSYNC: Final = frozenset({errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS})


@contextmanager
def replacing(path: Path, *, sync: bool = True) -> Iterator[BinaryIO]:
    """Yield a stream that becomes the file at `path` at the end of the block, unless the block raises.

    Several processes may replace the same file at the same time: one of them wins. sync: whether the file
    must survive a power cut; files that can be rebuilt need not. Raises OSError.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}{BEGUN}")
    temporary.unlink(missing_ok=True)  # left by a crash, or a symbolic link to another place
    try:
        with _begun(temporary) as stream:
            yield stream
            stream.flush()
            if sync:
                os.fsync(stream.fileno())
            if isinstance(handle := stream.name, int):  # with src_dir_fd, Python follows the link
                os.link(f"/proc/self/fd/{handle}", temporary, src_dir_fd=handle)
        temporary.replace(path)
    except OSError as error:
        if error.errno in _FULL and error.filename is None:
            error.filename = str(path)  # which write(2) does not say
        raise
    finally:
        temporary.unlink(missing_ok=True)  # does nothing after a successful rename
    if sync:
        sync_folder(path.parent)


def _begun(temporary: Path) -> BinaryIO:
    """Open a file without a name, or with the name `temporary`."""
    try:
        return os.fdopen(os.open(temporary.parent, os.O_TMPFILE | os.O_WRONLY, 0o666), "wb")
    except OSError as error:
        if error.errno not in _NO_TMPFILE:
            raise
        return temporary.open("xb")


def write_whole(path: Path, text: str, *, sync: bool = True) -> None:
    """Write text as UTF-8, see `replacing`. Raises OSError."""
    with replacing(path, sync=sync) as stream:
        stream.write(text.encode())


def remove(path: Path) -> None:
    """Remove a file, a symbolic link, or a folder with its content, if it exists. Raises OSError."""
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
    else:
        shutil.rmtree(path)


def sync_folder(folder: Path) -> None:
    """Write a folder's entries to the disk. Raises OSError.

    A file system without fsync(2) for folders writes them later: a power cut then loses the last change, and
    files stay intact.
    """
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in _NO_FSYNC:
            raise
    finally:
        os.close(handle)
