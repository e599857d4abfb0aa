"""The files that a system of programs needs on a machine besides our code, to be attached to its archive.

- The folder of the system's file (templates, clients, programs in it), as `SYSTEM_FOLDER`. Executables stay
  executable. Names that begin with a dot and bytecode are left out; symbolic links to targets outside of the
  folder are refused.
- The Python modules that it names as needs, and the installed requirements of their distributions, also
  compiled ones: a machine that takes part in runs has the same Python as this one. They are placed where
  `systems.needs` looks for them.
- The library of clients, which every machine gets with our own code.

Each is bounded. Programs outside of the folder are not sent: the machine must have them
(`testbed.machines.software.program_needs`).
"""

import importlib.metadata
import importlib.util
import os
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from node.core.program import Need, Programs
from systems.needs import MODULES
from testbed.errors import MachineError
from testbed.machines.archive import PROJECT, AttachedFiles, loadable_part
from topologies.errors import InputError

SYSTEM_FOLDER = "own_programs"
"""In an archive: the folder of the system's file."""
DISTRIBUTIONS = ("jinja2", "MarkupSafe")
"""Distributions that render templates (`systems.rendering`)."""
FOLDER_BYTES_MAX = 64 << 20
FOLDER_FILES_MAX = 10_000
MODULES_BYTES_MAX = 256 << 20
REQUIRED = re.compile(r"\s*([A-Za-z0-9._-]+)")
"""The name at the start of a distribution's requirement (PEP 508)."""
MODULES_IN_ARCHIVE = MODULES.relative_to(PROJECT).as_posix()
_BYTECODE = "__pycache__"


def attached(system: str, programs: Programs) -> AttachedFiles:
    """Return the files that the archive for a run of this system has besides our code.

    Raises InputError if its folder cannot be sent, MachineError if a module is not installed here.
    """
    folder = Path(programs.folder)
    paths = dict(_folder_files(folder, programs.file))
    _check_size(folder, paths, programs.file)
    files = {f"{SYSTEM_FOLDER}/{name}": _read(path, programs.file) for name, path in paths.items()}
    executables = [f"{SYSTEM_FOLDER}/{name}" for name, path in paths.items() if os.access(path, os.X_OK)]
    modules = {
        f"{MODULES_IN_ARCHIVE}/{name}": loadable_part(_read(path, system))
        for need in programs.needs
        if need.kind == "module"
        for name, path in module_files(need)
    }
    if (size := sum(map(len, modules.values()))) > MODULES_BYTES_MAX:
        most = MODULES_BYTES_MAX >> 20
        raise MachineError(f"{system} needs {size >> 20} MiB of Python modules; at most {most} are sent")
    return AttachedFiles({**files, **modules}, frozenset(executables))


def module_files(need: Need) -> list[tuple[str, Path]]:
    """Return the files of a module and its requirements, by their path in a folder of modules."""
    top = need.name.partition(".")[0]
    if top in sys.stdlib_module_names:
        return []
    found = next((known for name in _candidates(need, top) if (known := _distribution(name))), None)
    if found is not None:
        return list(_distribution_files(found))
    beside = [MODULES / top, MODULES / f"{top}.py"]
    spec = importlib.util.find_spec(top)
    if spec is not None and spec.submodule_search_locations:
        beside += map(Path, spec.submodule_search_locations)
    elif spec is not None and spec.origin is not None:
        beside.append(Path(spec.origin))
    place = next((path for path in beside if path.exists()), None)
    if place is None:
        raise MachineError(f"machines need the module `{need.name}`, which is not installed here: {need.get}")
    below = sorted(path for path in place.rglob("*") if path.is_file()) if place.is_dir() else [place]
    return [
        (path.relative_to(place.parent).as_posix(), path) for path in below if _BYTECODE not in path.parts
    ]


def _candidates(need: Need, top: str) -> Iterator[str]:
    """Yield names of distributions that may contain a module."""
    yield from (*need.version, need.name)
    yield from importlib.metadata.packages_distributions().get(top, ())


def _distribution_files(first: importlib.metadata.Distribution) -> Iterator[tuple[str, Path]]:
    """Yield the files of a distribution and of its installed requirements."""
    waiting, known = [first], {first.name}
    while waiting:
        distribution = waiting.pop()
        for file in distribution.files or ():
            if ".." not in file.parts and _BYTECODE not in file.parts:
                path = Path(str(file.locate()))
                if path.is_file():
                    yield file.as_posix(), path
        for other in filter(None, map(_distribution, _required(distribution.requires or ()))):
            if other.name not in known:
                known.add(other.name)
                waiting.append(other)


def _required(requirements: Iterable[str]) -> Iterator[str]:
    """Yield names of required distributions; those of extras are left out."""
    for requirement in requirements:
        named = REQUIRED.match(requirement)
        if named is not None and "extra ==" not in requirement:
            yield named[1]


def _distribution(name: str) -> importlib.metadata.Distribution | None:
    """Return the distribution that Python would import; None if it is not installed."""
    path = [str(MODULES), *sys.path]
    return next(iter(importlib.metadata.distributions(name=name, path=path)), None)


def _folder_files(folder: Path, file: str) -> Iterator[tuple[str, Path]]:
    """Yield files by their path in the folder, in a reproducible order."""
    for current, folders, names in os.walk(folder):
        folders[:] = sorted(each for each in folders if not each.startswith(".") and each != _BYTECODE)
        for name in sorted([*names, *(each for each in folders if (Path(current) / each).is_symlink())]):
            path = Path(current) / name
            if name.startswith("."):
                continue
            if not path.resolve().is_relative_to(folder.resolve()):
                problem = f"its folder is sent to machines, but {path} leads out of it"
                raise InputError(file, None, "", problem)
            if path.is_file():
                yield path.relative_to(folder).as_posix(), path


def _check_size(folder: Path, paths: dict[str, Path], file: str) -> None:
    """Raise InputError if the folder is too large to be sent."""
    sizes = {name: path.stat().st_size for name, path in paths.items()}
    total = sum(sizes.values())
    if total <= FOLDER_BYTES_MAX and len(paths) <= FOLDER_FILES_MAX:
        return
    largest = max(sizes, key=sizes.__getitem__)
    raise InputError(
        file,
        None,
        "",
        f"its folder {folder} is sent to machines, but is too large: {len(paths)} files with"
        f" {total >> 20} MiB ({largest} has {sizes[largest] >> 20}); at most {FOLDER_FILES_MAX} with"
        f" {FOLDER_BYTES_MAX >> 20} MiB. Move the system into its own folder",
    )


def _read(path: Path, file: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(file, None, "", f"cannot read {path} to send it: {error.strerror}") from None
