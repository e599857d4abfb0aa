"""Refuses calls, operators and casts that the engines would answer differently, once types are known."""

import re
from collections.abc import Sequence
from typing import Any, Final

from sqlglot import exp

from analysis.sql.dialect_functions import FUNCTIONS, KINDS
from analysis.sql.dialect_types import arguments, family, function_of, is_distinct, is_over_rows, kind, refuse

_CASTS: Final = {
    exp.DType.INT: "idsb",
    exp.DType.BIGINT: "idsb",
    exp.DType.DOUBLE: "idsb",
    exp.DType.TEXT: "isb",
    exp.DType.BOOLEAN: "ib",
}
"""Kinds that can be cast to a type, beside NULL."""
_CAST_INSTEAD: Final = {
    "d": ": engines write numbers differently, so CAST(round(x * 1000) AS BIGINT) first",
    "x": ": write hex(x)",
}
_SAFE_PATTERN: Final = re.compile(
    r"(?:[^\\(\[]|\\[.dwsDWS\-\[\](){}*+?|^$/]|\((?:\?:)?(?!\?)|\[\^?[^\[\]\\&]+\])*"
)
"""Patterns with one meaning in Java and RE2."""
_ORDERED: Final = ("row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag", "lead")
_NO_BOOLEAN: Final = "takes a BOOLEAN: compare, as x <> 0"
_BOUNDS: Final = ("first_value", "last_value", "nth_value")


def check(tree: exp.Expr) -> None:
    """Refuse parts of a question that depend on types."""
    for node in tree.walk():
        match node:
            case exp.Anonymous():
                _check_call(node)
            case exp.Cast():
                _check_cast(node)
            case exp.Add() | exp.Sub() | exp.Mul() | exp.Div() | exp.Mod():
                _need(node, (node.this, node.expression), "n", "takes numbers")
            case exp.IntDiv() | exp.BitwiseAnd() | exp.BitwiseOr() | exp.BitwiseXor():
                _need_kinds(node, (node.this, node.expression), "i0", "takes integers")
            case exp.Neg():
                _need(node, (node.this,), "n", "takes a number")
            case exp.Bracket():
                if (
                    kind(node.this) != "a"
                    or len(node.expressions) != 1
                    or not node.expressions[0].is_type("INT")
                ):
                    refuse(node, "takes an array and an INT")
            case exp.DPipe() | exp.Concat():
                pieces = (node.this, node.expression) if isinstance(node, exp.DPipe) else node.expressions
                _need(node, pieces, "s", "takes STRINGs: CAST the other values")
            case exp.Like() | exp.ILike():
                _need(node, (node.this, node.expression), "s", "takes STRINGs")
            case exp.RegexpLike():
                _need(node, (node.this,), "s", "takes a STRING")
                _check_pattern(node.expression)
            case exp.EQ() | exp.NEQ() | exp.GT() | exp.GTE() | exp.LT() | exp.LTE() | exp.NullSafeEQ():
                _alike(node, (node.this, node.expression))
            case exp.Between():
                _alike(node, (node.this, node.args["low"], node.args["high"]))
            case exp.In():
                query = node.args.get("query")
                _alike(node, (node.this, *(query.this.selects[:1] if query else node.expressions)))
                if query and not _is_condition(node):
                    refuse(node, "is not in the dialect here: write EXISTS (SELECT 1 FROM ... WHERE ...)")
            case exp.Where() | exp.Having() | exp.Qualify() | exp.Not():
                _need(node.this, (node.this,), "b", _NO_BOOLEAN)
            case exp.And() | exp.Or():
                _need(node, (node.this, node.expression), "b", _NO_BOOLEAN)
            case exp.Join() if node.args.get("on"):
                _need(node.args["on"], (node.args["on"],), "b", _NO_BOOLEAN)
            case exp.Star() if isinstance(node.parent, exp.Column | exp.Dot):
                refuse(node.parent, "is no table: name the parts, as x.part")
            case exp.Dot() if kind(node.this) == "a":
                refuse(node, "is a part of an array: write get(a, i).part, or explode(a) in a subquery")
            case exp.Case():
                asked = [each.this for each in node.args["ifs"]]
                if node.this:
                    _alike(node, (node.this, *asked))
                else:
                    _need(node, asked, "b", _NO_BOOLEAN)
                results = [each.args["true"] for each in node.args["ifs"]]
                default = node.args.get("default")
                _alike(node, (*results, *([default] if default else [])), ordered=False)
            case exp.Order() if isinstance(node.parent, exp.Select) and node.parent.args.get("distinct"):
                chosen = [each.unalias() for each in node.parent.selects]
                for each in node.find_all(exp.Column):
                    if each.table and each not in chosen:
                        refuse(each, "is not in SELECT DISTINCT: order by a column that is")
            case exp.Ordered():
                if kind(node.this) in "ar":
                    refuse(node, "arrays and structures have no order here: order by their parts")
            case exp.Window() if not isinstance(node.this, exp.Identifier):
                _check_window(node)
            case exp.SetOperation():
                for one, other in zip(node.this.selects, node.expression.selects, strict=False):
                    _alike(other, (one, other), ordered=False)
            case _:
                pass


def _check_call(node: exp.Anonymous) -> None:
    function, given = FUNCTIONS[node.name.lower()], arguments(node)
    if node.name.lower() == "count":
        if not given:
            refuse(node, "counts rows: write count(*)")
        return
    wanted = _kinds_wanted(function.takes, len(given))
    if wanted is None:
        refuse(node, f"takes other arguments: {_signature(function.takes)}")
    if is_distinct(node) and node.name.lower() not in _OF_DISTINCT:
        refuse(node, "DISTINCT is not in the dialect here: SELECT DISTINCT in a subquery")
    if node.name.lower() == "explode":
        _check_explode(node)
    for letters, each in zip(wanted, given, strict=True):
        if not any(_fits(letter, each, given) for letter in letters):
            refuse(each, f"{node.name}() takes {_signature(function.takes)}{_unlike(each)}")
        if "c" in letters and kind(each) != "0" and kind(each) in "?":
            refuse(each, "has no known type here: CAST it")
    values = [each for letters, each in zip(wanted, given, strict=True) if "c" in letters]
    _alike(node, values, ordered=False)
    if node.name.lower() == "regexp_extract" and int(given[2].name) > re.compile(given[1].name).groups:
        refuse(node, "asks for a group that the pattern does not have")
    if node.name.lower().startswith("collect_"):
        outer = node.parent
        if outer is None or function_of(outer) is None or outer.name.lower() not in _ANY_ORDER:
            refuse(node, "is in the order of any rows: write array_sort(collect_list(x))")


_ANY_ORDER: Final = ("array_sort", "sort_array", "size", "cardinality", "array_max", "array_min")
"""Functions to which the order of an array does not matter."""


_OF_DISTINCT: Final = ("count", "sum", "avg", "mean", "min", "max")
"""Functions, of those that take DISTINCT, that need no other type first: values of it could be equal."""


def _check_explode(node: exp.Anonymous) -> None:
    """Refuse explode() beside what computes rows or values of several rows: engines do either first."""
    item = node.parent if isinstance(node.parent, exp.Alias) else node
    select = node.find_ancestor(exp.Select) or exp.Select()
    calls = [each for each in select.find_all(exp.Anonymous) if each.find_ancestor(exp.Select) is select]
    others = [
        each for each in calls if each is not node and (each.name.lower() == "explode" or is_over_rows(each))
    ]
    if item.parent is not select or item.arg_key != "expressions" or select.args.get("group") or others:
        refuse(node, "stands alone in a SELECT: write FROM (SELECT *, explode(a) AS e FROM ...)")


def _is_condition(node: exp.Expr) -> bool:
    """Return whether IN decides about a row, so that NULL is as false; NOT IN may not stand below OR."""
    joined: tuple[type[exp.Expr], ...] = (exp.And, exp.Or, exp.Paren)
    while isinstance(node.parent, exp.Paren):
        node = node.parent
    if isinstance(node.parent, exp.Not):
        node, joined = node.parent, (exp.And, exp.Paren)
    while isinstance(node.parent, joined):
        node = node.parent
    return isinstance(node.parent, exp.Where | exp.Having | exp.Qualify)


def _kinds_wanted(takes: str, given: int) -> list[str] | None:
    """Return the letters for each of the given arguments; None if their number is wrong."""
    least, _, more = takes.partition("?")
    needed, further = (re.findall(r"\[\w+\]|.", part.replace("*", "")) for part in (least, more))
    if takes.endswith("*"):
        needed += needed[-1:] * (given - len(needed))
    elif not len(needed) <= given <= len(needed) + len(further):
        return None
    wanted = [*needed, *further][:given]
    return wanted if len(wanted) == given and given >= len(needed) else None


def _signature(takes: str) -> str:
    letters = re.findall(r"\[\w+\]|\w|\.", takes)
    said = [" or ".join(KINDS[letter] for letter in each.strip("[]")) for each in letters]
    return ", ".join(said) or "none"


def _fits(letter: str, each: exp.Expr, given: Sequence[exp.Expr]) -> bool:
    found = kind(each)
    match letter:
        case "." | "c":
            return True
        case "z" | "p":
            return (
                isinstance(each, exp.Literal)
                and not each.is_string
                and (float(each.name) <= 1 if letter == "p" else each.is_int)
            )
        case "r":
            _check_pattern(each)
            return True
        case "t" | "q":
            good = bool(each.name) if letter == "q" else not set(each.name) & set("$\\")
            return isinstance(each, exp.Literal) and each.is_string and good
        case "e":
            inner = given[0].type.expressions if given[0].type is not None else []
            return bool(inner) and family(each) == family(exp.Cast(this=exp.null(), to=inner[0]))
        case "I":
            return each.is_type("INT")
        case "n":
            return found in "id"
        case "v":
            return found in "idsbx0"
        case "s":
            return found in "s0"
        case _:
            return found == letter


def _check_pattern(node: exp.Expr) -> None:
    if not (isinstance(node, exp.Literal) and node.is_string):
        refuse(node, "a pattern has to be written out, so that both engines read it the same way")
    empty = not node.name
    if empty or re.search(r"(?<!\\)[*+?}][+]", node.name) or not _SAFE_PATTERN.fullmatch(node.name):
        refuse(
            node, "engines read this pattern differently: use . [a-z] ( | ) * + ? ^ $ \\d \\w \\s and letters"
        )
    try:
        if re.compile(node.name).fullmatch("") and function_of(node.parent) is not None:
            refuse(node, "also matches the empty text, which engines do differently: use + for *")
    except re.error as error:
        refuse(node, f"is no pattern: {error}")


def _check_cast(node: exp.Cast) -> None:
    to = node.to.this
    if to not in _CASTS or node.to.expressions:
        refuse(node, "is not in the dialect: cast to INT, BIGINT, DOUBLE, STRING or BOOLEAN")
    found = kind(node.this)
    if found == "?":
        refuse(node, f"the type of the value is not known here{_unlike(node.this)}")
    if found not in _CASTS[to] + "0":
        refuse(node, f"is not in the dialect{_CAST_INSTEAD.get(found, '')}")


def _check_window(node: exp.Window) -> None:
    call = node.this
    while isinstance(call, exp.IgnoreNulls | exp.Filter):
        call = call.this
    function = function_of(call)
    if function is None or not function.over or call.name.lower().startswith("collect_"):
        refuse(node, "OVER is for aggregates and window functions")
    if call.name.lower() in ("median", "percentile") and (node.args.get("order") or node.args.get("spec")):
        refuse(node, "takes no ORDER BY within OVER")
    if call.name.lower() in (*_ORDERED, *_BOUNDS) and not _order_of(node):
        refuse(node, "takes any row: add ORDER BY within OVER")
    if isinstance(call, exp.Anonymous) and is_distinct(call):
        refuse(node, "DISTINCT is not in the dialect with OVER: aggregate in a subquery, and join it")
    spec, order = node.args.get("spec"), _order_of(node)
    if (
        spec is not None
        and spec.args["kind"] == "RANGE"
        and {exp.Literal} & {type(spec.args.get("start")), type(spec.args.get("end"))}
    ):
        _need(
            spec,
            [each.this for each in order.expressions] if order else [],
            "n",
            "takes numbers in ORDER BY: write ROWS",
        )
    if (
        call.name.lower() in ("lag", "lead")
        and len(call.expressions) > 2
        and kind(call.expressions[2]) == "d" != kind(call.expressions[0])
    ):
        refuse(call.expressions[2], "has to be an integer, as the value")


def _order_of(node: exp.Window) -> Any:
    """Return ORDER BY within OVER, or of the window that it names."""
    if order := node.args.get("order"):
        return order
    name = node.args.get("alias") or (node.this if isinstance(node.this, exp.Identifier) else None)
    select = node.find_ancestor(exp.Select)
    windows = select.args.get("windows") or [] if select is not None else []
    for each in windows:
        if name is not None and each is not node and each.name.lower() == name.name.lower():
            return each.args.get("order")
    return None


def _need(node: exp.Expr, values: Sequence[exp.Expr], wanted: str, problem: str) -> None:
    for each in values:
        if family(each) not in (wanted, "0"):
            refuse(node, problem + _unlike(each))


def _need_kinds(node: exp.Expr, values: Sequence[exp.Expr], wanted: str, problem: str) -> None:
    for each in values:
        if kind(each) not in wanted:
            refuse(node, problem + _unlike(each))


def _alike(node: exp.Expr, values: Sequence[exp.Expr], *, ordered: bool = True) -> None:
    """Refuse values of different families: engines convert them differently."""
    found = {family(each): each for each in values if kind(each) != "0"}
    if len(found) > 1:
        names = " and ".join(sorted(_words(each) for each in found.values()))
        refuse(node, f"mixes {names}: CAST one")
    if ordered and set(found) & set("ar?"):
        refuse(node, f"cannot be compared here{_unlike(next(iter(found.values())))}")


def _unlike(each: exp.Expr) -> str:
    return f" (this is {_words(each)})"


def _words(each: exp.Expr) -> str:
    return each.type.sql("spark") if each.type is not None and kind(each) != "?" else "of unknown type"
