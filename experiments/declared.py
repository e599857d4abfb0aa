"""What systems declare, for all that plan, watch, check or draw runs; quick to import."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from node.core.declaration import Contract, Declared, Trait
from node.systems import (
    SENT_FOLDER,
    UnknownSystemError,
    add_module,
    distributions_of,
    is_sent,
    module_files,
    oldest,
    systems,
)

__all__ = [
    "SENT_FOLDER",
    "Contract",
    "Declared",
    "Trait",
    "UnknownSystemError",
    "add_module",
    "declared_by",
    "declared_with",
    "distributions_of",
    "is_sent",
    "module_files",
    "oldest",
]


def declared_by(system: str) -> Declared:
    """What a known system declares."""
    return systems()[system].declared


def declared_with(system: str, parameters: Mapping[str, Any]) -> Declared:
    """What a known system declares, and promises with these parameters, all of them."""
    known = systems()[system]
    if known.promise is None:
        return known.declared
    return replace(known.declared, contract=known.promise(parameters))
