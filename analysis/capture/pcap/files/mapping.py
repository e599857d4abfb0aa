"""Memory-mapped files, whose pages are released after use."""

import mmap
from pathlib import Path

import numpy as np

from analysis.arrays import Bytes
from analysis.errors import CaptureError


def map_bytes(path: Path) -> Bytes:
    """Map a file into memory, read-only. Raises CaptureError if it cannot be read or is empty.

    The mapping lasts as long as the array. The file must not shrink meanwhile.
    """
    if path.exists() and not path.is_file():  # opening a named pipe would block
        raise CaptureError(f"{path.name}: is not a regular file")
    try:
        with path.open("rb") as file:
            return np.frombuffer(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ), np.uint8)
    except ValueError as error:
        raise CaptureError(f"{path.name}: the file is empty") from error
    except OSError as error:
        raise CaptureError(f"{path.name}: cannot be read: {error.strerror}") from error


def release(data: Bytes) -> None:
    """Release all pages of a file mapped by `map_bytes`; access maps them again (madvise(2)).

    Has no effect on an array that is not a mapping.
    """
    owner = getattr(data.base, "obj", None)
    if isinstance(owner, mmap.mmap):
        owner.madvise(mmap.MADV_DONTNEED)
