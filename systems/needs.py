"""The needs of a system of programs on the machine where it runs: presence and versions.

Modules are those of the Python that runs clients, or in the folder of `make systems`. Packages of Node.js are
found as Node.js finds them: in a folder node_modules beside the system's file, or further up.
"""

import importlib.metadata
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from node.core.program import Need, Program

MODULES = Path(__file__).resolve().parents[1] / ".systems" / "python"
"""The folder into which `make systems` installs Python modules, separate from Cutset's own requirements."""
VERSION_TIMEOUT_S = 20.0


def missing(needs: Iterable[Need], path: str, folder: Path | None = None) -> Iterator[Need]:
    """Yield the needs that are not installed, or too old.

    path: PATH, for programs. folder: the system's, for packages; without it all packages are missing.
    """
    for need in needs:
        if need.kind == "program":
            is_there = shutil.which(need.name, path=path) is not None and _is_new_enough(need, path)
        elif need.kind == "package":
            is_there = _package_file(need.name, folder) is not None
        else:
            is_there = _has_module(need.name)
        if not is_there:
            yield need


def roles_naming(need: Need, roles: Mapping[str, Program]) -> set[str]:
    """Return the roles that name a program in `run` or `ready`; none if only scripts start it."""
    return {name for name, each in roles.items() if need.name in {*each.run, *each.ready.command}}


def outside_images(needs: Iterable[Need], roles: Mapping[str, Program]) -> Iterator[Need]:
    """Yield the needs without programs that are in an image: all roles that name them have one, or, if only
    scripts start them, all roles that are no clients.
    """
    servers = {name for name, each in roles.items() if not each.is_client}
    for need in needs:
        starting = roles_naming(need, roles) or servers
        if need.kind != "program" or not starting or any(roles[name].image is None for name in starting):
            yield need


def version_of(need: Need, path: str, folder: Path | None = None) -> str | None:
    """Return the installed version of a need; None if unknown. path, folder: as for `missing`."""
    if need.kind == "module":
        return _module_version(need)
    if need.kind == "package":
        return _package_version(need.name, folder)
    return _program_version(need, path)


def _program_version(need: Need, path: str) -> str | None:
    if not need.version:
        return None
    try:
        done = subprocess.run(
            need.version,
            capture_output=True,
            text=True,
            check=False,
            timeout=VERSION_TIMEOUT_S,
            env={**os.environ, "PATH": path},
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return next((line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()), None)


def _is_new_enough(need: Need, path: str) -> bool:
    """Return whether a program has at least the needed version; false if its version is unknown."""
    if not need.at_least:
        return True
    found = re.search(r"\d+(\.\d+)*", _program_version(need, path) or "")
    return found is not None and _numbers(found[0]) >= _numbers(need.at_least)


def _numbers(version: str) -> list[int]:
    return [int(number) for number in version.split(".")]


def _package_file(name: str, folder: Path | None) -> Path | None:
    """Return the package.json of a package of Node.js that programs in this folder import, or None."""
    if folder is None:
        return None
    above = (each / "node_modules" / name / "package.json" for each in (folder, *folder.parents))
    return next((path for path in above if path.is_file()), None)


def _package_version(name: str, folder: Path | None) -> str | None:
    file = _package_file(name, folder)
    try:
        version = json.loads(file.read_text())["version"] if file else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return version if isinstance(version, str) else None


def _has_module(name: str) -> bool:
    top = name.partition(".")[0]
    if any((MODULES / each).exists() for each in (top, f"{top}.py")):
        return True
    return importlib.util.find_spec(top) is not None


def _module_version(need: Need) -> str | None:
    distribution = next(iter(need.version), need.name)
    found = next(
        iter(importlib.metadata.distributions(name=distribution, path=[str(MODULES), *sys.path])), None
    )
    return found.version if found else None
