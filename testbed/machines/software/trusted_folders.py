"""The folders on a machine that root may trust, as part of programs that are sent to machines.

Root runs code, ends processes and removes files according to the content of our folder. The folder must
therefore belong to root or to the login user, and be writable for no other user. The same holds for each
folder on its path, because a user who can rename one of them controls the content below. Folders on the path
in which others may write, but not rename files of other users (the sticky bit of /tmp), are accepted. For a
symbolic link, the path to its target is checked, too.

Source: cf. StrictModes of sshd_config(5).
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def make_trusted(path: Path) -> None:
    """Create a folder and its missing parents, and check that it is trusted.

    Raises PermissionError with the remedy, another OSError if it cannot be created.
    """
    for place in (*reversed(path.parents), path):
        if not os.path.lexists(str(place)):
            _check_way(place.parent)
            with contextlib.suppress(FileExistsError):  # created meanwhile; it is checked below
                place.mkdir(0o755)
    require_trusted(path)


def require_trusted(path: Path) -> None:
    """Check that no other user can change the folder's content.

    Raises PermissionError with the remedy if one can, another OSError if it is not a folder.
    """
    _check_way(path.parent)
    found = path.lstat()
    if stat.S_ISLNK(found.st_mode):
        raise PermissionError(f"{path} is a link: remove it, or name another `folder:` in the inventory")
    _check(path, found, OTHERS_WRITE)


def is_trusted(path: Path) -> bool:
    """Return whether it is a folder that no other user can change."""
    return os.path.lexists(str(path)) and why_not_trusted(path) is None


def why_not_trusted(path: Path) -> str | None:
    """Return why a folder, existing or not, cannot be trusted; None if it can."""
    try:
        if os.path.lexists(str(path)):
            require_trusted(path)
        else:
            _check_way(next(place for place in path.parents if os.path.lexists(str(place))))
    except OSError as error:
        return str(error)
    return None


def _check_way(path: Path) -> None:
    for place in (*reversed(path.parents), path):
        found = place.lstat()
        _check_owner(place, found)
        if stat.S_ISLNK(found.st_mode):
            place.stat()  # raises for circular links
            _check_way(place.parent / os.readlink(str(place)))  # noqa: PTH115 (not in old ones)
        else:
            _check(place, found, 0 if found.st_mode & stat.S_ISVTX else OTHERS_WRITE)


def _check(place: Path, found: os.stat_result, not_allowed: int) -> None:
    if not stat.S_ISDIR(found.st_mode):
        raise NotADirectoryError(f"{place} is not a folder")
    _check_owner(place, found)
    if found.st_mode & not_allowed:
        raise PermissionError(f"{place} can be changed by others: `chmod go-w {place}`")


def _check_owner(place: Path, found: os.stat_result) -> None:
    if found.st_uid not in {0, os.getuid(), int(os.environ.get("SUDO_UID", "0"))}:
        raise PermissionError(
            f"{place} belongs to another user: remove it, or name another `folder:` in the inventory"
        )
