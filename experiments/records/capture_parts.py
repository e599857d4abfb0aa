"""A capture in parts of about one second, as a watched run writes it, and joining the parts into one file.

The parts of `captures/x.pcap` lie in `captures/x.pcap.parts/`. Each is a complete classic pcap file, named by
the second in which it was opened, so names ascend. All parts but the last are closed: tcpdump closes a part
before it opens the next. Joining writes the first part and the records of the others to a file beside the
capture's place, renames that file, then removes the parts. After a crash either all parts or the whole
capture exist, and joining again completes the work.

The writer of the parts holds a lock on the folder of captures. Joining does not wait for that lock: it raises
an error while the parts are still being written.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from experiments.files.locks import LockHeldError, folder_lock
from topologies.errors import InputError

SUFFIX = ".parts"
NAME_PATTERN = "%s.pcap"
"""strftime(3), for tcpdump -G: seconds since 1970."""
ROTATION_S = 1
FILE_HEADER_BYTES = 24
_COPY_BYTES = 64 << 20


def folder_of(capture: Path) -> Path:
    """Return the folder that holds the parts of a capture."""
    return capture.with_name(capture.name + SUFFIX)


def capture_of(folder: Path) -> Path:
    """Return the capture whose parts this folder holds."""
    return folder.with_name(folder.name.removesuffix(SUFFIX))


def folders(captures: Path) -> list[Path]:
    """Return the folders of parts below a run's folder of captures, by name."""
    return sorted(path for path in captures.glob("*" + SUFFIX) if path.is_dir() and not path.is_symlink())


def parts(folder: Path) -> list[Path]:
    """Return all parts in the order in which they were written; [] if the folder does not exist."""
    found = [path for path in folder.glob("*.pcap") if path.stem.isdecimal()]
    return sorted(found, key=number)


def number(part: Path) -> int:
    """Return a part's number, which is greater than that of any earlier part."""
    return int(part.stem)


@contextmanager
def parts_lock(captures: Path) -> Iterator[None]:
    """Hold the lock on a run's folder of captures while parts are written below it or joined.

    Raises InputError if another process holds it.
    """
    with ExitStack() as stack:
        try:
            stack.enter_context(folder_lock(captures, wait=False, needed=False))
        except LockHeldError:
            raise InputError(
                str(captures), None, "", "is still being written: wait until the run has ended"
            ) from None
        yield


def join_all(captures: Path) -> int:
    """Join the parts of every capture of a run and return the number of captures joined.

    Raises InputError if they are still being written, or cannot be joined.
    """
    found = folders(captures)
    if not found:
        return 0
    with parts_lock(captures):
        for folder in found:
            try:
                join(folder)
            except OSError as error:
                problem = f"cannot be joined: {error.strerror}"
                raise InputError(str(folder), None, "", problem) from error
    return len(found)


def join(folder: Path) -> None:
    """Join the parts in a folder into one capture and remove them. Raises InputError, OSError."""
    capture = capture_of(folder)
    if not capture.exists():
        joining = capture.with_name(capture.name + ".joining")
        joining.unlink(missing_ok=True)  # left by a crash, or a symbolic link to another place
        with joining.open("xb") as whole:
            begun = b""
            for part in parts(folder):
                begun = _append(whole.fileno(), part, begun)
        joining.replace(capture)
    shutil.rmtree(folder)


def _append(whole: int, part: Path, begun: bytes) -> bytes:
    """Append a part, with its file header if it is the first, and return the header.

    A part shorter than a header (empty, or tcpdump died early) holds no packets and is skipped.
    """
    with part.open("rb") as source:
        header = source.read(FILE_HEADER_BYTES)
        if len(header) < FILE_HEADER_BYTES:
            return begun
        if begun and header != begun:
            raise InputError(str(part), None, "", "has another file header than the parts before it")
        start = FILE_HEADER_BYTES if begun else 0
        while copied := os.sendfile(whole, source.fileno(), start, _COPY_BYTES):
            start += copied
    return header
