"""Names that stand in files of a run and become parts of paths: none leads out of its folder.

A run, a sweep or a night may come from anybody. Where a path can be computed it is computed; a name that has
to be read, as a host's, is a single part of a path or refused.
"""

from pathlib import Path

from topologies.errors import InputError

NAME_BYTES_MAX = 200  # file systems take 255; leave room for what is appended


def plain_name(name: object, file: Path | str) -> str:
    """The name, if it is one file's or folder's. file: where it was read. Raises InputError."""
    if (
        not isinstance(name, str)
        or name in {"", ".", ".."}
        or "/" in name
        or not name.isprintable()
        or len(name.encode(errors="replace")) > NAME_BYTES_MAX
    ):
        problem = f"{name!r:.80} is no name of a file or folder: it leads elsewhere"
        raise InputError(str(file), None, "", problem)
    return name


def refuse_link(path: Path) -> None:
    """Raises InputError if the path is a symbolic link: what it leads to is not ours to write or remove."""
    if path.is_symlink():
        raise InputError(str(path), None, "", "is a symbolic link, which leads elsewhere")


def check_folder(path: Path) -> None:
    """Raises InputError if the path is there, and no folder: as a link it would lead elsewhere."""
    refuse_link(path)
    if path.exists() and not path.is_dir():
        raise InputError(str(path), None, "", "is no folder: move it away")
