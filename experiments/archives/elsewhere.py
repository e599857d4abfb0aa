"""Packed runs at a URL (`experiments.archives.stores`).

A run that was downloaded before is not downloaded again: the beginning of its archive identifies it.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.archives.stores import COPIED_BYTES, copy, store_and_path, store_errors, url_name
from experiments.archives.unpacking import (
    FREE_SHARE,
    already_unpacked,
    unpacked,
)
from experiments.files.scratch import scratch
from topologies.errors import InputError

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

BEGINNING_BYTES = 1 << 20
"""Within this many bytes an archive identifies its run."""
MOVED_BYTES_MAX = 5 << 30
"""Limit of CopyObject in S3, which gives a completed upload its final name."""
BRINGING = ".bringing-"
SENDING = ".part"
"""Suffix of a file that is not complete yet."""


def download_run(url: str, into: Path) -> tuple[Path, bool]:
    """Download the run or sweep that is packed at this URL.

    Returns its directory below `into`, and whether it is new. Raises InputError if there is none, if it
    cannot be read, or as `unpacking.unpacked`.
    """
    into.mkdir(parents=True, exist_ok=True)
    with store_errors(url), scratch(BRINGING, into) as folder, _named(url):
        store, path, size = _found(url)
        if size > BEGINNING_BYTES:
            beginning = folder / "beginning"
            copy(store, path, beginning, BEGINNING_BYTES)
            if (found := already_unpacked(beginning, into)) is not None:
                return found, False
        return unpacked(_fetched(url, folder), into)


@contextmanager
def downloaded_archive(url: str, near: Path) -> Iterator[Path]:
    """Download the archive at this URL into a folder below `near`, and remove it when the block ends.

    Raises InputError if there is none, or if it cannot be read or does not fit; errors about the local copy
    name the URL.
    """
    with scratch(BRINGING, near) as folder:
        with store_errors(url):
            archive = _fetched(url, folder)
        with _named(url):
            yield archive


def upload_archive(archive: Path, url: str) -> None:
    """Upload an archive to this URL, completely or not at all. Raises InputError."""
    with store_errors(url):
        there, path = store_and_path(url)
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


def url_exists(url: str) -> bool:
    """Return whether anything exists at this URL. Raises InputError if the store cannot be queried."""
    with store_errors(url):
        there, path = store_and_path(url)
        return bool(there.get_file_info(path).type.value)


def _found(url: str) -> tuple["FileSystem", str, int]:
    """Return the store, path and size in bytes of an archive. Raises InputError if there is none."""
    there, path = store_and_path(url)
    size = there.get_file_info(path).size
    if size is None:
        raise InputError(url, None, "", "there is no such packed run")
    return there, path, size


def _fetched(url: str, folder: Path) -> Path:
    """Download an archive into a folder and return its path. Raises InputError if it does not fit."""
    there, path, size = _found(url)
    _check_room(url, size, folder)
    archive = folder / url_name(url)
    copy(there, path, archive, size)
    return archive


def _check_room(url: str, size: int, folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    if size > free * FREE_SHARE:
        problem = f"has {size / 1e9:.1f} GB, and only {free / 1e9:.1f} GB are free in {folder.parent}"
        raise InputError(url, None, "", problem)


@contextmanager
def _named(url: str) -> Iterator[None]:
    """Let errors about a downloaded file name its URL."""
    try:
        yield
    except InputError as error:
        if BRINGING not in error.file:
            raise
        raise InputError(url, error.line, error.field, error.problem) from error
