"""What systems declare, for all that plan, watch, check or draw runs; quick to import."""

from collections.abc import Mapping
from typing import Any

from node.core.declaration import Contract, Declared, Trait
from node.systems import SENT_FOLDER, UnknownSystemError, add_module, is_sent, module_files, oldest, systems

__all__ = [
    "SENT_FOLDER",
    "Contract",
    "Declared",
    "Trait",
    "UnknownSystemError",
    "add_module",
    "declared_by",
    "declared_in",
    "is_sent",
    "module_files",
    "oldest",
]


def declared_by(system: str) -> Declared:
    """What a known system declares."""
    return systems()[system].declared


def declared_in(plan: Mapping[str, Any]) -> Declared:
    """What the system of a plan, as run.json has it, declares.

    Raises KeyError, TypeError or ValueError if somebody changed it.
    """
    if given := plan.get("declared"):
        return Declared.from_json(given)
    return oldest()
