"""Files as bytes in memory: mapped, never read whole, and let go of when they were looked at."""

import mmap
from pathlib import Path

import numpy as np

from analysis.capture.pcap.files.format import Bytes
from analysis.errors import CaptureError


def map_bytes(path: Path) -> Bytes:
    """Map a file into memory, read-only. Raises CaptureError if it cannot be read or is empty.

    The mapping lasts as long as the array. The file must not shrink meanwhile.
    """
    if path.exists() and not path.is_file():  # a pipe would keep whoever opens it waiting
        raise CaptureError(f"{path.name}: is no file")
    try:
        with path.open("rb") as file:
            return np.frombuffer(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ), np.uint8)
    except ValueError as error:
        raise CaptureError(f"{path.name}: the file is empty") from error
    except OSError as error:
        raise CaptureError(f"{path.name}: cannot be read: {error.strerror}") from error


def release(data: Bytes) -> None:
    """Let go of all pages of a file that `map_bytes` mapped; they are mapped again when touched (madvise(2)).

    Of an array that is no mapping, nothing.
    """
    owner = getattr(data.base, "obj", None)
    if isinstance(owner, mmap.mmap):
        owner.madvise(mmap.MADV_DONTNEED)
