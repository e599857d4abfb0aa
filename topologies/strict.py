"""Validation of the files that users write: strict models, and fields that hold quantities.

A model's fields are named with their unit (`delay_us`) and hold base units; users write the name without it
and the unit in the value (`delay: 15ms`). Unknown fields are refused with the nearest known name. Docstrings
of fields are their descriptions in the JSON schema. `topologies.document` adds file and line to errors.
"""

import ast
import difflib
import inspect
import itertools
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    PlainSerializer,
    WithJsonSchema,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError

from topologies.quantities import (
    DRIFT,
    DURATION,
    EVENT_RATE,
    FRACTION,
    OFFSET,
    PACKETS,
    RATE,
    SIZE,
    Quantity,
    QuantityError,
    parse_fraction,
    yaml_name,
)


def problem(message: str, *path: str | int) -> PydanticCustomError:
    """Return an error for a validator to raise; `path`: from the validated value to the field at fault."""
    return PydanticCustomError("problem", "{message}", {"message": message, "path": path})


@contextmanager
def problems_under(*path: str | int) -> Iterator[None]:
    """Prefix the paths of problems that are raised inside with `path`."""
    try:
        yield
    except PydanticCustomError as error:
        inner = error.context or {}
        raise problem(inner["message"], *path, *inner["path"]) from None


def suggestion(name: object, known: Iterable[str]) -> str:
    """Return ": did you mean x?" for the known name nearest to `name`, else ": known are x, y"."""
    names = list(known)
    near = difflib.get_close_matches(str(name), names, n=1)
    if near:
        return f": did you mean {near[0]}?"
    return f": known are {', '.join(names)}" if names else ""


class StrictModel(BaseModel):
    """A part of a file: frozen, without unknown fields, with units in the values.

    pydantic builds a model's validator at its first use, because a command uses few models.
    """

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        alias_generator=yaml_name,
        allow_inf_nan=False,
        defer_build=True,
    )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Add the fields' docstrings as descriptions; pydantic would read them at every import."""
        schema = handler(core_schema)
        properties = handler.resolve_ref_schema(schema)["properties"]
        for name, description in _field_docstrings(cls).items():
            properties[cls.model_fields[name].alias]["description"] = description
        return schema

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown_fields(cls, given: Any) -> Any:
        if isinstance(given, dict):
            known = [field.alias or name for name, field in cls.model_fields.items()]
            for name in given:
                if name not in known:
                    raise problem(f"unknown field{suggestion(name, known)}", name)
        elif not isinstance(given, cls):
            raise problem(f"should be a mapping of fields, not {given!r:.40}")
        return given


def _field_docstrings(model: type[StrictModel]) -> dict[str, str]:
    """Return the docstring of each field of a model from the source, with inherited fields."""
    found = {}
    for part in reversed(model.__mro__):
        if issubclass(part, StrictModel):
            (written,) = ast.parse(textwrap.dedent(inspect.getsource(part))).body
            for field, below in itertools.pairwise(cast("ast.ClassDef", written).body):
                match field, below:
                    case ast.AnnAssign(ast.Name(name)), ast.Expr(ast.Constant(str(text))) if (
                        name in model.model_fields  # others are variables of the class
                    ):
                        found[name] = inspect.cleandoc(text)
    return found


def _reader(parse: Callable[[object], float]) -> Callable[[object], float]:
    def read(text: object) -> float:
        try:
            return parse(text)
        except QuantityError as error:
            raise problem(str(error)) from None

    return read


def quantity_schema(quantity: Quantity) -> dict[str, Any]:
    """Return the JSON schema of a quantity as users write it."""
    return {"type": "string", "pattern": quantity.pattern, "examples": [quantity.example]}


def _annotations(quantity: Quantity) -> tuple[BeforeValidator, PlainSerializer, WithJsonSchema]:
    parse = parse_fraction if quantity is FRACTION else quantity.parse
    return (
        BeforeValidator(_reader(parse)),
        PlainSerializer(quantity.format, return_type=str, when_used="json"),
        WithJsonSchema(quantity_schema(quantity)),
    )


def spelled(pattern: str, words: str, length_max: int) -> tuple[AfterValidator, WithJsonSchema]:
    """Return annotations for a text that matches the whole pattern. words: its description in errors."""

    def check(text: str) -> str:
        if len(text) > length_max:
            raise problem(f"should have at most {length_max} characters, not {len(text)}")
        if not re.fullmatch(pattern, text):
            raise problem(f"should be {words}, not {text!r:.40}")
        return text

    schema = {"type": "string", "pattern": f"^{pattern}$", "maxLength": length_max}
    return AfterValidator(check), WithJsonSchema(schema)


DurationUs = Annotated[int, *_annotations(DURATION)]
OffsetUs = Annotated[int, *_annotations(OFFSET)]
DriftPpm = Annotated[int | float, *_annotations(DRIFT)]
RateBitsPerS = Annotated[int, *_annotations(RATE)]
SizeBytes = Annotated[int, *_annotations(SIZE)]
EventRatePerS = Annotated[int | float, *_annotations(EVENT_RATE)]
Fraction = Annotated[float, *_annotations(FRACTION)]
Packets = Annotated[int, *_annotations(PACKETS)]

WholeNumber = Annotated[int, Field(strict=True)]
Flag = Annotated[bool, Field(strict=True)]
Name = Annotated[str, *spelled("[a-z][a-z0-9_-]*", "a letter of a-z, then any of a-z, 0-9, _ and -", 60)]
