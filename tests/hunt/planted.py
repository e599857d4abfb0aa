"""Planted defects, which `cutset hunt` should find, as patches of Cutset's code.

`mutants/catalogue.yaml` lists them. Each is a plausible mistake in a state machine that a run without faults
does not show. `planted_copy` applies a patch to a copy of the packages and never to this checkout. The copy
hard-links unchanged files and includes compiled modules, so a child compiles only changed files. A Python
with the copy first on its path (`planted_environment`) runs the mutated code.

The catalogue tells readers what triggers a defect. It has no fault schedules, and a search reads only names.
"""

import errno
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import cache_from_source
from pathlib import Path

import yaml

from experiments.child_python import SAFE_ENVIRONMENT

PROJECT = Path(__file__).resolve().parents[2]
MUTANTS = Path(__file__).with_name("mutants")
CATALOGUE = MUTANTS / "catalogue.yaml"
PACKAGES = ("analysis", "experiments", "node", "systems", "testbed", "topologies")
APPLY_TIMEOUT_S = 60


class PlantingError(Exception):
    """The patch of a mutant does not apply to the current code."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One planted defect.

    files: paths that its patch changes, from the root of the project. defect: the mistake. effect: the broken
    promise. trigger: known faults or settings that show it. is_held_out: not used while the search is tuned.
    is_reproduced: a simulated run has failed because of it.
    """

    name: str
    system: str
    files: tuple[str, ...]
    defect: str
    effect: str
    trigger: str
    is_held_out: bool
    is_reproduced: bool

    @property
    def patch(self) -> Path:
        """Return the path of the unified diff, whose paths start at the root of the project."""
        return MUTANTS / self.system / f"{self.name}.patch"


@cache
def mutants() -> tuple[Mutant, ...]:
    """Return all mutants in the order of the catalogue."""
    return tuple(map(_mutant, yaml.safe_load(CATALOGUE.read_text())))


def _mutant(row: Mapping[str, object]) -> Mutant:
    given = dict(row)
    files = given.pop("files")
    assert isinstance(files, list), f"{row['name']}: files is a list"
    held_out, reproduced = bool(given.pop("held_out", False)), bool(given.pop("reproduced", False))
    texts = {name: str(value) for name, value in given.items()}
    return Mutant(files=tuple(files), is_held_out=held_out, is_reproduced=reproduced, **texts)


def planted_copy(mutant: Mutant, destination: Path, packages: Sequence[str] = PACKAGES) -> Path:
    """Copy Cutset's packages, apply a mutant's patch to the copy, and return `destination`.

    destination: a folder that does not exist yet. packages: names of the packages to copy; a run needs all.
    Raises PlantingError if the patch does not apply.
    """
    for package in packages:
        shutil.copytree(
            PROJECT / package,
            destination / package,
            symlinks=True,
            ignore=shutil.ignore_patterns("node_modules"),
            copy_function=_link,
        )
    for file in mutant.files:
        _make_own(destination / file, mutant)
    _apply(mutant, destination)
    return destination


def _link(source: str, destination: str) -> None:
    """Make a hard link, or a copy if the file system or the permissions do not allow a link."""
    try:
        os.link(source, destination, follow_symlinks=False)
    except OSError as error:
        if error.errno not in {errno.EXDEV, errno.EPERM, errno.EMLINK}:
            raise
        shutil.copy2(source, destination, follow_symlinks=False)


def _make_own(file: Path, mutant: Mutant) -> None:
    """Replace a hard-linked file by a copy, so that changes do not affect the original."""
    if not file.exists():
        raise PlantingError(f"{mutant.name}: its patch changes {file}, which does not exist any more")
    content = file.read_bytes()
    file.unlink()
    file.write_bytes(content)
    Path(cache_from_source(file)).unlink(missing_ok=True)


def _apply(mutant: Mutant, destination: Path) -> None:
    before = {file: (destination / file).read_bytes() for file in mutant.files}
    # Without it, git finds a repository above the folder and ignores all paths.
    environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(destination.absolute().parent)}
    command = ["git", "apply", "--whitespace=nowarn", str(mutant.patch)]
    done = subprocess.run(
        command, cwd=destination, env=environment, capture_output=True, text=True,
        timeout=APPLY_TIMEOUT_S, check=False,
    )  # fmt: skip
    if done.returncode:
        raise PlantingError(f"{mutant.patch} does not apply any more, rewrite it: {done.stderr.strip()}")
    for file, content in before.items():
        if (destination / file).read_bytes() == content:
            raise PlantingError(f"{mutant.patch} does not change {file}, which the catalogue lists")


def planted_environment(copy: Path) -> dict[str, str]:
    """Return the environment of a Python that imports Cutset from a copy, and the tests from this checkout.

    The command must begin like `experiments.child_python.python_command`.
    """
    path = os.pathsep.join([str(copy.absolute()), str(PROJECT)])
    return {**os.environ, **SAFE_ENVIRONMENT, "PYTHONPATH": path}
