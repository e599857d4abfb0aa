"""Planted defects: what a hunt for faults should find, as patches of our own code.

`mutants/catalogue.yaml` lists them: each is a slip that an engineer could have made in one of the state
machines, which a run without faults does not show. A patch is never applied to the code that stands here:
`planted_copy` makes a copy of the packages, of hard links where files stay as they are, and applies it there.
Compiled modules come along, so that a child compiles only what its patch changed.
A Python that has the copy first on its path (`planted_environment`) runs the mutated code.

No schedule that shows a defect is written down, only, for people, what it takes: a search is to find it by
itself, and is shown nothing of the catalogue but the names.
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
    """A mutant cannot be made of the code as it stands."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One planted defect.

    files: those that its patch changes, from the root of the project. slip: what was done wrong. breaks: the
    promise that does not hold then. takes: what it takes to see that, as far as its author knows.
    is_set_aside: it is shown to no search before the end. is_witnessed: its author saw a simulated run fail.
    """

    name: str
    system: str
    files: tuple[str, ...]
    slip: str
    breaks: str
    takes: str
    is_set_aside: bool
    is_witnessed: bool

    @property
    def patch(self) -> Path:
        """The unified diff, with paths from the root of the project."""
        return MUTANTS / self.system / f"{self.name}.patch"


@cache
def mutants() -> tuple[Mutant, ...]:
    """All of the catalogue, in its order."""
    return tuple(map(_mutant, yaml.safe_load(CATALOGUE.read_text())))


def _mutant(row: Mapping[str, object]) -> Mutant:
    given = dict(row)
    files = given.pop("files")
    assert isinstance(files, list), f"{row['name']}: files is a list"
    aside, witnessed = bool(given.pop("set_aside", False)), bool(given.pop("witnessed", False))
    texts = {name: str(value) for name, value in given.items()}
    return Mutant(files=tuple(files), is_set_aside=aside, is_witnessed=witnessed, **texts)


def planted_copy(mutant: Mutant, destination: Path, packages: Sequence[str] = PACKAGES) -> Path:
    """Make a copy of our packages with a mutant's patch applied; returns where it is, which is `destination`.

    destination: a folder that does not exist yet. packages: those that are copied; all are needed for a run.
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
    """As a hard link; a copy where the folder is on another file system, or links are not allowed."""
    try:
        os.link(source, destination, follow_symlinks=False)
    except OSError as error:
        if error.errno not in {errno.EXDEV, errno.EPERM, errno.EMLINK}:
            raise
        shutil.copy2(source, destination, follow_symlinks=False)


def _make_own(file: Path, mutant: Mutant) -> None:
    """Replace a hard-linked file by a copy, so that changes do not affect the original."""
    if not file.exists():
        raise PlantingError(f"{mutant.name}: its patch changes {file}, which is not there any more")
    content = file.read_bytes()
    file.unlink()
    file.write_bytes(content)
    Path(cache_from_source(file)).unlink(missing_ok=True)


def _apply(mutant: Mutant, destination: Path) -> None:
    before = {file: (destination / file).read_bytes() for file in mutant.files}
    # git must not take the folder for a part of a repository above it, where it would leave out all paths
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
            raise PlantingError(f"{mutant.patch} leaves {file} as it is, which the catalogue says it changes")


def planted_environment(copy: Path) -> dict[str, str]:
    """Return the environment of a Python that imports Cutset from a copy, and the tests from here.

    The command must begin like `experiments.child_python.python_command`.
    """
    path = os.pathsep.join([str(copy.absolute()), str(PROJECT)])
    return {**os.environ, **SAFE_ENVIRONMENT, "PYTHONPATH": path}
