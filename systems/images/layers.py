"""Layers of an image, unpacked one over another into a folder.

Names lead nowhere else: symbolic links are resolved as if the folder were /. Devices are left out, and the
rights of executables to change their user, which programs of a run cannot use. Source: OCI Image Format
Specification 1.1, "Image Layer Filesystem Changeset".
"""

import contextlib
import gzip
import hashlib
import os
import platform
import re
import shutil
import stat
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterable
from itertools import accumulate
from pathlib import Path
from typing import IO, Any

import zstandard

from node.programs.regular_file import regular_text
from systems.images.archives import TAR_ERRORS, CheckedEntry, Files, ImageDescription, ImageError

BYTES_MAX = 64 << 30
"""The largest layer, and all files together; less on a disk with little room."""
ROOM_SHARE = 2
"""A layer and all files together may take this part of the disk's free space and of its inodes: other
programs need these, too.
"""
BLOCK_BYTES = 4096
"""The least size of a file or folder on most file systems."""
ENTRIES_MAX = 2_000_000
DEPTH_MAX = 256
"""Folders within one another: removing them calls itself for each."""
LINKS_MAX = 40
"""Symbolic links on the way to a file, as in the kernel (path_resolution(7))."""
CHUNK_BYTES = 1 << 20
NAME_CHARACTERS_MAX = 100
"""The longest name of a file in an error."""
FIRST_LINE_BYTES_MAX = 256
"""A script's first line, as the kernel reads it (execve(2))."""
ELF_HEADER_BYTES = 20
"""The header of a program up to its kind of processor (elf(5), e_machine)."""
ELF_MACHINES = {"x86_64": (3, 62), "aarch64": (40, 183)}
"""Kinds of processors whose programs a machine runs, by its name in uname(2)."""
OF_KERNEL = ("/proc", "/sys")
MOUNTED = (*OF_KERNEL, "/dev", "/etc", "/tmp")  # noqa: S108 - of the image
"""Folders that programs expect; those of the kernel may not be links."""
HOSTS = "/etc/hosts"
WHITEOUT = ".wh."
OPAQUE = ".wh..wh..opq"
GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


def unpack(files: Files, image: ImageDescription, root: Path, *, keeps_owners: bool) -> None:
    """Unpack all layers into an empty folder. Raises ImageError, also if a layer is not what its digest says.

    keeps_owners: give files the users of the image; otherwise they belong to the caller.
    """
    filling = _Root(root, keeps_owners=keeps_owners)
    for name, digest in image.layers:
        with tempfile.TemporaryFile(dir=root.parent) as layer, files.open(name) as packed:
            try:
                _check_content(packed, layer, digest, name, filling.make_room)
                filling.add(layer)
            except (OSError, *TAR_ERRORS) as error:
                raise ImageError(f"layer {name} cannot be unpacked: {error}") from None
    filling.finish()


def inside(root: Path, name: str, *, follows: bool = False) -> Path:
    """Return a file's place, with the symbolic links of its folders resolved as if the root were /.

    follows: whether its own links are, too. Raises ValueError.
    """
    if ".." in name.split("/"):
        raise ValueError(f"{name} leads out of the image")
    waiting, at, links = name.split("/")[::-1], list[str](), 0
    while waiting:
        part = waiting.pop()
        if part == "..":
            del at[-1:]
        elif part not in {"", "."}:
            at.append(part)
            place = root.joinpath(*at)
            if (follows or any(waiting)) and place.is_symlink():
                links += 1
                if links > LINKS_MAX:
                    raise ValueError(f"{name}: too many symbolic links")
                target = str(place.readlink())
                at = [] if target.startswith("/") else at[:-1]
                waiting += target.split("/")[::-1]
    return root.joinpath(*at)


def why_not_run(root: Path, name: str, folder: str, search_path: str) -> str | None:
    """Return why an unpacked image cannot run a program; None if it can.

    folder: where it starts. search_path: PATH.
    """
    places = [f"{folder}/{name}"] if "/" in name else [f"{each}/{name}" for each in search_path.split(":")]
    for place in [name] if name.startswith("/") else places:
        with contextlib.suppress(OSError, ValueError):  # it leads out of the image, or is no name
            found = inside(root, place, follows=True)
            if found.is_file() and found.stat().st_mode & 0o111:
                if _is_of_other_processor(found):
                    return f"has a {name} for another processor"
                with found.open("rb") as program:
                    first = program.readline(FIRST_LINE_BYTES_MAX).split()
                if not first or not first[0].startswith(b"#!"):
                    return None
                shell = (first[0][2:] or b"".join(first[1:2])).decode(errors="replace")
                there = inside(root, shell, follows=True).is_file()
                return None if there else f"has no {shell}, which its {name} needs"
    return f"has no program {name}"


def no_place(root: Path, folder: str, files: Iterable[str]) -> str | None:
    """Return why a program cannot start in this folder of an unpacked image, or which of these files is a
    folder there; None if all fits. Raises ValueError if one leads out of the image.
    """
    if at := _no_folder(root, folder):
        return f"it starts in {folder} (WorkingDir), and {at} is no folder"
    for each in MOUNTED:
        if _no_folder(root, each) or (each in OF_KERNEL and inside(root, each).is_symlink()):
            return f"{each} is no folder, and each program needs one there"
    hosts = inside(root, HOSTS, follows=True)
    if hosts.is_dir() or (inside(root, HOSTS).is_symlink() and not hosts.parent.is_dir()):
        return f"{HOSTS} is no file, and each program gets one there"
    taken = (each for each in files if each.startswith("/") and inside(root, each, follows=True).is_dir())
    return next((f"{each} is a folder, and `files` has a file there" for each in taken), None)


def _no_folder(root: Path, folder: str) -> str | None:
    """Return the path that prevents making a folder in an unpacked image; None if there is none."""
    for part in accumulate((part for part in folder.split("/") if part), "{}/{}".format, initial=""):
        if not inside(root, part, follows=True).is_dir():
            return part if os.path.lexists(inside(root, part)) else None
    return None


def _is_of_other_processor(program: Path) -> bool:
    with program.open("rb") as file:
        head = file.read(ELF_HEADER_BYTES)
    known = ELF_MACHINES.get(platform.machine())
    is_elf = head.startswith(b"\x7fELF") and len(head) == ELF_HEADER_BYTES
    return is_elf and known is not None and int.from_bytes(head[18:20], "little") not in known


def debian_version(root: Path, program: str) -> str | None:
    """Return the version of the Debian package of a program in an unpacked image; None if unknown."""
    listed, status = [], ""
    with contextlib.suppress(OSError, ValueError):  # the image has none
        for each in inside(root, "var/lib/dpkg/info", follows=True).glob("*.list"):
            with contextlib.suppress(OSError):  # it is no regular file
                if f"bin/{program}\n" in regular_text(each):
                    listed.append(each)
        status = regular_text(inside(root, "var/lib/dpkg/status", follows=True))
    if not listed:
        return None
    names = "|".join(re.escape(each.stem.partition(":")[0]) for each in listed)
    found = re.search(rf"^Package: ({names})\n(?:.+\n)*?Version: (.+)$", status, re.MULTILINE)
    return found and found[2]


def _check_content(
    packed: IO[bytes], layer: IO[bytes], digest: str, name: str, make_room: Callable[[int], None]
) -> None:
    """Write the uncompressed layer, and check that it has its digest. make_room: called with its size."""
    found, size = hashlib.sha256(), 0
    try:
        with _uncompressed(packed) as content:
            while chunk := content.read(CHUNK_BYTES):
                size += len(chunk)
                make_room(size)
                found.update(chunk)
                layer.write(chunk)
    except (OSError, EOFError, zlib.error, zstandard.ZstdError) as error:
        raise ImageError(f"layer {name} cannot be read: {error}") from None
    if f"sha256:{found.hexdigest()}" != digest:
        raise ImageError(f"is damaged: layer {name} has another digest")
    layer.seek(0)


def _uncompressed(packed: IO[bytes]) -> Any:
    head = packed.read(len(ZSTD))
    packed.seek(0)
    if head.startswith(GZIP):
        return gzip.GzipFile(fileobj=packed)
    if head == ZSTD:
        return zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True)
    return contextlib.nullcontext(packed)


class _Root:
    """The folder that layers fill."""

    def __init__(self, root: Path, *, keeps_owners: bool) -> None:
        self._root, self._keeps_owners = root, keeps_owners
        self._most = min(BYTES_MAX, shutil.disk_usage(root).free // ROOM_SHARE)
        inodes = os.statvfs(root)
        self._entries_max = min(ENTRIES_MAX, inodes.f_favail // ROOM_SHARE) if inodes.f_files else ENTRIES_MAX
        self._entries = self._size_bytes = self._layer_bytes = 0
        self._modes: dict[Path, int] = {}  # of folders: set last, because they may forbid writing

    def make_room(self, layer_bytes: int) -> None:
        """Count the copy of the next layer in place of the last one's. Raises ValueError."""
        self._layer_bytes = layer_bytes
        self._take(0)

    def add(self, layer: IO[bytes]) -> None:
        """Remove what the layer hides, also if its own files come first; then add its files."""
        if layer.seek(0, os.SEEK_END) == 0:
            return
        for is_adding in (False, True):
            layer.seek(0)
            with tarfile.open(fileobj=layer, mode="r:", tarinfo=CheckedEntry) as archive:
                while (member := archive.next()) is not None:
                    archive.members = []  # type: ignore[attr-defined]  # a layer may have millions
                    try:
                        self._apply(archive, member, is_adding=is_adding)
                    except OSError as error:  # its own text would name a place in the store
                        raise ValueError(f"{_short(member)}: {error.strerror}") from None
                    except OverflowError as error:  # of a user's number or a time
                        raise ValueError(f"{_short(member)}: {error}") from None
                layer.seek(archive.offset)
                if layer.read(tarfile.BLOCKSIZE).strip(b"\0"):
                    raise ValueError(f"it is damaged after {archive.offset} B")

    def finish(self) -> None:
        """Give folders their modes, except those that a later entry replaced or put behind a symbolic
        link.
        """
        for folder, mode in self._modes.items():
            is_here = inside(self._root, str(folder.relative_to(self._root))) == folder
            if is_here and folder.is_dir() and not folder.is_symlink():
                folder.chmod(mode if self._keeps_owners else mode | stat.S_IRWXU)

    def _apply(self, archive: tarfile.TarFile, member: tarfile.TarInfo, *, is_adding: bool) -> None:
        place = inside(self._root, member.name)
        if len(place.relative_to(self._root).parts) > DEPTH_MAX:
            raise ValueError(f"{_short(member)} is in more than {DEPTH_MAX} folders")
        if place.name.startswith(WHITEOUT):
            if not is_adding:
                self._hide(place)
        elif is_adding:
            self._make(archive, member, place)

    def _take(self, entries: int, size_bytes: int = 0) -> None:
        """Count files or folders, and the blocks of all together. Raises ValueError."""
        self._entries += entries
        self._size_bytes += max(entries, -(-size_bytes // BLOCK_BYTES)) * BLOCK_BYTES
        if self._entries > self._entries_max or self._size_bytes + self._layer_bytes > self._most:
            why = "" if self._most == BYTES_MAX else ", half of what is free on the disk"
            limit = f"{self._entries_max:,} files, or {self._most / (1 << 30):.1f} GiB{why}"
            raise ValueError(f"with a copy of the layer, it takes more than {limit}")

    def _make_folders(self, folder: Path) -> None:
        missing = []
        while not folder.is_dir():
            missing.append(folder)
            folder = folder.parent
        for each in reversed(missing):
            self._take(1)
            each.mkdir()

    def _hide(self, whiteout: Path) -> None:
        if whiteout.name == OPAQUE:
            if whiteout.parent.is_dir():
                for each in list(whiteout.parent.iterdir()):
                    _remove(each)
        elif (hidden := whiteout.name.removeprefix(WHITEOUT)) not in {"", ".", ".."}:
            _remove(whiteout.with_name(hidden))

    def _make(self, archive: tarfile.TarFile, member: tarfile.TarInfo, place: Path) -> None:
        if not (member.isdir() or member.isreg() or member.issym() or member.islnk() or member.isfifo()):
            return
        is_folder = place.is_dir() and not place.is_symlink()
        if place == self._root and not member.isdir():
            raise ValueError(f"{member.name} takes the place of the root")
        if not (member.isdir() and is_folder):
            _remove(place)
        self._make_folders(place if member.isdir() else place.parent)
        if not member.isdir():
            self._take(1, member.size)
        if member.isdir():
            self._modes[place] = member.mode & 0o7777
        elif member.issym():
            place.symlink_to(member.linkname)
        elif member.islnk():
            place.hardlink_to(inside(self._root, member.linkname))
            return  # it shares owner, mode and times
        elif member.isfifo():
            os.mkfifo(place)
        else:
            self._write(archive, member, place)
        if self._keeps_owners:
            os.chown(place, member.uid, member.gid, follow_symlinks=False)
        if member.isreg() or member.isfifo():
            place.chmod(member.mode & 0o777)
            os.utime(place, (member.mtime, member.mtime))  # compiled Python compares it

    def _write(self, archive: tarfile.TarFile, member: tarfile.TarInfo, place: Path) -> None:
        content = archive.extractfile(member)
        assert content is not None  # it is a file
        with content, place.open("xb") as file:
            while chunk := content.read(CHUNK_BYTES):
                if chunk.strip(b"\0"):
                    file.write(chunk)
                else:
                    file.seek(len(chunk), os.SEEK_CUR)  # a hole, which takes no room
            file.truncate()


def _short(member: tarfile.TarInfo) -> str:
    return member.name[:NAME_CHARACTERS_MAX]


def _remove(path: Path) -> None:
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
    else:
        shutil.rmtree(path)
