"""The disks of the lab's machines: their initial content, and later changes.

A machine's root is an overlay of three layers: below, the file system of the machine of the tests; above it
the machine's own layer (`lay_out`), in which a directory may be opaque, so that it hides everything below;
and on top the layer that takes all writes (`written`). Source: the kernel's
Documentation/filesystems/overlayfs.rst, "whiteouts and opaque directories".
"""

import os
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from testbed.sandbox.outside import PROJECT

OPAQUE = "trusted.overlay.opaque"
EMPTY_DIRECTORIES: Mapping[str, int] = {
    "/tmp": 0o1777,
    "/var/tmp": 0o1777,
    "/run": 0o755,
    "/run/mount": 0o755,  # libmount makes it where no boot has
    "/root/.ssh": 0o700,
    "/etc/ssh": 0o755,
    str(PROJECT): 0o755,  # a machine has the project only when it was sent there
}
"""Directories that are empty on a machine, and their modes."""
SYSTEM_PYTHON = "/usr/bin/python3"
UID = 1500
"""UID of the ordinary user of machines without root logins."""


def lay_out(layer: Path, files: Mapping[str, bytes], more: Path | None) -> None:
    """Write the machine's own layer: its empty directories, these files, and the content of a folder."""
    if more is not None:
        subprocess.run(["cp", "--archive", f"{more}/.", layer], check=True)
    for name, mode in EMPTY_DIRECTORIES.items():
        path = _inside(layer, name)
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(mode)
        os.setxattr(path, OPAQUE, b"y")
    _inside(layer, "/run/sshd").mkdir(mode=0o755)
    for name, content in {"/root/.bashrc": b"", **files}.items():
        path = _inside(layer, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(_mode(name))
    if not _is_our_python(SYSTEM_PYTHON):
        link = _inside(layer, "/usr/local/bin/python3")
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(Path(sys.base_prefix).resolve() / "bin/python3")


def add_user(layer: Path, name: str, *, sudo: bool) -> None:
    """Give the machine an ordinary user with a home; sudo: who may become root without a password.

    Sources: passwd(5), shadow(5), group(5), sudoers(5).
    """
    lines = {
        "/etc/passwd": (f"{name}:x:{UID}:{UID}::/home/{name}:/bin/bash", 0o644),
        "/etc/group": (f"{name}:x:{UID}:", 0o644),
        "/etc/shadow": (f"{name}:*:20000::::::", 0o640),
    }
    for file, (line, mode) in lines.items():
        path = _inside(layer, file)
        path.write_text(f"{Path(file).read_text().rstrip()}\n{line}\n")
        path.chmod(mode)
    home = _inside(layer, f"/home/{name}")
    home.mkdir(parents=True, mode=0o755)
    os.chown(home, UID, UID)
    if sudo:
        rule = _inside(layer, f"/etc/sudoers.d/{name}")
        rule.parent.mkdir(exist_ok=True)
        rule.write_text(f"{name} ALL=(ALL:ALL) NOPASSWD: ALL\n")
        rule.chmod(0o440)


def written(upper: Path, layer: Path) -> list[str]:
    """Return the sorted paths that were made, changed or deleted in the upper layer, given the machine's own
    layer.

    A directory that exists there only because of a change inside it is left out.
    """
    return sorted(f"/{name}" for name in _changes(upper, upper, layer))


def _changes(folder: Path, upper: Path, layer: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        name = path.relative_to(upper)
        if path.is_dir() and not path.is_symlink():
            if not _was_there(layer, name):
                yield name
            yield from _changes(path, upper, layer)
        elif not _is_whiteout(path) or _was_there(layer, name):
            yield name


def _was_there(layer: Path, name: Path) -> bool:
    """Return whether a machine has this file from the start."""
    if os.path.lexists(layer / name):
        return True
    above = [layer / parent for parent in name.parents if (layer / parent).is_dir()]
    hidden = any(OPAQUE in os.listxattr(path) for path in above)
    return not hidden and os.path.lexists(Path("/") / name)


def _is_whiteout(path: Path) -> bool:
    """Return whether the path marks a deletion: a character device 0/0."""
    status = path.lstat()
    return stat.S_ISCHR(status.st_mode) and status.st_rdev == 0


def _inside(layer: Path, name: str) -> Path:
    return layer / name.lstrip("/")


def _mode(name: str) -> int:
    """Return a file's mode: sshd refuses a private key that others may read."""
    return 0o600 if name.endswith("_key") else 0o644


def _is_our_python(path: str) -> bool:
    """Return whether this belongs to a Python of the same minor version, which the sent code needs."""
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return Path(path).resolve().name == name
