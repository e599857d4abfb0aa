"""The types of values in a question, and how a part of it is refused."""

from collections.abc import Sequence
from typing import Any, Final, NoReturn

from sqlglot import exp

from analysis.sql.dialect_functions import FUNCTIONS, DialectFunction


def refuse(node: exp.Expr, problem: str) -> NoReturn:
    """Refuse a part of a question."""
    raise Refused(node, problem)


class Refused(Exception):  # noqa: N818 - becomes a DialectError once the line is known
    """A refused part of a question, and why."""

    def __init__(self, node: exp.Expr, problem: str) -> None:
        super().__init__(problem)
        self.node, self.problem = node, problem


def kind(node: exp.Expr) -> str:
    """Return the kind of a value: a letter of `KINDS`, `d` for DOUBLE, `r` struct, `0` NULL, `?` unknown."""
    return _kind(node.type)


def _kind(of: exp.DataType | None) -> str:
    if of is None or of.this == exp.DType.UNKNOWN:
        return "?"
    return next((letter for letter, types in _TYPES.items() if of.this in types), "?")


_TYPES: Final = {
    "i": exp.DataType.INTEGER_TYPES,
    "d": {exp.DType.DOUBLE, exp.DType.DECIMAL, exp.DType.FLOAT},
    "s": exp.DataType.TEXT_TYPES,
    "b": {exp.DType.BOOLEAN},
    "x": {exp.DType.BINARY, exp.DType.VARBINARY},
    "a": {exp.DType.ARRAY, exp.DType.LIST},
    "r": {exp.DType.STRUCT},
    "0": {exp.DType.NULL},
}


def family(node: exp.Expr) -> str:
    """Return the kind, with integers and DOUBLE as one."""
    return {"i": "n", "d": "n"}.get(found := kind(node), found)


def function_of(node: exp.Expr | None) -> DialectFunction | None:
    """Return the function that a node calls."""
    return FUNCTIONS.get(node.name.lower()) if isinstance(node, exp.Anonymous) else None


def is_distinct(node: exp.Expr) -> bool:
    """Return whether the arguments of a call follow DISTINCT."""
    return bool(node.expressions) and isinstance(node.expressions[0], exp.Distinct)


def arguments(node: exp.Expr) -> Sequence[exp.Expr]:
    """Return the arguments of a call, without DISTINCT."""
    return node.expressions[0].expressions if is_distinct(node) else node.expressions


_UNKNOWN: Final = exp.DataType.build("UNKNOWN")


def _annotate_call(annotator: Any, node: exp.Anonymous) -> exp.Anonymous:
    function = function_of(node)
    annotator._set_type(node, _type_of_call(function, arguments(node)) if function else _UNKNOWN)
    return node


def _type_of_call(function: DialectFunction, given: Sequence[exp.Expr]) -> Any:
    arrays = [each.type for each in given if each.type is not None and kind(each) == "a"]
    match function.gives:
        case "element" | "array":
            [inner] = (arrays[0].expressions if arrays else None) or [_UNKNOWN]
            return inner if function.gives == "element" else arrays[0] if arrays else inner
        case "array of":
            return exp.DataType(this=exp.DType.ARRAY, expressions=[given[0].type], nested=True)
        case "sum":
            return exp.DType.DOUBLE if given and kind(given[0]) == "d" else exp.DType.BIGINT
        case "common":
            results = given[1:] if function.takes[0] in ".b" else given  # not the condition
            values = [each for each in results if kind(each) != "0"] or list(results)
            widest = next((each for each in values if kind(each) == "d"), values[0] if values else None)
            return widest.type if widest is not None else exp.DType.NULL
        case name:
            return exp.DataType.build(name, dialect="spark")


TYPED_CALLS: Final = {exp.Anonymous: {"annotator": _annotate_call}}
"""Tells sqlglot the types of calls."""


def is_over_rows(node: exp.Anonymous) -> bool:
    """Return whether a call computes a value of several rows."""
    function = function_of(node)
    return function is not None and bool(function.over)
