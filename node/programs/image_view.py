"""A program's view of an image: its files, over which the program writes its own (mount_namespaces(7)).

Called in the forked child, before it becomes the program. The kernel shows the image's files, which all
processes of the image share, with those that the program wrote on top (overlayfs); they are in its storage,
and survive a restart. Beside these there are the program's folder, the system's folder and what clients need,
at their paths; and /proc, /sys, /dev and /etc/hosts, as containers have them. The machine's own files are
unmounted (pivot_root(2)).
"""

import errno
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from node.core.program import SEARCH_PATH, Image
from node.programs.host_view import CLONE_NEWNS, HOSTS, MS_BIND, MS_REC, SHARED_MEMORY, mount
from node.programs.regular_file import regular_text
from node.tcp.libc import check, libc

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT = 1, 2, 4, 8, 0x20  # mount(2)
MNT_DETACH = 2  # umount2(2)
LOCKED = MS_NOSUID | MS_NODEV | MS_NOEXEC | 1024
"""Flags, also MS_NOATIME, that a remount in a user namespace may not clear (mount_namespaces(7))."""
SHOWN = (Path("/proc"), Path("/sys"))
READ_ONLY = (Path("/proc/sys"), Path("/sys"))
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
LINKS = {"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"}
NO_OVERLAY = frozenset({errno.EINVAL, errno.ENODEV, errno.EPERM, errno.EOPNOTSUPP})
"""Errors of overlayfs if the kernel has none for this user, or none over this file system."""
COPY = "image-copy"
"""Folder of a program's storage with a copy of the image's files, if there is no overlayfs; not shipped."""
FIELDS_OF_PASSWD = 7
ID_MAX = 2**32 - 2
"""The largest number of a user or group; the next number means none (chown(2))."""


class NoSuchUserError(LookupError):
    """An image does not have a user or group."""


@dataclass(frozen=True, slots=True)
class ImageView:
    """The files that a program in an image sees. root: the image's. storage: for what the program writes.

    hosts: its /etc/hosts. shown: its own folders, at the same paths. read_only: folders that it only reads.
    files: files by their absolute paths in the image. key_log: where the program logs keys, or None.
    keeps_owners: whether programs run as the image's users, which needs root.
    """

    image: Image
    root: Path
    storage: Path
    hosts: Path
    shown: Sequence[Path]
    read_only: Sequence[Path]
    files: Mapping[str, Path]
    key_log: Path | None
    keeps_owners: bool

    def enter(self) -> None:
        """Move the calling process into the view permanently. Raises OSError."""
        os.umask(0o022)
        check(libc.unshare(CLONE_NEWNS), "make a mount namespace")
        place = self._mount_root()
        binds = {
            HOSTS: (self.hosts, False),
            **{Path(inside): (path, False) for inside, path in self.files.items()},
            **{path: (path, False) for path in self.shown},
            **{path: (path, True) for path in self.read_only},
            **{Path("/dev", name): (Path("/dev", name), False) for name in DEVICES},
        }
        opened = [(os.open(source, os.O_PATH), inside, only) for inside, (source, only) in binds.items()]
        os.chdir(place)
        for inside in SHOWN:
            own = place / inside.name
            own.mkdir(exist_ok=True)
            if own.is_symlink():
                raise OSError(errno.ELOOP, f"the image has a link for {inside}")
            mount(str(inside), own, None, MS_BIND | MS_REC)
        check(libc.pivot_root(b".", b"."), "change the root")
        for inside in (Path("/dev"), SHARED_MEMORY):
            inside.mkdir(parents=True, exist_ok=True)
            mount("tmpfs", inside, "tmpfs", MS_NOSUID)
        for descriptor, inside, only in opened:
            _bind(descriptor, inside, read_only=only)
        for name, target in LINKS.items():
            Path("/dev", name).symlink_to(target)
        for inside in READ_ONLY:
            _make_read_only(inside)
        check(libc.umount2(b".", MNT_DETACH), "leave the machine's files")
        os.chdir("/")

    def _mount_root(self) -> Path:
        """Mount the image's files with the program's own on top; return the mount point."""
        os.chdir(self.storage)
        for name in ("upper", "work", "root"):
            Path(name).mkdir(exist_ok=True)
        lower = os.open(self.root, os.O_PATH)
        options = f"lowerdir=/proc/self/fd/{lower},upperdir=upper,workdir=work"
        if not self.keeps_owners:
            options += ",userxattr"  # other attributes need root
        try:
            mount("overlay", Path("root"), "overlay", MS_NOSUID | MS_NODEV, options)
        except OSError as error:
            if error.errno not in NO_OVERLAY:
                raise
            self._copy()
        else:
            Path("work/work").chmod(0o700)  # so that its owner can remove the run
        os.close(lower)
        return self.storage / "root"

    def _copy(self) -> None:
        """Use a copy of the image's files, if the kernel has no overlayfs here."""
        if not Path(COPY).is_dir():
            subprocess.run(["cp", "-a", "--reflink=auto", self.root, f"{COPY}.partial"], check=True)
            Path(f"{COPY}.partial").rename(COPY)
        mount(COPY, Path("root"), None, MS_BIND)

    def start(
        self, run: Sequence[str], env: Mapping[str, str], user: str, drop: Callable[[], None]
    ) -> NoReturn:
        """Become a program in this view, which the process has entered. drop: gives up capabilities.

        Raises OSError, NoSuchUserError.
        """
        found = user_of(user)
        Path(self.image.folder).mkdir(parents=True, exist_ok=True)
        if self.keeps_owners:
            if self.key_log is not None:
                os.chown(self.key_log, found.uid, -1)
            for stream in range(3):  # so that it can open /dev/stdout by its name
                if os.fstat(stream).st_rdev != Path(os.devnull).stat().st_rdev:
                    os.fchown(stream, found.uid, -1)
            os.setgroups(found.groups)
            os.setgid(found.gid)
            os.setuid(found.uid)
        drop()
        os.chdir(self.image.folder)
        os.execvpe(run[0], list(run), {"PATH": SEARCH_PATH, "HOME": found.home, **env})  # noqa: S606 - no shell


@dataclass(frozen=True, slots=True)
class ImageUser:
    """A user of an image: groups has the user's own, too."""

    uid: int
    gid: int
    groups: tuple[int, ...]
    home: str


def user_of(given: str, passwd: Path = Path("/etc/passwd"), group: Path = Path("/etc/group")) -> ImageUser:
    """Return the user that an image means by `user[:group]`, names or numbers; by default root.

    The machine's C library is not used, because it could load code from the image. Raises NoSuchUserError.
    """
    name, _, group_name = given.partition(":")
    name = name or "0"
    users = [row for row in _rows(passwd, FIELDS_OF_PASSWD) if _is_id(row[3])]
    groups = _rows(group, 3)
    known = next((row for row in users if name == row[0]), None) or next(
        (row for row in users if name == row[2]), None
    )
    if known is None and not _is_id(name):
        raise NoSuchUserError(f"the image has no user {name}")
    uid, gid, home = (int(known[2]), int(known[3]), known[5]) if known else (int(name), 0, "/")
    more = tuple(int(row[2]) for row in groups if known and known[0] in ",".join(row[3:]).split(","))
    if group_name:
        own = next((row[2] for row in groups if row[0] == group_name), group_name)
        if not _is_id(own):
            raise NoSuchUserError(f"the image has no group {group_name}")
        gid, more = int(own), ()
    return ImageUser(uid, gid, (gid, *more), home or "/")


def enter_running(pid: int) -> None:
    """Move the calling process into the view of a running program. Raises OSError."""
    with Path(f"/proc/{pid}/ns/mnt").open("rb") as namespace:
        check(libc.setns(namespace.fileno(), CLONE_NEWNS), "enter the program's view")


def _rows(path: Path, fields: int) -> list[list[str]]:
    """Return the rows of passwd(5) or group(5); an image may have none."""
    try:
        lines = regular_text(os.path.realpath(path)).splitlines()
    except OSError:
        return []
    rows = [line.split(":") for line in lines]
    return [row for row in rows if len(row) >= fields and _is_id(row[2])]


def _is_id(text: str) -> bool:
    """Return whether a text is the number of a user or group (setuid(2))."""
    return text.isascii() and text.isdecimal() and len(text) <= len(str(ID_MAX)) and int(text) <= ID_MAX


def _bind(descriptor: int, inside: Path, *, read_only: bool) -> None:
    source = Path(f"/proc/self/fd/{descriptor}")
    if source.is_dir():
        inside.mkdir(parents=True, exist_ok=True)
    elif not inside.exists():
        inside.parent.mkdir(parents=True, exist_ok=True)
        inside.touch()
    mount(str(source), inside, None, MS_BIND | MS_REC)
    os.close(descriptor)
    if read_only:
        _make_read_only(inside)


def _make_read_only(path: Path) -> None:
    mount(str(path), path, None, MS_BIND | MS_REC)
    locked = os.statvfs(path).f_flag & LOCKED
    mount(None, path, None, MS_BIND | MS_REMOUNT | MS_RDONLY | locked)
