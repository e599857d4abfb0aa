"""Expectations: comparisons such as `recovery.cut.switch_s <= 2`, evaluated on summary.json after the run.

A path follows summary.json's mappings by key, and its lists by the `name` or `link` of their items
(`fidelity.links.r2-r3.delay_p99_ms`). The known first parts of paths are checked when the file is read, so
that a mistyped one does not cost a whole run. An expectation on a missing or null value never holds.
"""

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Protocol, Self

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

from topologies.strict import problem

Value = float | int | bool | str

OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
}
WRITTEN = re.compile(
    r"(?P<path>[A-Za-z_][\w-]*(?:\.[\w-]+)*)\s*(?P<operator><=|>=|==|!=|<|>)\s*(?P<value>[\w.+-]+)", re.ASCII
)
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
TEXT_MAX = 200
EXAMPLE = "recovery.cut.switch_s <= 2"
WORDS: dict[str, bool] = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Expectation:
    """One comparison. op: a key of OPERATORS."""

    path: str
    op: str
    value: Value

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse `path op value`. Raises ValueError with the problem."""
        match = WRITTEN.fullmatch(text.strip()) if len(text) <= TEXT_MAX else None
        if match is None:
            raise ValueError(f"{text!r:.60} is not a comparison such as: {EXAMPLE}")
        value = _value(match["value"])
        if match["operator"] not in ("==", "!=") and isinstance(value, (bool, str)):
            raise ValueError(f"{match['value']} has no order: compare it with == or !=")
        return cls(match["path"], match["operator"], value)

    @property
    def text(self) -> str:
        """The text as in the file."""
        value = str(self.value).lower() if isinstance(self.value, bool) else self.value
        return f"{self.path} {self.op} {value}"

    def evaluate(self, summary: Mapping[str, Any]) -> dict[str, Any]:
        """Return {"text", "value": the value found or None, "held"}, as summary.json lists it."""
        found = value_at(summary, self.path)
        return {"text": self.text, "value": found, "held": self._holds(found)}

    def _holds(self, found: Any) -> bool:
        if _kind(found) != _kind(self.value) or (isinstance(found, float) and math.isnan(found)):
            return False
        return OPERATORS[self.op](found, self.value)


def _kind(value: Any) -> str:
    """Return the kind of a value. Only values of the same kind can be equal: False is not 0."""
    if isinstance(value, bool):
        return "truth"
    return "number" if isinstance(value, (int, float)) else type(value).__name__


def _value(text: str) -> Value:
    if text in WORDS:
        return WORDS[text]
    if NUMBER.fullmatch(text):
        return number(text)
    if text[0].isalpha():
        return text
    raise ValueError(f"{text} is neither a number nor a word; its unit is in the path")


def number(text: str) -> float | int:
    """Parse a number; whole ones stay exact. Raises ValueError."""
    return int(text) if re.fullmatch(r"[+-]?\d{1,18}", text, re.ASCII) else float(text)


def number_of(value: Any) -> bool:
    """Return whether the value is a number other than NaN."""
    return _kind(value) == "number" and not math.isnan(value)


def value_at(summary: Mapping[str, Any], path: str) -> Any:
    """Return the plain value at a path of summary.json, or None."""
    found = _below(summary, path.split("."))
    return found if isinstance(found, (bool, int, float, str)) else None


def _below(found: Any, parts: Sequence[str]) -> Any:
    if not parts:
        return found
    if isinstance(found, list):
        named = (item for item in found if isinstance(item, Mapping))
        item = next((item for item in named if parts[0] in (item.get("name"), item.get("link"))), None)
        return _below(item, parts[1:])
    if isinstance(found, Mapping):
        for length in range(1, len(parts) + 1):  # names of streams may contain dots: `r0.1`
            if (key := ".".join(parts[:length])) in found:
                return _below(found[key], parts[length:])
    return None


def found_text(value: Any) -> str:
    """Return the value found by an expectation, as text."""
    return "not measured" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def missed_text(evaluated: Mapping[str, Any]) -> str:
    """Return `events.lost == 0 did not hold (3)`. evaluated: see `Expectation.evaluate`."""
    return f"{evaluated['text']} did not hold ({found_text(evaluated['value'])})"


class Comparison(Protocol):
    """A comparison that is written as text."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse it. Raises ValueError with the problem."""

    @property
    def text(self) -> str:
        """The text as in the file."""


def written_as_text(kind: type[Comparison], example: str, *examples: str) -> tuple[Any, ...]:
    """Return the annotations of a field that holds such comparisons.

    example: for errors. examples: for the JSON schema.
    """

    def read(given: Any) -> Comparison:
        if isinstance(given, kind):
            return given
        if not isinstance(given, str):
            raise problem(f"should be a comparison such as: {example}, not {given!r:.40}")
        try:
            return kind.parse(given)
        except ValueError as error:
            raise problem(str(error)) from None

    return (
        BeforeValidator(read),
        PlainSerializer(lambda comparison: comparison.text, return_type=str, when_used="json"),
        WithJsonSchema({"type": "string", "examples": list(examples)}),
    )


ExpectationField = Annotated[Expectation, *written_as_text(Expectation, EXAMPLE, "events.lost == 0", EXAMPLE)]
