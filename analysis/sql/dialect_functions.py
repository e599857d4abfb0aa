"""The functions of the dialect: what they take, what they give, and how DuckDB computes what Spark does.

A function that is missing here is refused, so that no question is answered by an engine's own idea of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class DialectFunction:
    """A function.

    takes: the kind of each argument, see `KINDS`; `?` before the first that may be left out, `*` after one
    that may be repeated. gives: a type of Spark; `common`: the widest of the arguments; `element`, `array`:
    of the array; `array of`: the argument; `sum`. duckdb: the call, with {0}, {1}... for arguments and {all}
    for all. outside: what is done with the result of an aggregate or window function. over: `aggregate`,
    `window` if it needs OVER, or nothing.
    """

    takes: str
    gives: str
    duckdb: str
    outside: str = "{}"
    over: str = ""


KINDS: Final = {
    "n": "a number",
    "i": "an integer",
    "I": "an INT",
    "s": "a STRING",
    "b": "a BOOLEAN",
    "x": "BINARY",
    "a": "an array",
    "v": "a value that has an order",
    "c": "values of one type",
    "e": "a value of the array's type",
    "z": "a number written out, 0 or more",
    "p": "a number written out between 0 and 1",
    "r": "a pattern written out",
    "t": "a text written out, without $ and backslash",
    "q": "a text written out, not empty",
    ".": "anything",
}
"""Kinds of arguments. One letter may stand for several, as [sx]."""

_SCALARS: Final = {
    "abs": ("n", "common", "abs({0})"),
    "sign": (
        "n",
        "DOUBLE",
        "CASE WHEN isnan(CAST({0} AS DOUBLE)) THEN CAST('nan' AS DOUBLE) ELSE CAST(sign({0}) AS DOUBLE) END",
    ),
    "sqrt": ("n", "DOUBLE", "CASE WHEN {0} < 0 THEN CAST('nan' AS DOUBLE) ELSE sqrt({0}) END"),
    "cbrt": ("n", "DOUBLE", "cbrt({0})"),
    "exp": ("n", "DOUBLE", "exp({0})"),
    "ln": ("n", "DOUBLE", "CASE WHEN {0} > 0 THEN ln({0}) END"),
    "log10": ("n", "DOUBLE", "CASE WHEN {0} > 0 THEN log10({0}) END"),
    "log2": ("n", "DOUBLE", "CASE WHEN {0} > 0 THEN log2({0}) END"),
    "pow": ("nn", "DOUBLE", "pow({0}, {1})"),
    "power": ("nn", "DOUBLE", "pow({0}, {1})"),
    "isnan": ("n", "BOOLEAN", "coalesce(isnan(CAST({0} AS DOUBLE)), false)"),
    "try_divide": ("nn", "DOUBLE", "({0} / CASE WHEN {1} <> 0 THEN {1} END)"),
    "greatest": ("vc*", "common", "greatest({all})"),
    "least": ("vc*", "common", "least({all})"),
    "coalesce": ("c*", "common", "coalesce({all})"),
    "ifnull": ("cc", "common", "coalesce({0}, {1})"),
    "nvl": ("cc", "common", "coalesce({0}, {1})"),
    "nullif": ("cc", "common", "nullif({0}, {1})"),
    "nvl2": (".cc", "common", "CASE WHEN {0} IS NOT NULL THEN {1} ELSE {2} END"),
    "if": ("bcc", "common", "CASE WHEN {0} THEN {1} ELSE {2} END"),
    "isnull": (".", "BOOLEAN", "({0} IS NULL)"),
    "isnotnull": (".", "BOOLEAN", "({0} IS NOT NULL)"),
    "lower": ("s", "STRING", "lower({0})"),
    "trim": ("s", "STRING", "trim({0})"),
    "ltrim": ("s", "STRING", "ltrim({0})"),
    "rtrim": ("s", "STRING", "rtrim({0})"),
    "upper": ("s", "STRING", "upper({0})"),
    "left": ("sz", "STRING", "left({0}, {1})"),
    "right": ("sz", "STRING", "right({0}, {1})"),
    "lpad": ("szq", "STRING", "lpad({0}, {1}, {2})"),
    "rpad": ("szq", "STRING", "rpad({0}, {1}, {2})"),
    "repeat": ("sz", "STRING", "repeat({0}, {1})"),
    "replace": ("sss", "STRING", "replace({0}, {1}, {2})"),
    "translate": ("sss", "STRING", "translate({0}, {1}, {2})"),
    "concat_ws": ("ss*", "STRING", "concat_ws({all})"),
    "contains": ("ss", "BOOLEAN", "contains({0}, {1})"),
    "startswith": ("ss", "BOOLEAN", "starts_with({0}, {1})"),
    "endswith": ("ss", "BOOLEAN", "ends_with({0}, {1})"),
    "instr": ("ss", "INT", "CAST(instr({0}, {1}) AS INTEGER)"),
    "locate": ("ss", "INT", "CAST(instr({1}, {0}) AS INTEGER)"),
    "hex": ("[isx]", "STRING", "hex({0})"),
    "md5": ("s", "STRING", "md5({0})"),
    "regexp_like": ("sr", "BOOLEAN", "regexp_matches({0}, {1})"),
    "regexp_extract": ("srz", "STRING", "regexp_extract({0}, {1}, {2})"),
    "regexp_replace": ("srt", "STRING", "regexp_replace({0}, {1}, {2}, 'g')"),
    "split": ("sr", "ARRAY<STRING>", "str_split_regex({0}, {1})"),
    "size": ("a", "INT", "CAST(len({0}) AS INTEGER)"),
    "cardinality": ("a", "INT", "CAST(len({0}) AS INTEGER)"),
    "get": ("aI", "element", "CASE WHEN {1} >= 0 THEN ({0})[CAST({1} AS BIGINT) + 1] END"),
    "array_join": ("at", "STRING", "array_to_string({0}, {1})"),
    "array_max": ("a", "element", "list_max({0})"),
    "array_min": ("a", "element", "list_min({0})"),
    "array_sort": ("a", "array", "list_sort({0}, 'ASC', 'NULLS LAST')"),
    "sort_array": ("a", "array", "list_sort({0}, 'ASC', 'NULLS FIRST')"),
    "array_contains": (
        "ae",
        "BOOLEAN",
        "CASE WHEN {0} IS NULL OR {1} IS NULL THEN NULL WHEN list_contains({0}, {1}) THEN true"
        " WHEN list_count({0}) < len({0}) THEN NULL ELSE false END",
    ),
    "explode": ("a", "element", "unnest({0})"),
    "ip": ("ii", "STRING", "ip({0}, {1})"),
    "since_start": ("i", "DOUBLE", "since_start({0})"),
    "during": ("si", "BOOLEAN", "during({0}, {1})"),
}
_DOUBLE: Final = "CAST({0} AS DOUBLE)"
_AGGREGATES: Final[dict[str, tuple[str, ...]]] = {
    "count": (".*", "BIGINT", "count({all})"),
    "count_if": ("b", "BIGINT", "count_if({0})", "coalesce(CAST({} AS BIGINT), 0)"),
    "min": ("v", "common", "min({0})"),
    "max": ("v", "common", "max({0})"),
    "avg": ("n", "DOUBLE", "avg({0})"),
    "mean": ("n", "DOUBLE", "avg({0})"),
    "median": ("n", "DOUBLE", f"quantile_cont({_DOUBLE}, 0.5)"),
    "percentile": ("np", "DOUBLE", f"quantile_cont({_DOUBLE}, {{1}})"),
    "stddev": ("n", "DOUBLE", f"stddev_samp({_DOUBLE})"),
    "stddev_samp": ("n", "DOUBLE", f"stddev_samp({_DOUBLE})"),
    "stddev_pop": ("n", "DOUBLE", f"stddev_pop({_DOUBLE})"),
    "variance": ("n", "DOUBLE", f"var_samp({_DOUBLE})"),
    "var_samp": ("n", "DOUBLE", f"var_samp({_DOUBLE})"),
    "var_pop": ("n", "DOUBLE", f"var_pop({_DOUBLE})"),
    "bool_and": ("b", "BOOLEAN", "bool_and({0})"),
    "bool_or": ("b", "BOOLEAN", "bool_or({0})"),
    "every": ("b", "BOOLEAN", "bool_and({0})"),
    "collect_list": (".", "array of", "coalesce(list({0}) FILTER (WHERE {0} IS NOT NULL), [])"),
    "collect_set": ("v", "array of", "coalesce(list(DISTINCT {0}) FILTER (WHERE {0} IS NOT NULL), [])"),
    "grouping": ("v", "INT", "grouping({0})", "CAST({} AS TINYINT)"),
}
_WINDOWS: Final[dict[str, tuple[str, ...]]] = {
    "row_number": ("", "INT", "row_number()", "CAST({} AS INTEGER)"),
    "rank": ("", "INT", "rank()", "CAST({} AS INTEGER)"),
    "dense_rank": ("", "INT", "dense_rank()", "CAST({} AS INTEGER)"),
    "ntile": ("z", "INT", "ntile({0})", "CAST({} AS INTEGER)"),
    "percent_rank": ("", "DOUBLE", "percent_rank()"),
    "cume_dist": ("", "DOUBLE", "cume_dist()"),
    "lag": ("c?zc", "common", "lag({all})"),
    "lead": ("c?zc", "common", "lead({all})"),
    "first_value": ("c", "common", "first_value({0})"),
    "last_value": ("c", "common", "last_value({0})"),
    "nth_value": ("cz", "common", "nth_value({0}, {1})"),
}


def _full(each: tuple[str, ...]) -> tuple[str, str, str, str]:
    takes, gives, duckdb, *outside = each
    return takes, gives, duckdb, outside[0] if outside else "{}"


FUNCTIONS: Final[Mapping[str, DialectFunction]] = {
    **{name: DialectFunction(*each) for name, each in _SCALARS.items()},
    **{name: DialectFunction(*_full(each), "aggregate") for name, each in _AGGREGATES.items()},
    **{name: DialectFunction(*_full(each), "window") for name, each in _WINDOWS.items()},
    # Those that depend on the type of an argument are in `duckdb_text`.
    **dict.fromkeys(("ceil", "ceiling"), DialectFunction("n", "BIGINT", "ceil({0})")),
    "floor": DialectFunction("n", "BIGINT", "floor({0})"),
    "length": DialectFunction("[sx]", "INT", "CAST(length({0}) AS INTEGER)"),
    "round": DialectFunction("n?z", "common", "round({all})"),
    "sum": DialectFunction("n", "sum", "sum({0})", over="aggregate"),
    "substr": DialectFunction("sI?I", "STRING", "substr({all})"),
    "substring": DialectFunction("sI?I", "STRING", "substr({all})"),
    "concat": DialectFunction("[si][si]*", "STRING", "({all})"),
    "mod": DialectFunction("nn", "common", "({0} % {1})"),
    "element_at": DialectFunction("aI", "element", "{0}[{1}]"),
}
"""The functions by name, in lower case."""

_ANY_ROW: Final = "takes the value of any row: write min or max"
_LIST: Final = "write array_sort(collect_list(x))"
INSTEAD: Final[Mapping[str, str]] = {
    "first": _ANY_ROW,
    "last": _ANY_ROW,
    "any_value": _ANY_ROW,
    "arbitrary": _ANY_ROW,
    "mode": "takes any of several: count by GROUP BY, and order",
    **dict.fromkeys(
        ("max_by", "min_by", "arg_max", "arg_min", "argmax", "argmin"),
        "takes any of the rows that tie: write QUALIFY row_number() OVER (ORDER BY ...) = 1",
    ),
    **dict.fromkeys(("array_agg", "list"), f"is in the order of any rows: {_LIST}"),
    **dict.fromkeys(
        ("listagg", "string_agg", "group_concat"),
        "is in the order of any rows: write array_join(array_sort(collect_list(x)), ',')",
    ),
    **dict.fromkeys(("approx_count_distinct",), "approximates: write count(DISTINCT x)"),
    **dict.fromkeys(
        ("percentile_approx", "approx_percentile", "approx_quantile", "quantile", "quantile_cont"),
        "differs between engines: write percentile(x, 0.5)",
    ),
    **dict.fromkeys(("rand", "random", "randn", "uuid"), "has another answer each time: leave it out"),
    **dict.fromkeys(
        ("len", "char_length", "character_length"), "is not in the dialect: write length or size"
    ),
    "unnest": "is not in the dialect: write explode(x)",
    "regexp_matches": "is not in the dialect: write regexp_like(s, 'pattern')",
    "string_split": "is not in the dialect: write split(s, 'pattern')",
    **dict.fromkeys(
        ("split_part", "substring_index"), "is not in the dialect: write get(split(s, 'pattern'), 0)"
    ),
    "some": "is not in the dialect: write bool_or(x)",
    **dict.fromkeys(("bit_and", "bit_or"), "is not in the dialect: write max(x & 4)"),
    **dict.fromkeys(("int", "bigint", "double", "string", "boolean"), "is a type: write CAST(x AS INT)"),
    **dict.fromkeys(("shiftright", "shiftleft"), "is not in the dialect: write div, or multiply"),
    "position": "is not in the dialect: write instr(s, 'part')",
    "grouping_id": "is not in the dialect: write grouping(x)",
    "posexplode": "is not in the dialect: write explode(x)",
    "bround": "is not in the dialect: write round",
    "log": "differs between engines: write ln, log2 or log10",
    **dict.fromkeys(
        (
            *("to_timestamp", "from_unixtime", "timestamp_micros", "make_timestamp", "epoch_ns"),
            *("now", "date_trunc", "current_timestamp", "current_date", "date_format", "to_date"),
            *("timestamp_seconds", "unix_timestamp", "extract"),
        ),
        "depends on a time zone: compute with nanoseconds, or write since_start(t_ns)",
    ),
}
"""The reason for which a function is refused, and its replacement."""
