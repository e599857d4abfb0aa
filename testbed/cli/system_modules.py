"""Systems of the user's own, by the Python files that declare them (`--system-module`)."""

from collections.abc import Iterable
from pathlib import Path

from experiments.declared import UnknownSystemError, add_module
from topologies.errors import InputError

OPTION = "--system-module"


def add(modules: Iterable[Path]) -> None:
    """Let these files' systems be known, here and in all that is started from here. Raises InputError."""
    for module in modules:
        try:
            add_module(module)
        except UnknownSystemError as error:
            raise InputError(OPTION, None, "", str(error)) from None
