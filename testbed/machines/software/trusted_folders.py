"""Runs on a machine, as part of programs that are sent there: decides which folders root may trust.

Root runs code, ends processes and removes files by the content of our folder. So the folder must belong to
root or to the user who logged in, and be writable for no other; and so must each folder from `/` on, as
whoever can rename one of them decides what is below. Folders in which others may write, but not rename what
is not theirs (the sticky bit of /tmp), are accepted on the path. For a symbolic link, the path to its target
counts, too.

Source: cf. StrictModes of sshd_config(5).
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def make_trusted(path: Path) -> None:
    """Create a folder and its parents, as far as they do not exist, and check that it is trusted.

    Raises PermissionError with what to do, another OSError if it cannot be created.
    """
    for place in (*reversed(path.parents), path):
        if not os.path.lexists(str(place)):
            _check_way(place.parent)
            with contextlib.suppress(FileExistsError):  # somebody was faster: it is checked below
                place.mkdir(0o755)
    require_trusted(path)


def require_trusted(path: Path) -> None:
    """Raises PermissionError with what to do if another user can change the folder's content; another OSError
    if it is not a folder.
    """
    _check_way(path.parent)
    found = path.lstat()
    if stat.S_ISLNK(found.st_mode):
        raise PermissionError(f"{path} is a link: remove it, or name another `folder:` in the inventory")
    _check(path, found, OTHERS_WRITE)


def is_trusted(path: Path) -> bool:
    """Whether it is a folder that no other user can change."""
    return os.path.lexists(str(path)) and why_not_trusted(path) is None


def why_not_trusted(path: Path) -> str | None:
    """Why a folder cannot be trusted, existing or not yet; None if it can."""
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
            place.stat()  # links that go in a circle end here
            _check_way(place.parent / os.readlink(str(place)))  # noqa: PTH115 (not in old ones)
        else:
            _check(place, found, 0 if found.st_mode & stat.S_ISVTX else OTHERS_WRITE)


def _check(place: Path, found: os.stat_result, not_allowed: int) -> None:
    if not stat.S_ISDIR(found.st_mode):
        raise NotADirectoryError(f"{place} is no folder")
    _check_owner(place, found)
    if found.st_mode & not_allowed:
        raise PermissionError(f"{place} can be changed by others: `chmod go-w {place}`")


def _check_owner(place: Path, found: os.stat_result) -> None:
    if found.st_uid not in {0, os.getuid(), int(os.environ.get("SUDO_UID", "0"))}:
        raise PermissionError(
            f"{place} is somebody else's: remove it, or name another `folder:` in the inventory"
        )
