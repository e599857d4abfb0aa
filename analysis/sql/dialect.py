"""The dialect of questions: the part of Spark's SQL that DuckDB answers with the same rows.

A question is parsed and typed, and refused if the engines would answer it differently, or if it has no single
answer. Spark gets the user's text, in which a number with a point is a DOUBLE; DuckDB gets a translation.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import pairwise
from typing import Any, ClassVar, Final

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify import qualify
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from analysis.errors import AnalysisError
from analysis.sql.dialect_checks import check
from analysis.sql.dialect_grammar import check_grammar
from analysis.sql.dialect_types import TYPED_CALLS, Refused, function_of, refuse
from analysis.sql.duckdb_text import duckdb_text

Columns = Mapping[str, str]
"""The types of a table's columns, in Spark's words."""


@dataclass(frozen=True, slots=True)
class Translation:
    """A question for both engines. columns: names of the result. tables: those that it reads."""

    spark: str
    duckdb: str
    columns: tuple[str, ...]
    tables: tuple[str, ...]


def translate(question: str, columns_of: Callable[[str], Columns | None]) -> Translation:
    """Translate a question. columns_of: returns a table's columns, None if there is no such table.

    Raises AnalysisError that names the line and words of the question.
    """
    question = re.sub(r"(?is)^\s*TABLE\s+(`?\w+`?)\s*$", r"SELECT * FROM \1", question)
    described = re.fullmatch(r"(?is)\s*DESC(?:RIBE)?\s+(?:TABLE\s+)?`?(\w+)`?\s*", question)
    if described:
        question = _description(described.group(1), columns_of)
    return _Question(question, columns_of).translated()


class DialectError(AnalysisError):
    """A part of a question that is refused."""


class _Parser(SparkParser):
    """Parses functions as they are written; their meaning is in `dialect_functions`."""

    STRICT_CAST = True  # a cast that fails is an error
    FUNCTIONS: ClassVar[dict[str, Any]] = {}
    FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        name: SparkParser.FUNCTION_PARSERS[name] for name in ("CAST", "TRY_CAST")
    }
    NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {}


class _Dialect(Spark):
    """Spark's grammar."""

    class Tokenizer(Spark.Tokenizer):
        """Reads '' within a text as a quote, as Spark does since 4.0."""

        STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'", '"']

    Parser = _Parser


class _Question:
    def __init__(self, text: str, columns_of: Callable[[str], Columns | None]) -> None:
        self._text, self._columns_of = text, columns_of
        self._lines = text.count("\n") + 1
        self._asked: list[exp.Expr] = []
        self._names: dict[str, str] = {}

    def translated(self) -> Translation:
        tokens = self._tokens()
        try:
            tree = self._parsed(tokens)
            tables = self._tables(tree)
            tree = self._typed(tree, tables)
            check(tree)
            duckdb = duckdb_text(tree, self._place)
        except Refused as refused:
            raise DialectError(f"{self._place(refused.node)} {refused.problem}") from None
        names = tuple(self._names.get(name.lower(), name) for name in tree.named_selects)
        return Translation(self._for_spark(tokens), duckdb, names, tuple(tables))

    def _tokens(self) -> list[Token]:
        dialect = _Dialect()
        try:
            tokens = dialect.tokenize(self._text)
        except SqlglotError as error:
            what = f"a text, name or comment does not end ({error.__cause__})"
            raise DialectError(what) from None
        if not tokens or tokens[0].token_type not in _BEGINS:
            where = f"line {tokens[0].line}: `{tokens[0].text}`: " if tokens else ""
            what = "only statements that return rows are allowed: SELECT, and TABLE or DESCRIBE of a table"
            raise DialectError(where + what)
        for token, after in pairwise(tokens):
            if token.token_type == TokenType.ALIAS and after.token_type == TokenType.STRING:
                raise DialectError(f"line {after.line}: names are in backquotes: AS `{after.text}`")
            if token.token_type == TokenType.COMMA and after.token_type == TokenType.FROM:
                raise DialectError(f"line {token.line}: `,` before FROM has to go")
        for token in tokens:
            written = self._text[token.start : token.end + 1]
            escape = re.search(r"\\[0-9uUbZ]", written.replace("\\\\", ""))
            if escape and token.token_type == TokenType.STRING:
                raise DialectError(f"line {token.line}: `{escape.group()}` in a text is not in the dialect")
        return tokens

    def _parsed(self, tokens: list[Token]) -> exp.Query:
        try:
            [tree] = _Dialect().parser().parse(tokens, self._text)
        except SqlglotError as error:
            raise DialectError(_parse_error(error)) from None
        except ValueError:
            raise DialectError("one question at a time") from None
        if not isinstance(tree, exp.Query):
            raise DialectError("only a SELECT returns rows")
        for raw in list(tree.find_all(exp.RawString)):
            raw.replace(exp.Literal.string(raw.name))
        for number, node in enumerate(tree.walk()):
            node.meta["asked"] = number
        self._asked = list(tree.copy().walk())
        check_grammar(tree)
        self._names = _name_columns(tree)
        return tree

    def _tables(self, tree: exp.Expr) -> dict[str, Columns]:
        found: dict[str, Columns] = {}
        named = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
        for table in tree.find_all(exp.Table):
            name = table.name.lower()
            if name in named and not table.args.get("db"):
                continue
            columns = self._columns_of(name) if isinstance(table.this, exp.Identifier) else None
            if columns is None or table.args.get("db"):
                refuse(table, "is no table: `cutset schema tables` lists them")
            found[name] = columns
        return found

    def _typed(self, tree: exp.Query, tables: Mapping[str, Columns]) -> exp.Query:
        schema: dict[str, object] = {name: dict(columns) for name, columns in tables.items()}
        _name_columns_in_having(tree)
        aliases = {each.meta["asked"]: each for each in tree.find_all(exp.Column) if _may_name_alias(each)}
        try:
            tree = qualify(tree, schema=schema, dialect=_Dialect)
            for kept in tree.find_all(exp.Column):
                aliases.pop(kept.meta.get("asked"), None)
            for replaced in aliases.values():
                refuse(replaced, "is a name of SELECT: write what it stands for, or SELECT it in a subquery")
            return annotate_types(tree, schema=schema, dialect=_Dialect, expression_metadata=_METADATA)
        except SqlglotError as error:
            raise DialectError(self._located(_of_column(_first_line(error), tree, tables))) from None

    def _located(self, message: str) -> str:
        """Put the line first that an error names, or the one with the word that it names."""
        said = re.search(r"[.,]? Line: (\d+), Col(?:umn)?: \d+", message)
        if said:
            return f"line {said.group(1)}: {message[: said.start()]}{message[said.end() :]}"
        return located(self._text, message)

    def _place(self, node: exp.Expr) -> str:
        """Return the line and the words of the question that became a node."""
        asked = self._as_asked(node)
        line = _line_of(asked) or (1 if self._lines == 1 else None)
        words = " ".join(asked.sql(_Dialect, normalize_functions="lower").split())
        words = words if len(words) <= WORDS_MAX else words[: WORDS_MAX - 3] + "..."
        return f"line {line}: `{words}`" if line else f"`{words}`"

    def _as_asked(self, node: exp.Expr) -> exp.Expr:
        each: exp.Expr | None = node
        while each is not None:
            if "asked" in each.meta:
                found: exp.Expr = self._asked[each.meta["asked"]]
                return found
            each = each.parent
        return node

    def _for_spark(self, tokens: list[Token]) -> str:
        """Return the question with numbers that have a point as DOUBLE."""
        text, after = "", 0
        for token in tokens:
            number = self._text[token.start : token.end + 1]
            if self._text[token.start - 1 : token.start] == ".":
                number = f".{number}"
            if token.token_type == TokenType.NUMBER and re.fullmatch(r"[0-9]*[.][0-9]*", number):
                text, after = text + self._text[after : token.end + 1] + "D", token.end + 1
        return text + self._text[after:]


_METADATA: Final[dict[Any, Any]] = {**_Dialect.EXPRESSION_METADATA, **TYPED_CALLS}
WORDS_MAX: Final = 60
"""Characters of a question that an error shows."""
_BEGINS: Final = (TokenType.SELECT, TokenType.WITH, TokenType.L_PAREN)


def located(question: str, message: str) -> str:
    """Put the line in front of an engine's message, if it quotes a word of the question."""
    for word in re.findall(r"(?:[\"`']|[Cc]olumn: )([\w.]+)", message):
        last = word.rpartition(".")[2]
        for number, line in enumerate(question.splitlines(), 1):
            if re.search(rf"\b{re.escape(last)}\b", line, re.IGNORECASE):
                return f"line {number}: {message}"
    return message


def _first_line(error: Exception) -> str:
    return re.sub(r"\x1b\[\d*m", "", str(error)).partition("\n")[0]


def _parse_error(error: SqlglotError) -> str:
    """Return the place where a question stops being SQL."""
    [said, *_] = getattr(error, "errors", None) or [{}]
    if not said.get("line"):
        return _first_line(error)
    what = re.sub(r"<class '[\w.]+\.(\w+)'>", r"\1", str(said.get("description", ""))).rstrip(".")
    return f"line {said['line']}: at `{said.get('highlight') or said.get('start_context')}`: {what}"


def _name_columns_in_having(tree: exp.Query) -> None:
    """Write the table's name before columns that HAVING aggregates: they are no aliases."""
    for select in tree.find_all(exp.Select):
        having, source = select.args.get("having"), select.args.get("from_")
        if having is None or source is None or select.args.get("joins"):
            continue
        for call in having.find_all(exp.Anonymous):
            function = function_of(call)
            for column in call.find_all(exp.Column):
                is_aggregated = function is not None and function.over == "aggregate"
                if is_aggregated and not column.table and column.find_ancestor(exp.Select) is select:
                    column.set("table", exp.to_identifier(source.this.alias_or_name))


def _may_name_alias(column: exp.Column) -> bool:
    """Return whether a column may name an alias where Spark does not know it: in WHERE, or within OVER."""
    clause = column.find_ancestor(exp.Where, exp.Window, exp.Select)
    return not column.table and (
        isinstance(clause, exp.Where)
        or (
            isinstance(clause, exp.Window)
            and clause.find_ancestor(exp.Qualify, exp.Select) is clause.find_ancestor(exp.Select)
        )
    )


def _of_column(message: str, tree: exp.Query, tables: Mapping[str, Columns]) -> str:
    """Add the remedy to the error that names a column."""
    found = re.match(r"Column '(\w+)' could not be resolved", message)
    if found is None:
        return message
    name = found.group(1)
    owners = [
        each.alias_or_name for each in tree.find_all(exp.Table) if name.lower() in tables.get(each.name, ())
    ]
    if len(owners) > 1:
        return f"Column '{name}' is in several tables: write {owners[0]}.{name}"
    [*like] = get_close_matches(name.lower(), {each for columns in tables.values() for each in columns}, 1)
    return message + (f": did you mean {like[0]}?" if like and not owners else "")


def _line_of(node: exp.Expr) -> int | None:
    """Return the line of a node: its own, or one of a node below or above it."""
    lines = [each.meta["line"] for each in node.walk() if "line" in each.meta]
    while not lines and node.parent is not None:
        node = node.parent
        lines = [each.meta["line"] for each in node.walk() if "line" in each.meta]
    return min(lines) if lines else None


def _name_columns(tree: exp.Query) -> dict[str, str]:
    """Name the columns of the result by what the user wrote, since each engine would name them its way.

    Returns the names by their form in lower case.
    """
    first: exp.Expr = tree
    while isinstance(first, exp.SetOperation | exp.Subquery):
        first = first.this
    first.set("expressions", [_named(each) for each in first.expressions])
    return {name.lower(): name for name in tree.named_selects if name != "*"}


def _named(each: exp.Expr) -> exp.Expr:
    if isinstance(each, exp.Alias) or each.is_star:
        return each
    plain = isinstance(each, exp.Column | exp.Dot)
    name = each.name if plain else each.sql(_Dialect, normalize_functions="lower")
    return exp.alias_(each, exp.to_identifier(name, quoted=True))


def _description(table: str, columns_of: Callable[[str], Columns | None]) -> str:
    columns = columns_of(table.lower())
    if columns is None:
        raise DialectError(f"line 1: `{table}` is no table: `cutset schema tables` lists them")
    rows = ", ".join(f"('{name}', '{kind.lower()}')" for name, kind in columns.items())
    return f"SELECT * FROM (VALUES {rows}) AS described(col_name, data_type)"  # noqa: S608
