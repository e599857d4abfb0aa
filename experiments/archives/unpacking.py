"""Unpacks a packed run or sweep (`experiments.archives.packing`) into a directory. The archive is not
trusted.

It is unpacked beside its final place and moved there when complete. Only plain files and folders are
accepted, all below one name that has the form of runs; the member count reveals a truncated archive. An
archive may fill at most half of the free disk space, and no more than a fixed multiple of its own size.
"""

import contextlib
import json
import shlex
import shutil
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, NoReturn

import zstandard

from experiments.archives.packing import CAPTURES, COUNT, RUN, SWEEP, left_out
from experiments.files.scratch import scratch
from experiments.records.json_files import read_json
from experiments.records.key_log import PRIVATE
from experiments.records.rundir import INDEX, is_key_log, is_run_name
from topologies.errors import InputError

WINDOW_BYTES_MAX: Final = 128 << 20  # `zstd --long` needs this much
JSON_BYTES_MAX: Final = 16 << 20
FREE_BYTES: Final = 256 << 20  # reserve on the disk
FREE_SHARE: Final = 0.5  # of the free space, for one archive
GROWTH_MAX: Final = 1_000  # times its size; captures with constant payload reach several hundred
SIZE_ALWAYS_ALLOWED: Final = 16 << 20
MEMBER_BYTES: Final = 4_096  # space of the smallest file or folder
COPIED_BYTES: Final = 1 << 20
MEMBERS_MAX: Final = 200_000  # tarfile keeps them all in memory
HEADER_BYTES_MAX: Final = 64 << 10
AFTER_END_BYTES_MAX: Final = 1 << 20  # tar pads its last record
DEPTH_MAX: Final = 12  # nesting of folders; a sweep has half of it
_EXTENDED: Final = frozenset({tarfile.XHDTYPE, tarfile.XGLTYPE})
_KINDS: Final = frozenset({tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.DIRTYPE, *_EXTENDED})
_ENTRIES: Final = frozenset({"path", "size", "mtime", "atime", "ctime", COUNT})
"""Allowed fields of extended headers."""


def unpacked(archive: Path, into: Path) -> tuple[Path, bool]:
    """Unpack a run or sweep below `into`; return its directory, and whether it is new.

    If the directory exists with at least the same parts, do nothing. Raises InputError if the archive is
    damaged or not from Cutset, if its place is taken, or if the disk is too small.
    """
    try:
        name, content = _beginning(archive)
        place = into / name
        if place.exists():
            check_same(archive, place, content)
            return place, False
        into.mkdir(parents=True, exist_ok=True)
        with scratch(".unpacking-", into) as folder:
            _extract(archive, folder)
            (folder / name).rename(place)
    except (tarfile.TarError, zstandard.ZstdError, EOFError, ValueError, RecursionError) as error:
        raise _bad(archive, f"is damaged, or no packed run: {error}") from None
    except OSError as error:
        raise _bad(archive, f"cannot be unpacked below {into}: {error}") from None
    return place, True


def _beginning(archive: Path) -> tuple[str, dict[str, Any]]:
    """Return the name of the directory in the archive, and the content of its record."""
    with _opened(archive) as (tar, _):
        first = tar.next()
        parts = _parts(archive, first) if first is not None else ()
        if first is None or len(parts) != 2 or parts[1] not in {RUN, SWEEP} or first.isdir():
            raise _bad(archive, "is not a packed run: `cutset export RUN` makes one")
        if first.size > JSON_BYTES_MAX:
            raise _bad(archive, f"is not a packed run: its {parts[1]} is too large")
        text = _content(tar, first).read()
        if len(text) < first.size:
            raise EOFError(f"it ends within its {parts[1]}")
        try:
            content = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise _bad(archive, f"is not a packed run: its {parts[1]} is not JSON: {error}") from None
    return parts[0], content if isinstance(content, dict) else {}


def check_same(archive: Path | str, place: Path, content: dict[str, Any]) -> None:
    """Check that an existing directory is the same run or sweep and has at least the same parts.

    archive: named in errors. content: the other one's run.json or sweep.json. Raises InputError.
    """
    kind = SWEEP if (place / SWEEP).is_file() else RUN
    there = read_json(place / kind)
    keys = ("run", "experiment", "seed", "commit")
    if any(there.get(key) != content.get(key) for key in keys):
        raise _bad(archive, f"{place} already exists and is a different run: move it away")
    if not set(left_out(there)) <= set(left_out(content)):
        gone = ", ".join(sorted(set(left_out(there)) - set(left_out(content))))
        raise _bad(archive, f"{place} already exists, but lacks its {gone}: remove it, or move it away")


def _extract(archive: Path, folder: Path) -> None:
    """Extract all members as new files and folders.

    Owner, times and permissions are not restored; key logs become readable only for their new owner.
    """
    found, files, size, name = 0, 0, 0, ""
    allowed = _allowed(archive, folder)
    with _opened(archive) as (tar, rest):
        while (member := tar.next()) is not None:
            found += 1
            parts = _parts(archive, member)
            name = name or parts[0]
            if parts[0] != name:
                raise _bad(archive, f"holds {member.name!r}, which no packed run contains")
            if found > MEMBERS_MAX:
                raise _bad(archive, f"holds more than {MEMBERS_MAX} files and folders")
            size += max(member.size, MEMBER_BYTES)
            if size > allowed.bytes:
                by_hand = f"if you trust it, `tar --zstd -xf {shlex.quote(str(archive))}` unpacks it by hand"
                raise _bad(
                    archive, f"unpacks to more than {allowed.bytes >> 20} MiB, {allowed.why}: {by_hand}"
                )
            if member.size > shutil.disk_usage(folder).free - FREE_BYTES:
                raise _bad(archive, f"does not fit on the disk: {member.name} has {member.size >> 20} MiB")
            if parts[-2:-1] != (CAPTURES,) or not parts[-1].endswith(INDEX):  # rebuilt instead of trusted
                _make(tar, member, folder.joinpath(*parts))
            files += member.isreg()
        if (
            len(rest.read(AFTER_END_BYTES_MAX)) == AFTER_END_BYTES_MAX
        ):  # reading to the end verifies the checksum
            raise _bad(archive, "is damaged: data follows its end")
        wanted = tar.pax_headers.get(COUNT)
    if str(files) != wanted:
        raise _bad(archive, f"is truncated: it has {files} of its {wanted} files")


@dataclass(frozen=True, slots=True)
class _Allowed:
    bytes: int
    why: str


def _allowed(archive: Path, folder: Path) -> _Allowed:
    """Return the limit of the unpacked size."""
    growth = max(archive.stat().st_size * GROWTH_MAX, SIZE_ALWAYS_ALLOWED)
    share = int(shutil.disk_usage(folder).free * FREE_SHARE)
    if growth <= share:
        return _Allowed(growth, f"{GROWTH_MAX} times its size, which no run needs")
    return _Allowed(share, f"half of what is free in {folder.parent}")


def _make(tar: tarfile.TarFile, member: tarfile.TarInfo, place: Path) -> None:
    if member.isdir():
        place.mkdir(parents=True, exist_ok=True)
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.open("xb") as file:
        if is_key_log(place.name):
            place.chmod(PRIVATE)
        shutil.copyfileobj(_content(tar, member), file, COPIED_BYTES)


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    content = tar.extractfile(member)
    assert content is not None  # it is a file
    return content


def _parts(archive: Path, member: tarfile.TarInfo) -> tuple[str, ...]:
    """Return the folders and name of a member, relative to the archive's top folder."""
    path = Path(member.name)
    parts = path.parts
    known = member.pax_headers.keys() <= _ENTRIES and member.size >= 0 and (member.isreg() or member.isdir())
    if not known or not member.name.isprintable() or len(parts) > DEPTH_MAX:
        raise _bad(archive, f"holds {member.name[:80]!r}, which no packed run contains")
    if path.is_absolute() or ".." in parts or not parts or not is_run_name(parts[0]):
        raise _bad(archive, f"holds {member.name!r}, which leads out of its folder")
    return parts


class _Header(tarfile.TarInfo):
    """A tar header that allows only files and folders, and nothing that tarfile reads into memory as a whole:
    no long extended headers, and no maps of sparse files.
    """

    def _proc_member(self, tar: tarfile.TarFile) -> tarfile.TarInfo:
        """Check each header before its content is read.

        tarfile has no public hook for this: newer versions do not even parse headers with `frombuf`.
        """
        if self.type not in _KINDS:
            raise tarfile.ReadError(f"it holds {self.name!r}, which is neither a file nor a folder")
        if self.type in _EXTENDED and self.size > HEADER_BYTES_MAX:
            raise tarfile.ReadError(f"it has a header of {self.size >> 10} KiB")
        made: tarfile.TarInfo = super()._proc_member(tar)  # type: ignore[misc]
        return made

    def _proc_gnusparse_10(self, *_: object) -> NoReturn:
        raise tarfile.ReadError("it holds a sparse file, which no packed run contains")


@contextlib.contextmanager
def _opened(archive: Path) -> Iterator[tuple[tarfile.TarFile, IO[bytes]]]:
    """Open the archive; yield it and the decompressed stream from which it is read."""
    decompressor = zstandard.ZstdDecompressor(max_window_size=WINDOW_BYTES_MAX)
    with (
        archive.open("rb") as stream,
        decompressor.stream_reader(stream) as plain,
        tarfile.open(fileobj=plain, mode="r|", tarinfo=_Header) as tar,
    ):
        yield tar, plain


def _bad(archive: Path | str, problem: str) -> InputError:
    return InputError(str(archive), None, "", problem)
