"""Reads users' files up to a size limit, and their rows and numbers. Errors name the file and the line."""

import math
from collections.abc import Iterator
from pathlib import Path

from topologies.errors import InputError

SHOWN_CHARACTERS = 40


def read_bounded(path: Path, file: str, bytes_max: int) -> bytes:
    """Return a file's content. file: its name in errors. Raises InputError, also if it is larger."""
    try:
        with path.open("rb") as stream:
            content = stream.read(bytes_max + 1)
    except OSError as error:
        raise InputError(file, None, "", f"cannot be read: {error.strerror}") from None
    if len(content) > bytes_max:
        most = f"{bytes_max >> 20} MiB" if bytes_max >> 20 else f"{bytes_max >> 10} KiB"
        raise InputError(file, None, "", f"is larger than {most}")
    return content


def decoded(content: bytes, file: str) -> str:
    """Return a file's text. Raises InputError with the line that is not UTF-8."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(file, content.count(b"\n", 0, error.start) + 1, "", "is not UTF-8 text") from None


def rows_of(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines with their numbers, without blank ones and comments, which begin with #."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            yield number, line


def number_in(text: str, *, file: str, line: int, name: str, most: float) -> float:
    """Return a number from 0 to `most`. name: of the column. Raises InputError."""
    shown = text.strip()[:SHOWN_CHARACTERS]
    try:
        value = float(text)
    except ValueError:
        raise InputError(file, line, "", f"{name} {shown!r} is not a number") from None
    if not (math.isfinite(value) and 0 <= value <= most):
        raise InputError(file, line, "", f"{name} {shown} should be from 0 to {most:g}")
    return value
