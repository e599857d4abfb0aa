"""Packs a run's or a sweep's directory into one file to share: a tar archive compressed with Zstandard.

`tar --zstd -xf` reads it too. The first members identify the run; the header holds the number of members, so
that a truncated archive is detected (`experiments.archives.unpacking`). The last members are each run's
claims, and the hashes of all files in the form of sha256sum(1). The archive omits files that can be rebuilt,
temporary files and, on request, captures or TLS keys; run.json then names them. Keys are never packed without
captures.

Parts that a run's directory lacks were removed to free space, or omitted when the run was packed. run.json
lists them under `left_out` with the reason, before anything is removed, so that a crash in between leaves no
gap.
"""

import hashlib
import io
import json
import os
import tarfile
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, Final

import zstandard

from experiments.files.whole_files import BEGUN, replacing
from experiments.records.json_files import read_json, read_text
from experiments.records.run_record import RunRecord
from experiments.records.rundir import INDEX, POINTS, UNFINISHED_SUFFIX, RunDirectory, is_key_log, is_run_name
from topologies.errors import InputError

ENDING: Final = ".tar.zst"
CLAIMS: Final = "claims.json"
SUMS: Final = "SHA256SUMS"
COUNT: Final = "CUTSET.members"  # in the archive's global header
RUN, SWEEP = "run.json", "sweep.json"
STAYED_BEHIND: Final = "left out when the run was packed"
_LEVEL: Final = 3
_MOMENTARY: Final = (UNFINISHED_SUFFIX, BEGUN)
CAPTURES: Final = "captures"
KEYS: Final = "keys"
"""Keys of TLS connections."""


@dataclass(frozen=True, slots=True)
class Packed:
    """The result of packing: number of files, their size in bytes, and the archive's. keys: whether it holds
    TLS keys.
    """

    files: int
    bytes: int
    archive_bytes: int
    keys: bool = False


ClaimsOf = Callable[[RunDirectory], Mapping[str, Any] | None]


def pack(
    directory: Path,
    archive: Path,
    *,
    captures: bool,
    keys: bool = True,
    claims_of: ClaimsOf = lambda run: None,
) -> Packed:
    """Write the archive of a run or a sweep; an existing one is replaced when the new one is complete.

    keys: include TLS keys, which decrypt captures. claims_of: returns the content of a run's claims.json, if
    it was analysed. Raises InputError if a file cannot be read or written, or changes meanwhile.
    """
    name = RunDirectory(directory).full_name
    if not is_run_name(name):
        raise InputError(str(directory), None, "", "does not have the name of a run: rename it back")
    try:
        stays = (*(() if captures else (CAPTURES,)), *(() if keys else (KEYS,)))
        files = sorted(_files(directory, stays), key=_order)
        size = sum(file.stat().st_size for file in files)
        made = dict(_claims(directory, files, claims_of))
        members = len(files) + len(made) + 1
        with replacing(archive) as stream:
            compressor = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True, threads=-1)
            with (
                compressor.stream_writer(stream, closefd=False) as packed,
                tarfile.open(
                    fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT, pax_headers={COUNT: str(members)}
                ) as tar,
            ):
                into = _Packing(tar, name)
                for file in files:
                    into.add_file(file, str(file.relative_to(directory)), stays)
                for path, content in made.items():
                    into.add(path, content)
                into.add_text(SUMS, "".join(f"{digest}  {path}\n" for path, digest in into.sums.items()))
    except OSError as error:
        raise InputError(str(directory), None, "", f"cannot be packed: {error}") from None
    has_keys = any(is_key_log(file.name) for file in files)
    return Packed(len(files), size, archive.stat().st_size, has_keys)


def _files(directory: Path, stays: Collection[str]) -> Iterator[Path]:
    """Yield the files to pack, without links and sockets. stays: parts to omit."""
    for folder, names, files in os.walk(directory):
        here = Path(folder)
        run = RunDirectory(here if (here / RUN).is_file() else here.parent)
        skipped = {run.unpacked, *((run.captures,) if CAPTURES in stays else ())}
        names[:] = [name for name in names if here / name not in skipped and not name.endswith(_MOMENTARY)]
        for name in files:
            path = here / name
            is_index = here == run.captures and name.endswith(INDEX)  # the reader rebuilds it
            is_made = (here == directory or here.parent.name == POINTS) and name in {SUMS, CLAIMS}
            if (stays and is_key_log(name)) or is_index or is_made:
                continue
            if path.is_file() and not path.is_symlink() and not name.endswith(_MOMENTARY):
                yield path


def _order(file: Path) -> tuple[bool, int, str]:
    """Sort key: records first, a sweep's before its runs'."""
    return file.name not in {RUN, SWEEP}, len(file.parts), str(file)


class _Packing:
    """An archive that is being written, and the SHA-256 of its files so far, by path."""

    def __init__(self, tar: tarfile.TarFile, name: str) -> None:
        self._tar, self._name = tar, name
        self.sums: dict[str, str] = {}

    def add_file(self, file: Path, path: str, stays: Collection[str]) -> None:
        """Add a file; run.json then lists the omitted parts."""
        if stays and (path == RUN or path.startswith(f"{POINTS}/")) and file.name == RUN:
            content = read_json(file)
            if not set(stays) <= set(left_out(content)):
                content["left_out"] = dict.fromkeys(stays, STAYED_BEHIND) | left_out(content)
                self.add(path, content)
                return
        member = self._tar.gettarinfo(file, f"{self._name}/{path}")
        with file.open("rb") as stream:
            self._add(member, path, stream)

    def add(self, path: str, content: Mapping[str, Any]) -> None:
        """Add a file with this JSON."""
        self.add_text(path, json.dumps(content, indent=1, allow_nan=False) + "\n")

    def add_text(self, path: str, text: str) -> None:
        """Add a file with this text."""
        member = tarfile.TarInfo(f"{self._name}/{path}")
        content = text.encode()
        member.size = len(content)
        self._add(member, path, io.BytesIO(content))

    def _add(self, member: tarfile.TarInfo, path: str, stream: BinaryIO) -> None:
        member.uid = member.gid = 0
        member.uname = member.gname = ""  # do not publish the user's name
        read = _Hashed(stream)
        self._tar.addfile(member, read)
        self.sums[path] = read.digest.hexdigest()


class _Hashed(io.RawIOBase):
    """A stream that hashes the bytes read from it."""

    def __init__(self, stream: BinaryIO) -> None:
        super().__init__()
        self._stream, self.digest = stream, hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        content = self._stream.read(size)
        self.digest.update(content)
        return content


def _claims(directory: Path, files: Collection[Path], claims_of: ClaimsOf) -> Iterator[tuple[str, Any]]:
    """Yield each run's claims by the path of its claims.json."""
    for file in files:
        content = claims_of(RunDirectory(file.parent)) if file.name == RUN else None
        if content is not None:
            yield str((file.parent / CLAIMS).relative_to(directory)), content


def read_sums(path: Path) -> dict[str, str]:
    """Return the SHA-256 of the packed files, by path. Raises InputError.

    The input is not trusted; invalid lines are skipped.
    """
    lines = read_text(path).decode(errors="replace").splitlines()
    found = (line.partition("  ") for line in lines)
    return {name: digest for digest, _, name in found if name}


def left_out(content: Mapping[str, Any]) -> dict[str, str]:
    """Return the omitted parts and the reasons. content: of an untrusted run.json."""
    found = content.get("left_out")
    return dict(found) if isinstance(found, Mapping) else {}


def with_left_out(record: RunRecord, part: str, why: str) -> RunRecord:
    """Add a part to the record's `left_out`."""
    return replace(record, left_out={part: why, **record.left_out})


def check_captures(run: RunDirectory) -> None:
    """Check that the run has captures, which a new analysis needs. Raises InputError."""
    why = run.read_run().left_out.get(CAPTURES)
    if why is not None:
        raise InputError(
            str(run.path),
            None,
            "",
            f"no longer has captures ({why}): its summary and report cannot be recomputed",
        )
