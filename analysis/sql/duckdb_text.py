"""Writes a typed question of the dialect as SQL of DuckDB."""

from collections.abc import Callable
from typing import Any, Final

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.generators.duckdb import DuckDBGenerator

from analysis.sql.dialect_functions import DialectFunction
from analysis.sql.dialect_types import arguments, function_of, is_distinct, kind

Place = Callable[[exp.Expr], str]
"""Returns the line and words of the question that became a node."""


def duckdb_text(tree: exp.Expr, place: Place) -> str:
    """Return the question for DuckDB. Its errors name places of the user's question."""
    for select in tree.find_all(exp.Select):
        group = select.args.get("group")
        if group is not None and group.find(exp.Rollup, exp.Cube, exp.GroupingSets):
            rows = exp.Anonymous(this="count", expressions=[exp.Star()])
            select.having(
                exp.GT(this=rows, expression=exp.Literal.number(0)), copy=False
            )  # no total of no rows
    return _Generator(dialect=DuckDB, place=place).generate(tree)


class _Generator(DuckDBGenerator):
    """DuckDB's SQL with the meaning that Spark gives to functions, casts and operators."""

    def __init__(self, *, place: Place, **options: Any) -> None:
        super().__init__(**options)
        self._place = place

    def _error(self, node: exp.Expr, problem: str) -> str:
        text = _quoted(f"{self._place(node)} {problem}")
        if _is_in_order(node):  # which takes no error()
            return f"CAST(CAST({text} AS INTEGER) AS {self.sql(node.type)})"
        return f"error({text})"

    def call(self, node: exp.Anonymous) -> str:
        function = function_of(node)
        assert function is not None, "checked"
        texts = ((each, self.sql(each)) for each in arguments(node))
        given = [f"({text})" if isinstance(each, _LOOSE) else text for each, text in texts]
        name = node.name.lower()
        special = _SPECIAL.get(name)
        if special is not None:
            return special(self, node, given)
        text = function.duckdb.format(*given, all=", ".join(given))
        if is_distinct(node):
            text = text.replace("(", "(DISTINCT ", 1)
        return text if _is_inner(node) else self.outside(function, text, node)

    def outside(self, function: DialectFunction, text: str, node: exp.Expr) -> str:
        """Return the result of an aggregate or window function as Spark gives it."""
        if function.gives == "sum" and kind(node) == "i":
            problem = "exceeds 64 bits: write sum(CAST(x AS DOUBLE))"
            big = f"abs(CAST({text} AS HUGEINT)) > {(1 << 63) - 1}"
            return f"CASE WHEN {big} THEN {self._error(node, problem)} ELSE CAST({text} AS BIGINT) END"
        return function.outside.format(text)

    def around(self, node: exp.Window | exp.Filter, text: str) -> str:
        """Return FILTER or OVER with what is done with the result, if no other is around it."""
        call = node.this
        while isinstance(call, exp.IgnoreNulls | exp.Filter):
            call = call.this
        function = function_of(call)
        return text if function is None or _is_inner(node) else self.outside(function, text, call)

    def cast(self, node: exp.Cast) -> str:
        text, to = self.sql(node.this), self.sql(node.to)
        found = kind(node.this)
        if to in ("INT", "BIGINT") and found == "d":
            return f"CAST(trunc({text}) AS {to})"
        if to in ("INT", "BIGINT", "DOUBLE") and found == "s":
            form = _DOUBLE if to == "DOUBLE" else _INTEGER
            problem = self._error(node, f"found a text that is no {to}")
            fits = f"{text} IS NULL OR regexp_full_match({text}, {_quoted(form)})"
            return f"CASE WHEN {fits} THEN CAST(trim({text}) AS {to}) ELSE {problem} END"
        return f"CAST({text} AS {to})"

    def divided(self, node: exp.Expr, this: exp.Expr, divisor: exp.Expr, operator: str) -> str:
        """Return a division or remainder, which fails for 0."""
        left, right = self.sql(this), self.sql(divisor)
        if operator == "//":
            left, right = f"CAST({left} AS BIGINT)", f"CAST({right} AS BIGINT)"
        if not (isinstance(divisor, exp.Literal) and float(divisor.name)):
            null = "" if isinstance(this, exp.Literal) else f" AND {left} IS NOT NULL"
            problem = self._error(node, "divides by zero: write try_divide(a, b) or nullif(b, 0)")
            right = f"CASE WHEN {right} = 0{null} THEN {problem} ELSE {right} END"
        return f"({left} {operator} {right})"

    def literal_(self, node: exp.Literal) -> str:
        if node.is_string:
            return _quoted(node.name)
        return node.name if node.is_int or "e" in node.name.lower() else f"{node.name}e0"

    def bracket_(self, node: exp.Bracket) -> str:
        [index] = node.expressions
        return self.item(node, self.sql(node.this), self.sql(index), from_one=False)

    def item(self, node: exp.Expr, array: str, index: str, *, from_one: bool) -> str:
        """Return an element of an array, which has to exist."""
        inside = f"{index} BETWEEN 0 AND len({array}) - 1"
        if from_one:
            inside = f"abs({index}) BETWEEN 1 AND len({array})"
        problem = self._error(node, "has no such element: write get(a, i), which counts from 0")
        place = index if from_one else f"{index} + 1"
        known = f"{array} IS NULL OR {index} IS NULL"
        return f"(CASE WHEN {known} THEN NULL WHEN {inside} THEN ({array})[{place}] ELSE {problem} END)"

    def like(self, node: exp.Binary, operator: str) -> str:
        pattern = node.expression
        plain = isinstance(pattern, exp.Literal) and "\\" not in pattern.name
        escape = "" if plain else " ESCAPE '\\'"
        negated = "NOT " if node.args.get("negate") else ""
        return f"{self.sql(node.this)} {negated}{operator} {self.sql(pattern)}{escape}"

    TRANSFORMS = {  # noqa: RUF012 - as declared by sqlglot
        **DuckDBGenerator.TRANSFORMS,
        exp.Anonymous: lambda self, node: self.call(node),
        exp.Cast: lambda self, node: self.cast(node),
        exp.Div: lambda self, node: self.divided(node, node.this, node.expression, "/"),
        exp.IntDiv: lambda self, node: self.divided(node, node.this, node.expression, "//"),
        exp.Mod: lambda self, node: self.divided(node, node.this, node.expression, "%"),
        exp.Literal: lambda self, node: self.literal_(node),
        exp.Bracket: lambda self, node: self.bracket_(node),
        exp.Like: lambda self, node: self.like(node, "LIKE"),
        exp.ILike: lambda self, node: self.like(node, "ILIKE"),
        exp.RegexpLike: lambda self, node: (
            f"regexp_matches({self.sql(node.this)}, {self.sql(node.expression)})"
        ),
        exp.Concat: lambda self, node: f"({' || '.join(map(self.sql, node.expressions))})",
        exp.DPipe: lambda self, node: f"({self.sql(node.this)} || {self.sql(node.expression)})",
        exp.Window: lambda self, node: self.around(node, DuckDBGenerator.window_sql(self, node)),
        exp.Filter: lambda self, node: self.around(node, DuckDBGenerator.filter_sql(self, node)),
        exp.IgnoreNulls: lambda self, node: f"{self.sql(node.this)[:-1]} IGNORE NULLS)",
        exp.NullSafeEQ: lambda self, node: (
            f"{self.sql(node.this)} IS NOT DISTINCT FROM {self.sql(node.expression)}"
        ),
    }


_INTEGER: Final = r"\s*[+-]?[0-9]+\s*"
_DOUBLE: Final = (
    r"\s*[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?\s*|\s*[+-]?(?i:inf|infinity)\s*|\s*(?i:nan)\s*"
)
_LOOSE: Final = (exp.Add, exp.Sub, exp.Mul, exp.Neg, exp.Not, exp.Connector, exp.Predicate)
"""Expressions that bind more loosely than what a function may be written as."""


def _is_in_order(node: exp.Expr) -> bool:
    """Return whether a node is in PARTITION BY or ORDER BY within OVER."""
    over = node.find_ancestor(exp.Window)
    while over is not None and node.parent is not over:
        node = node.parent or over
    return over is not None and node.arg_key in ("order", "partition_by")


def _is_inner(node: exp.Expr) -> bool:
    """Return whether FILTER or OVER follows."""
    return isinstance(node.parent, exp.IgnoreNulls | exp.Filter | exp.Window) and node.arg_key == "this"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _count(_: _Generator, node: exp.Anonymous, given: list[str]) -> str:
    if not is_distinct(node):
        return f"count({', '.join(given)})" if len(given) < 2 else f"count({_all_known(given)})"
    return f"count(DISTINCT {given[0] if len(given) == 1 else _all_known(given)})"


def _all_known(given: list[str]) -> str:
    known = " AND ".join(f"{each} IS NOT NULL" for each in given)
    return f"CASE WHEN {known} THEN ({', '.join(given)}) END"


def _length(_: _Generator, node: exp.Anonymous, given: list[str]) -> str:
    name = "octet_length" if kind(node.expressions[0]) == "x" else "length"
    return f"CAST({name}({given[0]}) AS INTEGER)"


def _whole(_: _Generator, node: exp.Anonymous, given: list[str]) -> str:
    is_whole = kind(node.expressions[0]) == "i"
    name = "floor" if node.name.lower() == "floor" else "ceil"
    return f"CAST({given[0] if is_whole else f'{name}({given[0]})'} AS BIGINT)"


def _round(_: _Generator, node: exp.Anonymous, given: list[str]) -> str:
    """Round half up the decimal digits that a DOUBLE is written with, as Java does."""
    value, digits = given[0], given[1] if len(given) > 1 else "0"
    if kind(node.expressions[0]) != "d":
        return value
    rounded = f"TRY_CAST(CAST({value} AS VARCHAR) AS DECIMAL(38, {min(int(digits), 20)}))"
    return f"CASE WHEN abs({value}) < 1e15 THEN CAST({rounded} AS DOUBLE) ELSE {value} END"


def _substr(_: _Generator, __: exp.Anonymous, given: list[str]) -> str:
    text, start = given[0], f"CASE WHEN {given[1]} = 0 THEN 1 ELSE {given[1]} END"
    if len(given) == 2:
        return f"substr({text}, {start})"
    return f"substr({text}, {start}, CASE WHEN {given[2]} < 0 THEN 0 ELSE {given[2]} END)"


def _concat(_: _Generator, node: exp.Anonymous, given: list[str]) -> str:
    pieces = zip(given, node.expressions, strict=True)
    texts = [text if kind(each) == "s" else f"CAST({text} AS VARCHAR)" for text, each in pieces]
    return f"({' || '.join(texts)})"


def _mod(generator: _Generator, node: exp.Anonymous, _: list[str]) -> str:
    left, right = (exp.Paren(this=each.copy()) for each in node.expressions)
    return generator.divided(node, left, right, "%")


def _element_at(generator: _Generator, node: exp.Anonymous, given: list[str]) -> str:
    return generator.item(node, *given, from_one=True)


_SPECIAL: Final[dict[str, Callable[[_Generator, exp.Anonymous, list[str]], str]]] = {
    "count": _count,
    **dict.fromkeys(("ceil", "ceiling", "floor"), _whole),
    "length": _length,
    "round": _round,
    "substr": _substr,
    "substring": _substr,
    "concat": _concat,
    "mod": _mod,
    "element_at": _element_at,
}
