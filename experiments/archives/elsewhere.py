"""Runs at a URL (`experiments.archives.stores`), packed or as directories.

A run that was downloaded before is not downloaded again: the beginning of its archive, or its run.json,
identifies it.
"""

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from experiments.archives.packing import ENDING, RUN, SWEEP
from experiments.archives.stores import COPIED_BYTES, copy, store_and_path, store_errors, url_name
from experiments.archives.unpacking import (
    DEPTH_MAX,
    FREE_SHARE,
    JSON_BYTES_MAX,
    MEMBERS_MAX,
    already_unpacked,
    check_same,
    unpacked,
)
from experiments.campaigns.sweepdir import SweepDirectory
from experiments.files.scratch import scratch
from experiments.records.json_files import read_json
from experiments.records.key_log import PRIVATE
from experiments.records.rundir import INDEX, RunDirectory, is_key_log, is_run_name
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
COPIES = 8
"""Files of a directory that are downloaded at the same time."""


def download_run(url: str, into: Path) -> tuple[Path, bool]:
    """Download the run or sweep at this URL; return its directory below `into`, and whether it is new.

    Raises InputError if there is none, if it cannot be read, or as `unpacking.unpacked`.
    """
    into.mkdir(parents=True, exist_ok=True)
    with store_errors(url), scratch(BRINGING, into) as folder, _named(url):
        return (_unpacked if url_name(url).endswith(ENDING) else _copied_directory)(url, folder, into)


def _unpacked(url: str, folder: Path, into: Path) -> tuple[Path, bool]:
    """Download and unpack a packed run."""
    store, path, size = _found(url)
    if size > BEGINNING_BYTES:
        beginning = folder / "beginning"
        copy(store, path, beginning, BEGINNING_BYTES)
        if (found := already_unpacked(beginning, into)) is not None:
            return found, False
    return unpacked(_fetched(url, folder), into)


def _copied_directory(url: str, folder: Path, into: Path) -> tuple[Path, bool]:
    """Download a run that is stored as a directory, file by file."""
    store, path = store_and_path(url)
    path, name = path.rstrip("/"), url_name(url)
    kind = next((kind for kind in (RUN, SWEEP) if store.get_file_info(f"{path}/{kind}").is_file), None)
    if kind is None or not is_run_name(name):
        raise InputError(url, None, "", f"is neither a run's directory nor a packed run (*{ENDING})")
    making = folder / name
    making.mkdir()
    size = store.get_file_info(f"{path}/{kind}").size
    if size > JSON_BYTES_MAX:
        raise InputError(url, None, "", f"is no run: its {kind} has {size:,} bytes")
    copy(store, f"{path}/{kind}", making / kind, size)
    if (into / name).exists():
        check_same(url, into / name, read_json(making / kind))
        return into / name, False
    _check_record(making, kind)
    files = _files(store, path, url)
    _check_room(url, sum(size for _, size in files), folder)
    for place in {making / file for file, _ in files}:
        place.parent.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(COPIES) as pool:
        jobs = [pool.submit(copy, store, f"{path}/{file}", making / file, size) for file, size in files]
        try:
            for job in jobs:
                job.result()
        finally:
            pool.shutdown(cancel_futures=True)
    for keys in (making / file for file, _ in files if is_key_log(PurePosixPath(file).name)):
        keys.chmod(PRIVATE)
    making.rename(into / name)
    return into / name, True


def _check_record(making: Path, kind: str) -> None:
    """Check a run's or a sweep's record. Raises InputError if it is invalid."""
    if kind == RUN:
        RunDirectory(making).read_run()
    else:
        SweepDirectory(making).read()


def _files(store: "FileSystem", path: str, url: str) -> list[tuple[str, int]]:
    """Return the files of a directory with their sizes, without indices of captures, which are rebuilt.

    Indices from elsewhere are not trusted. Raises InputError for files that no run has.
    """
    from pyarrow.fs import FileSelector  # noqa: PLC0415  (as in `stores`)

    found = [info for info in store.get_file_info(FileSelector(path, recursive=True)) if info.is_file]
    if len(found) > MEMBERS_MAX:
        raise InputError(url, None, "", f"holds more than {MEMBERS_MAX} files")
    files = [(info.path.partition(f"{path.strip('/')}/")[2], info.size) for info in found]
    for file, _ in files:
        parts = PurePosixPath(file).parts
        if not file.isprintable() or file.startswith("/") or ".." in parts or len(parts) >= DEPTH_MAX:
            raise InputError(url, None, "", f"holds {file[:80]!r}, which no run contains")
    return [(file, size) for file, size in files if not file.endswith(INDEX)]


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
