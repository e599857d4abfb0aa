"""Runs on a machine, as part of programs that are sent there: which folders root may trust.

Root runs code, ends processes and removes files by what stands in our folder. So it must be root's or of who
logged in, and nobody else's to change; and so must each folder from `/` on, for whoever may rename one on the
way decides what stands there. Where others may write, but not rename what is not theirs (the sticky bit of
/tmp), the way may go through. A link on the way counts with the way to where it leads.

Source: cf. StrictModes of sshd_config(5).
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def make_own(path: Path) -> None:
    """Make a folder with those before it, as far as they are not there, and see that it is our own.

    Raises PermissionError with what to do, another OSError if it cannot be made.
    """
    for place in (*reversed(path.parents), path):
        if not os.path.lexists(str(place)):
            _check_way(place.parent)
            with contextlib.suppress(FileExistsError):  # somebody was faster: it is checked below
                place.mkdir(0o755)
    require_own(path)


def require_own(path: Path) -> None:
    """Raises PermissionError with what to do if somebody else can change what stands there; another OSError
    if it is no folder.
    """
    _check_way(path.parent)
    found = path.lstat()
    if stat.S_ISLNK(found.st_mode):
        raise PermissionError(f"{path} is a link: remove it, or name another `folder:` in the inventory")
    _check(path, found, OTHERS_WRITE)


def is_own(path: Path) -> bool:
    """Whether it is a folder that nobody else can change."""
    return os.path.lexists(str(path)) and why_not_own(path) is None


def why_not_own(path: Path) -> str | None:
    """What is in the way of a folder of our own there, made or not yet; None if nothing is."""
    try:
        if os.path.lexists(str(path)):
            require_own(path)
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
