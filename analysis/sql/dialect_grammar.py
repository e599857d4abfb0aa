"""Refuses parts of SQL that are not in the dialect, before types are known."""

from difflib import get_close_matches
from typing import Final

from sqlglot import exp

from analysis.sql.dialect_functions import FUNCTIONS, INSTEAD
from analysis.sql.dialect_types import is_over_rows, refuse

_GRAMMAR: Final = (
    exp.Select, exp.From, exp.Join, exp.Where, exp.Group, exp.Having, exp.Qualify, exp.Order, exp.Ordered,
    exp.Limit, exp.Offset, exp.With, exp.CTE, exp.Subquery,
    exp.Union, exp.Except, exp.Intersect, exp.Values, exp.Rollup, exp.Cube, exp.GroupingSets, exp.Distinct,
    exp.Window, exp.WindowSpec, exp.Filter, exp.IgnoreNulls,
    exp.Tuple, exp.Table, exp.TableAlias, exp.Alias, exp.Column, exp.Identifier, exp.Dot, exp.Star,
    exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.Bracket, exp.Anonymous,
    exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.Is,
    exp.In, exp.Between, exp.Like, exp.ILike, exp.RegexpLike, exp.Exists, exp.Case, exp.If,
    exp.Cast, exp.DataType, exp.DataTypeParam, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod,
    exp.Neg, exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseNot,
    exp.DPipe, exp.Concat,
)  # fmt: skip
"""The parts of SQL that are in the dialect."""
_WRITE: Final[dict[type[exp.Expr], str]] = {
    exp.Lateral: "LATERAL is not in the dialect: write FROM (SELECT *, explode(x) AS y FROM ...)",
    exp.Lambda: "functions of `x -> ...` are not in the dialect: explode the array",
    exp.TableSample: "a sample has another answer each time: leave it out",
    exp.Sort: "SORT BY is not in the dialect: write ORDER BY",
    exp.Transform: "functions of `x -> ...` are not in the dialect: explode the array",
    exp.TryCast: "is not in the dialect: write CASE WHEN s RLIKE '^-?[0-9]+$' THEN CAST(s AS BIGINT) END",
    exp.WithinGroup: "WITHIN GROUP is not in the dialect: write percentile(x, 0.5)",
    exp.Interval: "intervals are not in the dialect: compute with nanoseconds",
    exp.NullSafeNEQ: "IS DISTINCT FROM is not in the dialect: write NOT (a <=> b)",
    exp.Pivot: "PIVOT is not in the dialect: write sum(x) FILTER (WHERE ...) for each column",
    exp.Escape: "ESCAPE is not in the dialect: write \\\\ before % and _",
    exp.RespectNulls: "RESPECT NULLS is not in the dialect: leave it out",
    exp.Any: "ANY is not in the dialect: write OR, IN or EXISTS",
    exp.All: "ALL is not in the dialect: compare with max or min",
    exp.HexString: "is not in the dialect: write hex(x) = '00'",
    exp.SimilarTo: "is not in the dialect: write RLIKE",
    exp.Fetch: "FETCH is not in the dialect: write LIMIT",
    exp.Hint: "hints are not in the dialect: leave it out",
    exp.Array: "arrays that are written out are not in the dialect: write split('a,b', ',')",
    exp.BitwiseLeftShift: "shifts are not in the dialect: multiply",
    exp.BitwiseRightShift: "shifts are not in the dialect: write div",
}


def check_grammar(tree: exp.Expr) -> None:
    """Refuse the first part of a question that is not in the dialect. Raises Refused."""
    for node in tree.walk():
        is_order_by_all = isinstance(node, exp.Var) and isinstance(node.parent, exp.Ordered)
        if type(node) not in _GRAMMAR and not is_order_by_all:
            refuse(node, _WRITE.get(type(node), f"{type(node).__name__} is not in the dialect (docs/sql.md)"))
        match node:
            case exp.Anonymous():
                _check_name(node)
            case exp.SetOperation() if node.args.get("by_name"):
                refuse(node, "BY NAME is not in the dialect: name the columns in one order")
            case exp.SetOperation() if isinstance(node.this, exp.Select) and node.this.args.get("order"):
                refuse(
                    node.this.args["order"], "comes before a set operation: write that SELECT in parentheses"
                )
            case exp.Select() | exp.SetOperation() | exp.Subquery():
                limit = node.args.get("limit") or node.args.get("offset")
                if limit and not node.args.get("order"):
                    refuse(limit, "takes any rows: put ORDER BY ALL before it")
            case exp.Join() if node.args.get("method"):
                refuse(node, f"{node.args['method']} JOIN is not in the dialect: write JOIN ... USING or ON")
            case exp.Join() if node.side == "RIGHT" and node.kind in ("ANTI", "SEMI"):
                refuse(node, f"is not in the dialect: write LEFT {node.kind} JOIN")
            case exp.EQ() | exp.NEQ() | exp.GT() | exp.GTE() | exp.LT() | exp.LTE() if isinstance(
                node.this, exp.EQ | exp.NEQ | exp.GT | exp.GTE | exp.LT | exp.LTE
            ):
                refuse(node, "compares a comparison: write parentheses around it, or AND")
            case exp.Distinct() if node.args.get("on"):
                refuse(node, "DISTINCT ON takes any rows: write QUALIFY row_number() OVER (...) = 1")
            case exp.Group() if exp.Tuple() in node.expressions:
                refuse(node, "is not in the dialect: leave it out")
            case exp.Between() if node.args.get("symmetric"):
                refuse(node, "SYMMETRIC is not in the dialect: write BETWEEN least(a, b) AND greatest(a, b)")
            case exp.IgnoreNulls() if not isinstance(node.parent, exp.Window):
                refuse(node, "is not in the dialect: write last_value(x) IGNORE NULLS OVER (...)")
            case exp.Tuple() if isinstance(node.parent, exp.In):
                refuse(
                    node.parent, "compares rows of values: write EXISTS (SELECT 1 FROM ... WHERE ...), or OR"
                )
            case exp.Qualify():
                _check_qualify(node)
            case exp.Order() if isinstance(node.parent, exp.Select):
                _check_order(node, node.parent)
            case exp.Ordered() if isinstance(node.this, exp.Null) or node.this.is_string:
                refuse(node, "is a constant: names are in backquotes")
            case exp.Ordered() if isinstance(node.this, exp.Window):
                refuse(
                    node, "is not in the dialect: name the window function in SELECT, and order by its name"
                )
            case exp.Rollup() | exp.Cube() if not node.expressions:
                refuse(node, "is not in the dialect: write GROUP BY ROLLUP(...) or CUBE(...)")
            case exp.With() if node.recursive:
                refuse(node, "RECURSIVE is not in the dialect")
            case exp.WindowSpec() if node.args.get("exclude") or node.args.get("kind") == "GROUPS":
                refuse(node, "is not in the dialect: write ROWS or RANGE")
            case exp.Literal() if not node.is_string and node.is_int and int(node.name) >= 1 << 63:
                refuse(node, "exceeds 64 bits: write it as DOUBLE, as 1e19")
            case _:
                pass


def _check_name(node: exp.Anonymous) -> None:
    name = node.name.lower()
    if name in INSTEAD:
        refuse(node, INSTEAD[name])
    if name not in FUNCTIONS:
        [*like] = get_close_matches(name, FUNCTIONS, 1, 0.8)
        refuse(node, "is not in the dialect" + (f": did you mean {like[0]}?" if like else " (docs/sql.md)"))


def _check_order(node: exp.Order, select: exp.Select) -> None:
    """Refuse aggregates of what SELECT calls by another column's name: engines take either."""
    aliases = {each.alias for each in select.expressions if isinstance(each, exp.Alias)}
    for call in filter(is_over_rows, node.find_all(exp.Anonymous)):
        for each in call.find_all(exp.Column):
            if not each.table and each.name in aliases:
                refuse(call, f"aggregates a name of SELECT: order by {each.name}")


def _check_qualify(node: exp.Qualify) -> None:
    for each in node.find_all(exp.Anonymous):
        outer = each.parent.parent if isinstance(each.parent, exp.Filter) else each.parent
        if is_over_rows(each) and not isinstance(outer, exp.Window | exp.IgnoreNulls):
            refuse(each, "is not in the dialect within QUALIFY: name it in SELECT")
