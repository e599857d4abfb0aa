"""Programs that a fresh machine has after installing the declared packages, and a PATH with nothing else.

A test that starts a program which `packages.txt` does not declare passes on machines where the program was
installed by hand, and fails on all others. Therefore the suite runs with a PATH of one folder
(`tests/conftest.py`): links to the programs of the packages in `packages.txt`, of their dependencies, and of
what every Debian has. Recommended packages do not count, because the installer omits them; nor do other files
in /usr/bin.

It covers look-ups on PATH. It does not cover programs started by absolute path, programs that set their own
PATH (machines of the lab, guests), or files that are no programs: plugins, libraries. For these `make
test-fresh` runs the suite in a fresh Debian.
"""

import re
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from testbed.doctor import Package

DPKG = Path("/var/lib/dpkg")
FOLDERS = ("usr/sbin", "usr/bin", "sbin", "bin")
"""Folders with the programs of packages, below the root."""
ALWAYS = ("required",)
"""Priorities of packages that debootstrap's smallest variant installs besides the essential ones."""


@dataclass(frozen=True, slots=True)
class InstalledPackage:
    """A package that is installed here. needs: of each dependency, the alternatives that fulfil it."""

    name: str
    always: bool
    needs: tuple[tuple[str, ...], ...]
    provides: tuple[str, ...]


def installed(status: str) -> Iterator[InstalledPackage]:
    """Yield the packages that dpkg's status file lists as installed."""
    for stanza in status.split("\n\n"):
        fields = dict(re.findall(r"^([\w-]+): (.*)$", stanza, re.MULTILINE))
        if not fields.get("Status", "").endswith(" installed"):
            continue
        needs = ", ".join(fields[field] for field in ("Pre-Depends", "Depends") if field in fields)
        yield InstalledPackage(
            fields["Package"],
            fields.get("Essential") == "yes" or fields.get("Priority") in ALWAYS,
            tuple(tuple(_names(need, "|")) for need in needs.split(",") if need.strip()),
            tuple(_names(fields.get("Provides", ""), ",")),
        )


def closure(wanted: Iterable[str], here: Collection[InstalledPackage]) -> set[str]:
    """Return the dependency closure of packages, among those installed here.

    The first installed alternative counts; for a name with several providers, all count.
    """
    by_name: dict[str, set[str]] = {}
    for package in here:
        for name in (package.name, *package.provides):
            by_name.setdefault(name, set()).add(package.name)
    needs = {package.name: package.needs for package in here}
    open_, found = [package.name for package in here if package.always], set[str]()
    for name in wanted:
        open_ += by_name.get(name, ())
    while open_:
        name = open_.pop()
        if name in found:
            continue
        found.add(name)
        for alternatives in needs[name]:
            there = (by_name[one] for one in alternatives if one in by_name)
            open_ += next(there, ())
    return found


def programs(packages: Collection[str], *, root: Path = Path("/"), dpkg: Path = DPKG) -> dict[str, Path]:
    """Return the programs of these packages by name: files in FOLDERS, and links there to their files."""
    lists = [path for path in (dpkg / "info").glob("*.list") if path.stem.split(":")[0] in packages]
    files = {_merged(line) for path in lists for line in path.read_text().splitlines()}
    found: dict[str, Path] = {}
    for folder in FOLDERS:
        for program in sorted((root / folder).iterdir()) if (root / folder).is_dir() else ():
            theirs = any(_merged(f"/{at.relative_to(root)}") in files for at in (program, program.resolve()))
            if theirs:
                found.setdefault(program.name, program)
    return found


def declared_programs(packages: Collection[Package], here: Collection[InstalledPackage]) -> dict[str, Path]:
    """Return the programs of these lines of packages.txt; a line's proof counts in any folder, such as a Java
    that was installed by hand.
    """
    elsewhere = {package.proof: Path(path) for package in packages if (path := shutil.which(package.proof))}
    return elsewhere | programs(closure([package.name for package in packages], here))


def link_all(found: Mapping[str, Path], folder: Path) -> None:
    """Make a folder that, as PATH, leads to these programs."""
    for name, program in found.items():
        (folder / name).symlink_to(program)


def _names(field: str, separator: str) -> list[str]:
    """Return the package names of a field: a, b for `a (>= 1) | b:any`."""
    return [name for one in field.split(separator) if (name := re.split(r"[\s(:\[]", one.strip())[0])]


def _merged(path: str) -> str:
    """Return a path as with a merged /usr, where /bin is a link to /usr/bin."""
    return re.sub(r"^/(bin|sbin|lib)/", r"/usr/\1/", path)
