"""The declarations of systems, for all modules that plan, watch, check or draw runs; quick to import.

A system is named by its name, or by the path of a file that declares its programs (`systems`).
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from node.core.declaration import Contract, Declared, System, Trait
from node.core.program import Programs
from node.systems import (
    SENT_FOLDER,
    UnknownSystemError,
    add_module,
    default_declaration,
    distributions_of,
    is_sent,
    module_files,
    systems,
)
from systems.names import is_path, system_names

if TYPE_CHECKING:
    from systems.loader import ProgramSystem

__all__ = [
    "SENT_FOLDER",
    "Contract",
    "Declared",
    "Trait",
    "UnknownSystemError",
    "add_module",
    "declared_by",
    "declared_with",
    "default_declaration",
    "distributions_of",
    "is_known_system",
    "is_sent",
    "known_system",
    "known_systems",
    "module_files",
    "programs_of",
]


def known_systems() -> list[str]:
    """Return the names of the systems that can be run."""
    return [*systems(), *(name for name in system_names() if name not in systems())]


def is_known_system(system: str) -> bool:
    """Return whether the system exists; any path counts, whatever its file holds."""
    return is_path(system) or system in known_systems()


def known_system(system: str) -> System:
    """Return a known system. Raises InputError for a file that declares none."""
    return systems()[system] if system in systems() else _program_system(system).system


def programs_of(system: str, images: Mapping[str, str] | None = None) -> Programs | None:
    """Return the programs of a known system; None if its nodes are state machines.

    images: of roles, in place of those in the system's file. Raises InputError if one cannot be used.
    """
    return None if system in systems() else _program_system(system, images).programs


def _program_system(system: str, images: Mapping[str, str] | None = None) -> "ProgramSystem":
    from systems.loader import load_system  # noqa: PLC0415 - keeps this module quick to import

    return load_system(system, images)


def declared_by(system: str) -> Declared:
    """Return the declaration of a known system."""
    return known_system(system).declared


def declared_with(system: str, parameters: Mapping[str, Any], workload: str) -> Declared:
    """Return the declaration of a known system with the contract that it promises for these values.

    parameters: all of them. workload: a kind that the system takes.
    """
    declaring = known_system(system)
    promised = declaring.declared
    if declaring.promise is not None:
        promised = replace(promised, contract=declaring.promise(parameters))
    return promised.taking(workload)
