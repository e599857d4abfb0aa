"""Packed runs that are elsewhere, named by a URL: in S3, on HDFS, in Google's or Microsoft's storage.

Arrow's file systems read and write them; how each finds its credentials and where it is stands there (for S3
AWS_ACCESS_KEY_ID and AWS_ENDPOINT_URL, or `?endpoint_override=` in the URL). A run that was brought here
before is not brought again: the beginning of its archive says which it is.
"""

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from experiments.scratch import scratch
from experiments.unpacking import FREE_SHARE, here_already, unpacked
from topologies.errors import InputError

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

BEGINNING_BYTES = 1 << 20
"""In which an archive says which run it has."""
COPIED_BYTES = 8 << 20
MOVED_BYTES_MAX = 5 << 30
"""CopyObject of S3, by which what was sent whole gets its name."""
BRINGING = ".bringing-"
SENDING = ".part"
"""How the name ends of what is not whole yet."""
_URL = re.compile(r"[a-z][a-z0-9+.-]+://")
_SAME = {"s3a": "s3", "s3n": "s3"}
"""Hadoop's names for what Arrow calls otherwise."""


def is_elsewhere(name: str) -> bool:
    """Whether this is a URL, and no path."""
    return _URL.match(name) is not None


def name_of(url: str) -> str:
    """The last part of its path."""
    return PurePosixPath(url.partition("://")[2].partition("?")[0]).name


def bring(url: str, into: Path) -> tuple[Path, bool]:
    """The directory, below `into`, of the packed run at this URL, and whether it was brought just now.

    Raises InputError if there is none, if it cannot be read, or as `unpacking.unpacked`.
    """
    with _told(url):
        there, path, size = _found(url)
        into.mkdir(parents=True, exist_ok=True)
        with scratch(BRINGING, into) as folder, _named(url):
            if size > BEGINNING_BYTES:
                beginning = folder / "beginning"
                _copy(there, path, beginning, BEGINNING_BYTES)
                if (found := here_already(beginning, into)) is not None:
                    return found, False
            return unpacked(_fetched(url, folder), into)


@contextmanager
def fetched(url: str, near: Path) -> Iterator[Path]:
    """The archive at this URL as a file in a folder below `near`, for the length of a block.

    Raises InputError if there is none, or if it cannot be read or does not fit; what is raised of the file
    inside is told of the URL.
    """
    with scratch(BRINGING, near) as folder:
        with _told(url):
            archive = _fetched(url, folder)
        with _named(url):
            yield archive


def send(archive: Path, url: str) -> None:
    """Put an archive at this URL, whole or not at all. Raises InputError if that cannot be."""
    with _told(url):
        there, path = _place(url)
        if there.type_name == "s3" and archive.stat().st_size > MOVED_BYTES_MAX:
            problem = (
                f"S3 moves no more than {MOVED_BYTES_MAX / 1e9:.1f} GB at once; --no-captures is smaller"
            )
            raise InputError(url, None, "", problem)
        sending = f"{path}{SENDING}"
        try:
            with archive.open("rb") as source, there.open_output_stream(sending, compression=None) as stream:
                shutil.copyfileobj(source, stream, COPIED_BYTES)
            there.move(sending, path)
        except BaseException:
            with suppress(OSError):
                there.delete_file(sending)
            raise


def is_there(url: str) -> bool:
    """Whether anything is. Raises InputError if it cannot be asked."""
    with _told(url):
        there, path = _place(url)
        return bool(there.get_file_info(path).type.value)


def _place(url: str) -> tuple["FileSystem", str]:
    from pyarrow.fs import FileSystem  # noqa: PLC0415  (takes long to import, and few need it)

    scheme, _, rest = url.partition("://")
    place: tuple[FileSystem, str] = FileSystem.from_uri(f"{_SAME.get(scheme, scheme)}://{rest}")
    return place


def _found(url: str) -> tuple["FileSystem", str, int]:
    """Where an archive is, and its bytes. Raises InputError if there is none."""
    there, path = _place(url)
    size = there.get_file_info(path).size
    if size is None:
        raise InputError(url, None, "", "there is no such packed run")
    return there, path, size


def _fetched(url: str, folder: Path) -> Path:
    """The whole archive as a file in a folder. Raises InputError if it does not fit."""
    there, path, size = _found(url)
    free = shutil.disk_usage(folder).free
    if size > free * FREE_SHARE:
        problem = f"has {size / 1e9:.1f} GB, and only {free / 1e9:.1f} GB are free in {folder.parent}"
        raise InputError(url, None, "", problem)
    archive = folder / name_of(url)
    _copy(there, path, archive, size)
    return archive


def _copy(there: "FileSystem", path: str, archive: Path, size: int) -> None:
    """Copy a file's beginning, as it is: Arrow would unpack what ends with .zst."""
    with there.open_input_stream(path, compression=None) as source, archive.open("wb") as stream:
        while (left := size - stream.tell()) and (some := source.read(min(left, COPIED_BYTES))):
            stream.write(some)


@contextmanager
def _named(url: str) -> Iterator[None]:
    """What is wrong with a file that was fetched is wrong with what stands at its URL."""
    try:
        yield
    except InputError as error:
        if BRINGING not in error.file:
            raise
        raise InputError(url, error.line, error.field, error.problem) from error


@contextmanager
def _told(url: str) -> Iterator[None]:
    """What Arrow says is wrong, in a line. It raises ValueError for what is no URL of its."""
    try:
        yield
    except (OSError, ValueError, NotImplementedError) as error:
        first: Any = str(error).strip().partition("\n")[0]
        raise InputError(url, None, "", f"cannot be read or written there: {first}") from error
