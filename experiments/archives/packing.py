"""A run's or a sweep's directory as one file, for a colleague: a tar archive compressed with Zstandard.

`tar --zstd -xf` reads it too. The first members are the files that say what it is; the header counts members,
so that an archive that was cut off is noticed (`experiments.archives.unpacking`). The last members are what
each run claims, and a description of all that is packed, with its hashes (`experiments.archives.crate`).
Left out are what can be made again by itself, what stands there only for a moment, and the captures or the
keys of TLS connections, if so asked: run.json then says so. Keys never go without captures.

What a run's directory no longer has was removed to save room, or left behind when the run was packed.
run.json names it under `left_out`, with the reason, before anything is removed: what is torn by a crash in
between is named too.
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

from experiments.archives.crate import CLAIMS, CRATE, PackedFile, crate
from experiments.files.whole_files import BEGUN, replacing
from experiments.records.json_files import read_json
from experiments.records.run_record import RunRecord
from experiments.records.rundir import IN_THE_MAKING, INDEX, POINTS, RunDirectory, is_key_log, is_run_name
from topologies.errors import InputError

ENDING: Final = ".tar.zst"
COUNT: Final = "CUTSET.members"  # of the archive's global header
RUN, SWEEP = "run.json", "sweep.json"
STAYED_BEHIND: Final = "left out when the run was packed"
_LEVEL: Final = 3
_MOMENTARY: Final = (IN_THE_MAKING, BEGUN, ".reserve")
LEFT_OUT: Final = "left_out"
CAPTURES: Final = "captures"
KEYS: Final = "keys"
"""Of TLS connections."""


@dataclass(frozen=True, slots=True)
class Packed:
    """What was packed: how many files, their size, and the archive's. keys: whether keys of TLS connections
    are among them.
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
    """Write the archive of a run or a sweep; one that is there is replaced when the new one is whole.

    keys: with those of TLS connections, by which captures can be read. claims_of: what a run claims, the
    content of its claims.json, if it was analysed. Raises InputError if something cannot be read or written,
    or changes meanwhile.
    """
    name = RunDirectory(directory).full_name
    if not is_run_name(name):
        raise InputError(str(directory), None, "", "is not named as runs are: give it back its own name")
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
                into.add(CRATE, crate(name, _plain(files[0]), into.packed))
    except OSError as error:
        raise InputError(str(directory), None, "", f"cannot be packed: {error}") from None
    has_keys = any(is_key_log(file.name) for file in files)
    return Packed(len(files), size, archive.stat().st_size, has_keys)


def _files(directory: Path, stays: Collection[str]) -> Iterator[Path]:
    """The files that go along. Links and sockets do not. stays: which parts do not, either."""
    for folder, names, files in os.walk(directory):
        here = Path(folder)
        run = RunDirectory(here if (here / RUN).is_file() else here.parent)
        skipped = {run.unpacked, *((run.captures,) if CAPTURES in stays else ())}
        names[:] = [name for name in names if here / name not in skipped and not name.endswith(_MOMENTARY)]
        for name in files:
            path = here / name
            is_index = here == run.captures and name.endswith(INDEX)  # which whoever reads them makes anew
            is_made = (here == directory or here.parent.name == POINTS) and name in {CRATE, CLAIMS}
            if (stays and is_key_log(name)) or is_index or is_made:
                continue
            if path.is_file() and not path.is_symlink() and not name.endswith(_MOMENTARY):
                yield path


def _order(file: Path) -> tuple[bool, int, str]:
    """What says what it is comes first, a sweep's before its runs'."""
    return file.name not in {RUN, SWEEP}, len(file.parts), str(file)


class _Packing:
    """An archive in the making, and what is in it so far."""

    def __init__(self, tar: tarfile.TarFile, name: str) -> None:
        self._tar, self._name = tar, name
        self.packed: list[PackedFile] = []

    def add_file(self, file: Path, path: str, stays: Collection[str]) -> None:
        """A file; run.json says what stays behind."""
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
        """A file of this JSON."""
        text = (json.dumps(content, indent=1, allow_nan=False) + "\n").encode()
        member = tarfile.TarInfo(f"{self._name}/{path}")
        member.size = len(text)
        self._add(member, path, io.BytesIO(text))

    def _add(self, member: tarfile.TarInfo, path: str, stream: BinaryIO) -> None:
        member.uid = member.gid = 0
        member.uname = member.gname = ""  # who ran it is nobody's business
        read = _Hashed(stream)
        self._tar.addfile(member, read)
        self.packed.append(PackedFile(path, member.size, read.digest.hexdigest()))


class _Hashed(io.RawIOBase):
    """A stream that knows the hash of what was read from it."""

    def __init__(self, stream: BinaryIO) -> None:
        super().__init__()
        self._stream, self.digest = stream, hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        content = self._stream.read(size)
        self.digest.update(content)
        return content


def _claims(directory: Path, files: Collection[Path], claims_of: ClaimsOf) -> Iterator[tuple[str, Any]]:
    """What each run among these files claims, by the path of its claims.json."""
    for file in files:
        content = claims_of(RunDirectory(file.parent)) if file.name == RUN else None
        if content is not None:
            yield str((file.parent / CLAIMS).relative_to(directory)), content


def _plain(file: Path) -> dict[str, Any]:
    """What run.json or sweep.json says; nothing if that cannot be read, which is packed all the same."""
    try:
        return read_json(file)
    except InputError:
        return {}


def left_out(content: Mapping[str, Any]) -> dict[str, str]:
    """By part, why a run's directory does not have it. content: of a run.json that may be anybody's."""
    found = content.get("left_out")
    return dict(found) if isinstance(found, Mapping) else {}


def without(record: RunRecord, part: str, why: str) -> RunRecord:
    """The record that names this part, too, as left out."""
    return replace(record, left_out={part: why, **record.left_out})


def check_captures(run: RunDirectory) -> None:
    """Raises InputError if the run's captures were left out, so that it cannot be analysed again."""
    why = run.read_run().left_out.get(CAPTURES)
    if why is not None:
        raise InputError(
            str(run.path),
            None,
            "",
            f"has no captures any more ({why}): its summary and report stand as they are",
        )
