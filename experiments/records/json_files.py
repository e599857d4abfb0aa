"""JSON objects in files: written atomically, read with one-line errors."""

import json
import re
from math import isfinite
from pathlib import Path
from typing import Any, NoReturn

from experiments.files.plain_name import check_file
from experiments.files.whole_files import write_whole
from topologies.errors import InputError

SIZE_BYTES_MAX = 1 << 30
"""The largest record that is read; that of a run with 100,000 processes has some 100 MB."""
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def write_json(path: Path, content: Any) -> None:
    """Write JSON atomically: a crash at any moment leaves the old content or the new."""
    write_whole(path, json.dumps(content, indent=1, allow_nan=False) + "\n")


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object from a file. Raises InputError if it is missing or unreadable."""
    return parse_json(read_text(path), path)


def read_text(path: Path) -> bytes:
    """Read a file's content. Raises InputError, also for a pipe, a folder or a file over `SIZE_BYTES_MAX`."""
    try:
        check_file(path)
        if path.stat().st_size > SIZE_BYTES_MAX:
            raise InputError(str(path), None, "", f"has more than {SIZE_BYTES_MAX >> 20} MiB")
        return path.read_bytes()
    except OSError as error:
        raise InputError(str(path), None, "", f"cannot be read: {error.strerror}") from None


def parse_json(text: bytes, file: object) -> dict[str, Any]:
    """Parse a JSON object. file: named in errors. Raises InputError if it is none."""
    try:
        content = json.loads(text, parse_constant=_no_number, parse_float=_finite)
        if _SURROGATE.search(text):  # half a surrogate pair cannot be encoded
            json.dumps(content, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise InputError(str(file), None, "", f"is not JSON: {error}") from None
    if not isinstance(content, dict):
        raise InputError(str(file), None, "", "should hold a JSON object")
    return content


def _no_number(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a number")


def _finite(digits: str) -> float:
    number = float(digits)
    return number if isfinite(number) else _no_number(digits)
