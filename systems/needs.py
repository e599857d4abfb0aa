"""What a system of programs needs on the machine where it runs: is it there, and of which version.

Modules are those of the Python that clients are started with, or in the folder of `make systems`.
"""

import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from node.core.program import Need

MODULES = Path(__file__).resolve().parents[1] / ".systems" / "python"
"""Where `make systems` puts modules of Python, apart from what Cutset itself needs."""
VERSION_TIMEOUT_S = 20.0


def missing(needs: Iterable[Need], path: str) -> Iterator[Need]:
    """Those that are not there. path: PATH, for programs."""
    for need in needs:
        is_program = need.kind == "program"
        if not (shutil.which(need.name, path=path) if is_program else _has_module(need.name)):
            yield need


def version_of(need: Need, path: str) -> str | None:
    """What is there says of its version; None if it does not."""
    if need.kind == "module":
        return _module_version(need)
    if not need.version:
        return None
    try:
        said = subprocess.run(
            need.version,
            capture_output=True,
            text=True,
            check=False,
            timeout=VERSION_TIMEOUT_S,
            env={**os.environ, "PATH": path},
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return next((line.strip() for line in (said.stdout + said.stderr).splitlines() if line.strip()), None)


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
