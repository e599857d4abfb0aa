"""A file that a command is asked to write: where it goes, and what is said if it cannot be written."""

import shlex
from pathlib import Path


def check_directory(path: Path) -> None:
    """A mistyped directory is not made silently. Raises InputError."""
    from topologies.errors import InputError

    if not path.parent.is_dir():
        made_by = shlex.join(["mkdir", "-p", str(path.parent)])
        raise InputError(str(path), None, "", f"its directory is not there: `{made_by}` makes it")


def write_text(path: Path, text: str) -> None:
    """Write the file. Raises InputError if that cannot be done."""
    from topologies.errors import InputError

    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(str(path), None, "", f"cannot be written: {error.strerror}") from None
