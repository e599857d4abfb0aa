"""JSON objects in files: written whole, read with what is wrong in one line."""

import gc
import json
from collections import defaultdict
from math import isfinite
from pathlib import Path
from typing import Any, NoReturn

from experiments.whole_files import write_whole
from topologies.errors import InputError

LARGE_BYTES = 32 << 20
"""Of a JSON file: from there on its objects are looked at one by one."""
ALIKE_MAX = 64
"""Objects of the same fields that are looked for among those that follow."""


def write_json(path: Path, content: Any) -> None:
    """Write JSON so that a crash at any moment leaves the old content or the new, never a part."""
    write_whole(path, json.dumps(content, indent=1, allow_nan=False) + "\n")


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object in a file. Raises InputError if it is missing or unreadable."""
    try:
        content = _parsed(path.read_bytes())
    except OSError as error:
        raise InputError(str(path), None, "", f"cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(str(path), None, "", f"is not JSON: {error}") from None
    if not isinstance(content, dict):
        raise InputError(str(path), None, "", "should hold a JSON object")
    return content


def _parsed(text: bytes) -> Any:
    """Of a run with a hundred thousand hosts most objects are alike: of those one is kept, for readers."""
    numbers: dict[str, Any] = {"parse_constant": _no_number, "parse_float": _finite}
    if len(text) < LARGE_BYTES:
        return json.loads(text, **numbers)
    decoded = text.decode()
    del text
    known: defaultdict[tuple[str, ...], dict[tuple[Any, ...], dict[str, Any]]] = defaultdict(dict)

    def shared(made: dict[str, Any]) -> dict[str, Any]:
        alike, values = known[tuple(made)], tuple(made.values())
        if any(isinstance(value, list | dict) for value in values):
            return made
        key = (*values, *map(type, values))
        return alike.setdefault(key, made) if key in alike or len(alike) < ALIKE_MAX else made

    collecting = gc.isenabled()
    gc.disable()  # nothing of what is made goes, and it has no cycles
    try:
        return json.loads(decoded, object_hook=shared, **numbers)
    finally:
        if collecting:
            gc.enable()


def _no_number(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number")


def _finite(digits: str) -> float:
    number = float(digits)
    return number if isfinite(number) else _no_number(digits)
