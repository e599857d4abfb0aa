"""A capture in parts of about a second, as a run that is watched writes it; and how parts become the one file
that any other run has.

The parts of `captures/x.pcap` stand in `captures/x.pcap.parts/`, each a whole classic pcap file that is named
by the second in which it was begun, so that names ascend. All but the last are closed: tcpdump closes a part
before it opens the next. Joining writes the first part and the records of the others beside the capture's
place, moves that file there, and only then takes the parts away. So a crash at any moment leaves either all
parts or the whole capture, and joining again does what is left.

Who writes parts holds the folder of captures, and who joins them waits for nobody: while they are
still written, joining is an error.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from experiments.files.locks import HeldError, folder_lock
from topologies.errors import InputError

SUFFIX = ".parts"
NAME_PATTERN = "%s.pcap"
"""strftime(3), for tcpdump -G: seconds since 1970."""
ROTATION_S = 1
FILE_HEADER_BYTES = 24
_COPY_BYTES = 64 << 20


def folder_of(capture: Path) -> Path:
    """Where the parts of a capture stand."""
    return capture.with_name(capture.name + SUFFIX)


def capture_of(folder: Path) -> Path:
    """The capture whose parts stand in this folder."""
    return folder.with_name(folder.name.removesuffix(SUFFIX))


def folders(captures: Path) -> list[Path]:
    """The folders of parts below a run's folder of captures, by name."""
    return sorted(path for path in captures.glob("*" + SUFFIX) if path.is_dir() and not path.is_symlink())


def parts(folder: Path) -> list[Path]:
    """All parts in the order in which they were written; none if there is no such folder."""
    found = [path for path in folder.glob("*.pcap") if path.stem.isdecimal()]
    return sorted(found, key=number)


def number(part: Path) -> int:
    """A part's number: greater than that of any part before it."""
    return int(part.stem)


@contextmanager
def held(captures: Path) -> Iterator[None]:
    """Hold a run's folder of captures, while parts are written below it or joined.

    Raises InputError if another process holds it.
    """
    with ExitStack() as stack:
        try:
            stack.enter_context(folder_lock(captures, wait=False, needed=False))
        except HeldError:
            raise InputError(
                str(captures), None, "", "is still being written by a run that goes on"
            ) from None
        yield


def join_all(captures: Path) -> int:
    """Join the parts of every capture of a run; returns of how many. Does nothing where all are joined.

    Raises InputError if they are still being written, or cannot be joined.
    """
    found = folders(captures)
    if not found:
        return 0
    with held(captures):
        for folder in found:
            try:
                join(folder)
            except OSError as error:
                problem = f"cannot be joined: {error.strerror}"
                raise InputError(str(folder), None, "", problem) from error
    return len(found)


def join(folder: Path) -> None:
    """Make one capture of the parts in a folder, and take them away. Raises InputError, OSError."""
    capture = capture_of(folder)
    if not capture.exists():
        joining = capture.with_name(capture.name + ".joining")
        joining.unlink(missing_ok=True)  # what a crash left, or a link that leads elsewhere
        with joining.open("xb") as whole:
            begun = b""
            for part in parts(folder):
                begun = _append(whole.fileno(), part, begun)
        joining.replace(capture)
    shutil.rmtree(folder)


def _append(whole: int, part: Path, begun: bytes) -> bytes:
    """Append a part: with its file header if nothing was begun before, else its records alone.

    A part of less than a header (begun as tcpdump died, or empty) holds nothing. Returns the header.
    """
    with part.open("rb") as source:
        header = source.read(FILE_HEADER_BYTES)
        if len(header) < FILE_HEADER_BYTES:
            return begun
        if begun and header != begun:
            raise InputError(str(part), None, "", "has another file header than the parts before it")
        _copy(source.fileno(), whole, FILE_HEADER_BYTES if begun else 0)
    return header


def _copy(source: int, target: int, start: int) -> None:
    """Copy from an offset to the end, to the end of the target: in the kernel where it can."""
    size = os.fstat(source).st_size
    os.lseek(source, start, os.SEEK_SET)
    os.lseek(target, 0, os.SEEK_END)
    with suppress(OSError):  # between some file systems it cannot: the rest is copied by hand
        while os.lseek(source, 0, os.SEEK_CUR) < size and os.copy_file_range(source, target, _COPY_BYTES):
            pass
    while data := os.read(source, _COPY_BYTES):
        view = memoryview(data)
        while view:
            view = view[os.write(target, view) :]
