"""A packed run or sweep (`experiments.packing`) as a directory again. The archive may come from anybody.

It is unpacked beside its place and moved there when it is whole. Only plain files and folders are taken, all
below one name; an archive that was cut off is noticed by its count of members, and none fills the disk.
"""

import contextlib
import json
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Final

import zstandard

from experiments.left_out import left_out
from experiments.packing import COUNT, ENDING, RUN, SWEEP
from experiments.rundir import read_json
from topologies.errors import InputError

WINDOW_BYTES_MAX: Final = 128 << 20  # `zstd --long` needs so much, and nothing needs more
JSON_BYTES_MAX: Final = 256 << 20
FREE_BYTES: Final = 256 << 20  # that stay free on the disk
READ_BYTES: Final = 1 << 20
MEMBERS_MAX: Final = 1_000_000


def is_archive(path: Path) -> bool:
    """Whether this is a file that looks like a packed run."""
    return path.name.endswith(ENDING) and path.is_file()


def unpacked(archive: Path, into: Path) -> tuple[Path, bool]:
    """The directory of the packed run or sweep below `into`, and whether it was unpacked just now.

    If it is there already, with at least as much in it, nothing is done. Raises InputError if the archive is
    damaged or none of ours, if its place is taken by something else, or if the disk is too small.
    """
    try:
        name, content = _beginning(archive)
        place = into / name
        if place.exists():
            _check_same(archive, place, content)
            return place, False
        into.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".unpacking-", dir=into) as folder:
            _extract(archive, Path(folder))
            (Path(folder) / name).rename(place)
    except (tarfile.TarError, zstandard.ZstdError, EOFError) as error:
        raise _bad(archive, f"is damaged, or no packed run: {error}") from None
    except OSError as error:
        raise _bad(archive, f"cannot be unpacked below {into}: {error}") from None
    return place, True


def _beginning(archive: Path) -> tuple[str, dict[str, Any]]:
    """The name of the directory in it, and the content of the file that says what it is."""
    with _opened(archive) as (tar, _):
        first = tar.next()
        parts = Path(first.name).parts if first is not None else ()
        if first is None or len(parts) != 2 or parts[1] not in {RUN, SWEEP} or not first.isreg():
            raise _bad(archive, "is no packed run: `cutset export RUN` makes one")
        _check_name(archive, first)
        stream = tar.extractfile(first)
        if stream is None or first.size > JSON_BYTES_MAX:
            raise _bad(archive, f"is no packed run: its {parts[1]} is too large")
        try:
            content = json.loads(stream.read())
        except ValueError as error:
            raise _bad(archive, f"is no packed run: its {parts[1]} is no JSON: {error}") from None
    return parts[0], content if isinstance(content, dict) else {}


def _check_same(archive: Path, place: Path, content: dict[str, Any]) -> None:
    kind = SWEEP if (place / SWEEP).is_file() else RUN
    there = read_json(place / kind)
    keys = ("run", "experiment", "seed", "commit")
    if any(there.get(key) != content.get(key) for key in keys):
        raise _bad(archive, f"{place} is there already, and is another one: move it away")
    if not set(left_out(there)) <= set(left_out(content)):
        gone = ", ".join(sorted(set(left_out(there)) - set(left_out(content))))
        raise _bad(archive, f"{place} is there already, but without its {gone}: remove it, or move it away")


def _extract(archive: Path, folder: Path) -> None:
    found, name = 0, ""
    with _opened(archive) as (tar, rest):
        for member in tar:
            _check_name(archive, member)
            name = name or Path(member.name).parts[0]
            if Path(member.name).parts[0] != name or not (member.isreg() or member.isdir()):
                raise _bad(archive, f"holds {member.name}, which no packed run does")
            if member.size > shutil.disk_usage(folder).free - FREE_BYTES:
                raise _bad(archive, f"does not fit on the disk: {member.name} has {member.size >> 20} MiB")
            tar.extract(member, folder, filter="data")
            found += member.isreg()
            if found > MEMBERS_MAX:
                raise _bad(archive, f"holds more than {MEMBERS_MAX} files")
        wanted = tar.pax_headers.get(COUNT)
        while rest.read(READ_BYTES):
            pass  # the checksum of all stands at the end
    if wanted is not None and str(found) != wanted:
        raise _bad(archive, f"is cut off: {found} of its {wanted} files are there")


def _check_name(archive: Path, member: tarfile.TarInfo) -> None:
    path = Path(member.name)
    if path.is_absolute() or ".." in path.parts or not path.parts or path.parts[0].startswith("."):
        raise _bad(archive, f"holds {member.name!r}, which would go elsewhere")


@contextlib.contextmanager
def _opened(archive: Path) -> Iterator[tuple[tarfile.TarFile, IO[bytes]]]:
    """The archive, and the bytes that it is read from."""
    decompressor = zstandard.ZstdDecompressor(max_window_size=WINDOW_BYTES_MAX)
    with (
        archive.open("rb") as stream,
        decompressor.stream_reader(stream) as plain,
        tarfile.open(fileobj=plain, mode="r|") as tar,
    ):
        yield tar, plain


def _bad(archive: Path, problem: str) -> InputError:
    return InputError(str(archive), None, "", problem)
