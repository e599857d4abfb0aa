"""Known systems under test and their code.

These are the systems that ship with Cutset, those of installed packages by the entry point group
`cutset.systems`, and those of modules that the user names (`--system-module`), which child processes get
through their environment. Nothing in an experiment or in a run directory leads to code.
"""

import importlib
import importlib.util
import os
import sys
from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import node
from node.core.declaration import Declared, Reading, Study, System
from node.protocols.meghdoot.declaration import SYSTEM as MEGHDOOT
from node.protocols.scribe.declaration import SYSTEM as SCRIBE
from node.protocols.sprinkler.declaration import SYSTEM as SPRINKLER

if TYPE_CHECKING:
    from node.core.machine import Machine, Randomness
    from node.core.message_layout import Codec
    from node.core.specification import NodeSpec

OURS = (SPRINKLER, SCRIBE, MEGHDOOT)
GROUP = "cutset.systems"
MODULES_VARIABLE = "CUTSET_SYSTEM_MODULES"
"""Absolute paths of the user's files, as in PATH."""
ATTRIBUTE = "SYSTEM"
SENT_FOLDER = "own_systems"
"""Folder beside the packages, in the code sent to other machines: the files that the user named here."""


class UnknownSystemError(ValueError):
    """A named module declares no system, or cannot be imported."""


def add_module(path: Path) -> None:
    """Make a file's system known, here and in processes started from now on.

    Raises UnknownSystemError if it declares none.
    """
    named = [each for each in os.environ.get(MODULES_VARIABLE, "").split(os.pathsep) if each]
    _of_file(path)
    if str(path.absolute()) not in named:
        os.environ[MODULES_VARIABLE] = os.pathsep.join([*named, str(path.absolute())])
    systems.cache_clear()


def module_files() -> tuple[Path, ...]:
    """Return the files that the user named, here or on the machine that sent this code."""
    named = [Path(each) for each in os.environ.get(MODULES_VARIABLE, "").split(os.pathsep) if each]
    return (*sorted((node.HERE.resolve().parent / SENT_FOLDER).glob("*.py")), *named)


def is_sent(system: str) -> bool:
    """Return whether a system's code is sent to other machines: it ships with Cutset or is a file of the
    user.
    """
    own = {_of_file(path).declared.name for path in module_files()}
    return system in {*(ours.declared.name for ours in OURS), *own}


def distributions_of(system: str) -> tuple[str, ...]:
    """Return the additional installed packages that a system's nodes import."""
    return systems()[system].distributions if system in systems() else ()


@cache
def systems() -> dict[str, System]:
    """Return all known systems by name. User files override installed packages, which override ours."""
    found = {system.declared.name: system for system in OURS}
    for entry in entry_points(group=GROUP):
        system = _of_package(entry)
        found[system.declared.name] = system
    for path in module_files():
        system = _of_file(path)
        found[system.declared.name] = system
    return found


def default_declaration() -> Declared:
    """Return the system of a run directory without a declaration: there was only one when it was written."""
    return SPRINKLER.declared


def codec_of(system: str) -> "Codec | None":
    """Return the codec of a system's messages; None if it is unknown."""
    codec: Codec | None = _code_of(system, "codec")
    return codec


def codecs() -> "dict[str, Codec]":
    """Return the codecs of all systems that have one."""
    return {name: codec for name in systems() if (codec := codec_of(name)) is not None}


def reading_of(system: str) -> Reading | None:
    """Return how the analysis reads a system; None if it is unknown."""
    reading: Reading | None = _code_of(system, "reading")
    return reading


def report_of(system: str) -> Any:
    """Return the code that builds a system's sections of reports; None if there is none."""
    return _code_of(system, "report")


def studies_of(system: str) -> Mapping[str, Study]:
    """Return the studies of a known system, by name."""
    found: Mapping[str, Study] | None = resolve(systems()[system].studies)
    return found or {}


def load_machines(system: str) -> None:
    """Import all modules of a system's processes, so that processes forked from this one share them."""
    if system in systems():
        codec_of(system)
        for machine in systems()[system].machines.values():
            resolve(machine)


def build_machine(spec: "NodeSpec", rng: "Randomness") -> "Machine":
    """Build the machine of a node. Raises ValueError if its system or role does not exist."""
    system = systems().get(spec.system)
    if system is None:
        raise ValueError(f"{spec.name}: unknown system {spec.system}")
    if spec.role not in system.machines:
        raise ValueError(f"{spec.name}: {spec.system} has no role {spec.role}")
    machine: Machine = resolve(system.machines[spec.role])(spec, rng)
    return machine


def resolve(code: Any) -> Any:
    """Return an object, or the object that a reference names."""
    if not isinstance(code, str):
        return code
    module, _, attribute = code.partition(":")
    return getattr(importlib.import_module(module), attribute)


def _code_of(system: str, what: str) -> Any:
    """Return an object that a known system declares; None if the system is unknown."""
    known = systems().get(system)
    return resolve(getattr(known, what)) if known else None


def _of_package(entry: EntryPoint) -> System:
    """Load the system of an installed package. Raises UnknownSystemError, also if it cannot be imported."""
    where = f"{entry.value} of the installed package {entry.dist.name if entry.dist else '?'}"
    try:
        system = entry.load()
    except Exception as error:
        raise UnknownSystemError(f"{where}: {type(error).__name__}: {error}") from error
    return _checked(system, where)


def _of_file(path: Path) -> System:
    return _checked(getattr(_module(path.absolute()), ATTRIBUTE, None), str(path))


@cache
def _module(path: Path) -> ModuleType:
    """Import a file as a module under its own name, because its references may name it."""
    known = sys.modules.get(path.stem)
    if known is not None and known.__file__ == str(path):
        return known
    if known is not None or importlib.util.find_spec(path.stem) is not None:
        raise UnknownSystemError(f"{path}: there is a module {path.stem} already: give the file another name")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise UnknownSystemError(f"{path}: there is no such Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[path.stem]
        raise UnknownSystemError(f"{path}: {type(error).__name__}: {error}") from error
    return module


def _checked(system: Any, where: str) -> System:
    if not isinstance(system, System):
        raise UnknownSystemError(
            f"{where}: declares no system: {ATTRIBUTE} is no System of node.core.declaration"
        )
    problem = system.problem()
    if problem is not None:
        raise UnknownSystemError(f"{where}: {problem}")
    return system
