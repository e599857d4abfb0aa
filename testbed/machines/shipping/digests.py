"""SHA-256 of files, as both sides compute it."""

import hashlib
from collections.abc import Callable
from io import FileIO

TAIL_BYTES = 64 << 10
STEP_BYTES = 1 << 20
BUSY_EVERY_BYTES = 16 << 20
"""Little enough for a slow disk to read while a sender may be idle."""


def tail_digest(file: FileIO, offset: int) -> str:
    """The SHA-256 of the last TAIL_BYTES before `offset`, or of everything before it; hexadecimal."""
    start = max(0, offset - TAIL_BYTES)
    file.seek(start)
    return hashlib.sha256(file.read(offset - start)).hexdigest()


def file_digest(file: FileIO, size: int, busy: Callable[[], object] = lambda: None) -> bytes | None:
    """The SHA-256 of the first `size` bytes, None if there are fewer. busy: called every BUSY_EVERY_BYTES."""
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
