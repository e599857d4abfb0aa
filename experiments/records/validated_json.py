"""Converts untrusted JSON files to frozen dataclasses and back: one reader, one writer.

A dataclass's annotations define its file: types, ranges, names. An error is one line that names the file and
the field; unknown fields are refused, so that none is silently ignored. Fields with a default may be missing,
as in files of older versions.
"""

import gc
import json
from contextlib import suppress
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from experiments.files.plain_name import plain_name
from topologies.errors import InputError

Kind = TypeVar("Kind")

LARGE_BYTES = 32 << 20
"""Size of a file from which freeing the parser's memory is worthwhile."""
STRICT: ConfigDict = ConfigDict(extra="forbid", allow_inf_nan=False)
"""The `__pydantic_config__` of a file's outermost dataclass."""


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError(f"holds unprintable characters: {text!r:.60}")
    return text


def _part_of_a_path(text: str) -> str:
    try:
        return plain_name(text, "")
    except InputError as error:
        raise ValueError(error.problem) from None


def _without_infinity(content: dict[str, Any]) -> dict[str, Any]:
    json.dumps(content, allow_nan=False)
    return content


Free = Annotated[dict[str, Any], AfterValidator(_without_infinity)]
"""Any JSON object."""
Count = Annotated[int, Field(ge=0, lt=1 << 62)]
Seed = Annotated[int, Field(gt=-(1 << 64), lt=1 << 64)]
TimeNs = Annotated[int, Field(ge=0, lt=1 << 62)]
"""CLOCK_REALTIME; the bound leaves room for differences and margins within 64 bits."""
TimeUs = Annotated[int, Field(ge=0, le=10**13)]
"""Since time 0 of a run, or a duration; the bound is about four months."""
Share = Annotated[float, Field(ge=0, le=1)]
Text = Annotated[str, AfterValidator(_printable)]
Name = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_printable)]
FileName = Annotated[str, AfterValidator(_part_of_a_path)]
"""A single part of a path."""


def from_json(kind: type[Kind], content: Any, file: object) -> Kind:
    """Read the dataclass that `to_json` wrote. file: named in errors. Raises InputError with the field."""
    try:
        found: Kind = _adapter(kind).validate_python(content)
    except ValidationError as error:
        from topologies.document import dotted  # noqa: PLC0415 - only errors need YAML

        problems = error.errors(include_url=False)
        details = min(problems, key=lambda each: each["loc"] != ("schema",))  # it explains the others
        raise InputError(str(file), None, dotted(details["loc"]), _problem(details)) from None
    return found


def from_text(kind: type[Kind], text: bytes) -> Kind | None:
    """Parse a file's text directly, in a third of the time and memory; return None on any error."""
    collecting = gc.isenabled()
    gc.disable()  # all new objects stay, and none has cycles
    try:
        found: Kind = _adapter(kind).validate_json(text)
    except ValidationError:
        return None
    finally:
        if collecting:
            gc.enable()
        if len(text) >= LARGE_BYTES:
            _trim()
    return found


def _trim() -> None:
    """Return the parser's memory, several times the text, to the kernel; only glibc supports it."""
    import ctypes  # noqa: PLC0415 - for large files only

    with suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def to_json(value: Any) -> dict[str, Any]:
    """Convert the dataclass to plain JSON with all its fields."""
    content: dict[str, Any] = _adapter(type(value)).dump_python(value, mode="json", by_alias=True)
    return content


def _problem(details: ErrorDetails) -> str:
    from topologies.document import validation_message  # noqa: PLC0415 - as above

    unknown = details["type"] == "unexpected_keyword_argument"
    message = "unknown field" if unknown else validation_message(details, details["input"])
    elsewhere = unknown or details["loc"] == ("schema",)
    return f"{message}: was it written by another version of Cutset?" if elsewhere else message


_adapters: dict[type[Any], TypeAdapter[Any]] = {}


def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    """Return the dataclass's adapter, which is made at first use."""
    if kind not in _adapters:
        _adapters[kind] = TypeAdapter(kind)
    return _adapters[kind]
