"""What systems declare, for all that plan, watch, check or draw runs; quick to import."""

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
    "is_sent",
    "module_files",
    "oldest",
]


def declared_by(system: str) -> Declared:
    """What a known system declares."""
    return systems()[system].declared
