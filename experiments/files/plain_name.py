"""Names in files of a run that become parts of paths: none may lead out of its folder.

Runs, sweeps and nights are not trusted. Paths are computed if possible; a name that must be read, such as a
host's, has to be a single part of a path.
"""

from pathlib import Path
from typing import Protocol

from topologies.errors import InputError

NAME_BYTES_MAX = 200  # file systems allow 255; leave room for suffixes


class _Directory(Protocol):
    @property
    def path(self) -> Path:
        """The directory itself."""


class Below:
    """The path of a file or folder below a directory's own, as an attribute of the directory's class."""

    def __init__(self, *parts: str) -> None:
        self._parts = parts

    def __get__(self, directory: _Directory, _: type) -> Path:
        return directory.path.joinpath(*self._parts)


def plain_name(name: object, file: Path | str) -> str:
    """Return the name if it is a single part of a path. file: where it was read. Raises InputError."""
    if (
        not isinstance(name, str)
        or name in {"", ".", ".."}
        or "/" in name
        or not name.isprintable()
        or len(name.encode(errors="replace")) > NAME_BYTES_MAX
    ):
        problem = f"{name!r:.80} is not the name of a file or folder"
        raise InputError(str(file), None, "", problem)
    return name


def refuse_link(path: Path) -> None:
    """Refuse a symbolic link, whose target is outside the folder. Raises InputError."""
    if path.is_symlink():
        raise InputError(str(path), None, "", "is a symbolic link, which is refused")


def check_file(path: Path) -> None:
    """Refuse a path that exists and is not a regular file: reading a pipe would block. Raises InputError."""
    if path.exists() and not path.is_file():
        raise InputError(str(path), None, "", "is not a regular file: move it away")


def check_folder(path: Path) -> None:
    """Refuse a path that exists and is not a folder, or is a symbolic link. Raises InputError."""
    refuse_link(path)
    if path.exists() and not path.is_dir():
        raise InputError(str(path), None, "", "is not a folder: move it away")
