"""Questions of the dialect: every function with every kind of argument, and every part of the grammar."""

import itertools
import random
import re

from analysis.sql.dialect_functions import FUNCTIONS

ROWS = """
    (1, 1700000000000000001, 2.5, 'b-1', true, 'x,y', 'x'),
    (2, 1700000000000000002, 2.7, 'a.2', false, 'y', 'y'),
    (2, 1700000000000000002, 1.005, 'a.2', false, 'y', 'y'),
    (NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (-7, -3, -0.125, 'x''y z', true, 'z,,x', ''),
    (3, 0, 0.0, '', NULL, '', NULL),
    (2147483647, 9007199254740993, 12345678.015, ' 42 ', false, 'b', 'B'),
    (12, 5, 1e-7, 'Ab%c_d', true, 'x,x', 'X')"""
T = f"""WITH t AS (
  SELECT i, CAST(b AS BIGINT) AS b, d, s, ok, split(l, ',') AS a, w
  FROM (VALUES {ROWS}) AS v(i, b, d, s, ok, l, w)
) """
"""A table with columns of most types that our tables have, NULLs, and rows that are equal."""

GIVEN = {
    "n": ("i", "b", "d", "-2.5"),
    "i": ("i", "b", "3"),
    "I": ("i", "2", "-1"),
    "s": ("s", "w", "'a'"),
    "b": ("ok", "i > 1"),
    "x": (),
    "a": ("a", "split(s, '-')"),
    "v": ("i", "s", "d", "ok"),
    "c": ("i", "d", "s", "ok"),
    "e": ("'x'", "w"),
    "z": ("0", "2"),
    "p": ("0.5", "0.9"),
    "r": ("'[-.]'", "'^[a-b]+.(2)([0-9]*)'", "'x|y'"),
    "t": ("'_'",),
    "q": ("'_'", "'xyz'"),
    ".": ("i", "s", "d", "ok", "a"),
}
"""Arguments by the letter of their kind."""
CALLS_MAX = 6
"""Calls of a function without the shape of a window."""


def calls(name: str) -> list[str]:
    """Return calls of a function: with each of its numbers of arguments, of every kind that it takes."""
    takes = FUNCTIONS[name].takes
    needed, _, more = takes.partition("?")
    shapes = [_letters(needed)]
    if takes.endswith("*"):
        shapes.append([*shapes[0], shapes[0][-1]])
    shapes += [[*shapes[0], *_letters(more)[:count]] for count in range(1, len(_letters(more)) + 1)]
    found = {}
    for shape in shapes:
        for given in itertools.product(
            *([each for letter in one for each in GIVEN[letter]] for one in shape)
        ):
            if _fits(shape, given):
                found[f"{name}({', '.join(given)})"] = len(found)
    every = list(found)
    return every[:: max(1, len(every) // CALLS_MAX)][: CALLS_MAX + 2]


def _letters(takes: str) -> list[str]:
    return [each.strip("[]") for each in re.findall(r"\[\w+\]|[\w.]", takes)]


def _fits(shape: list[str], given: tuple[str, ...]) -> bool:
    """Return whether values that have to be of one type are."""
    alike = {_FAMILY.get(each, each) for one, each in zip(shape, given, strict=True) if one in "cv"}
    return len(alike) < 2


_FAMILY = {"i": "number", "d": "number"}

NOT_ALONE = {
    *(
        "explode",
        "since_start",
        "during",
        "ip",
        "collect_list",
        "collect_set",
        "grouping",
        "mod",
        "element_at",
    ),
}
"""Functions that fail for some arguments or need something around them: they stand in the lists below."""


def scalars() -> list[str]:
    """Return expressions over a row of `t`."""
    names = [name for name, each in FUNCTIONS.items() if not each.over and name not in NOT_ALONE]
    return [call for name in names for call in calls(name)] + EXPRESSIONS


def aggregates() -> list[str]:
    """Return expressions over all rows of `t`."""
    names = [name for name, each in FUNCTIONS.items() if each.over == "aggregate" and name not in NOT_ALONE]
    found = [call for name in names for call in calls(name)]
    return [*found, *(f"{each} FILTER (WHERE i > 1)" for each in found[::4]), *AGGREGATES]


def windows() -> list[str]:
    """Return window functions over `t`, in orders without ties, in either direction."""
    names = [name for name, each in FUNCTIONS.items() if each.over and name not in NOT_ALONE]
    found = []
    for number, call in enumerate(call for name in names for call in calls(name)[:3]):
        name = call.partition("(")[0]
        if name in ("median", "percentile"):
            found.append(f"{call} OVER (PARTITION BY ok)")
        elif not re.match(r"(ntile|nth_value).*\b0\)", call):
            orders = 3 if FUNCTIONS[name].over == "window" else len(_OVER)
            found.append(f"{call} OVER ({_OVER[number % orders]})")
    return found + WINDOWS


_KEY = "i, b, d, s"
_OVER = (
    f"ORDER BY {_KEY}",
    "PARTITION BY ok ORDER BY i DESC, b DESC, d DESC, s DESC",
    f"ORDER BY d DESC NULLS LAST, {_KEY}",
    f"PARTITION BY ok ORDER BY {_KEY} ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
    f"ORDER BY {_KEY} ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
)
EXPRESSIONS = [
    *("CAST(2.5 AS INT)", "CAST(d AS INT)", "CAST(d AS BIGINT)", "CAST(b AS DOUBLE)", "CAST(i AS STRING)"),
    *(
        "CAST(ok AS INT)",
        "CAST(ok AS STRING)",
        "CAST(i AS BOOLEAN)",
        "CAST(' 42 ' AS INT)",
        "CAST('-3' AS BIGINT)",
    ),
    *("CAST('1.5e3' AS DOUBLE)", "CAST('.5' AS DOUBLE)", "CAST(NULL AS INT)", "d::INT", "CAST(ok AS DOUBLE)"),
    *("a[0]", "split('a-b', '-')[1]", "get(a, 1)", "get(a, -1)", "element_at(a, 1)", "element_at(a, -1)"),
    *(
        "1 / 4",
        "i / 4",
        "b / 3",
        "d / 2.0",
        "i % 3",
        "-7 % 3",
        "d % 2",
        "-7 div 2",
        "b div 2",
        "i div -2",
        "mod(-7, 3)",
        "mod(d, 2)",
    ),
    *(
        "i / nullif(d, 0)",
        "NULL / 0",
        "try_divide(i, d)",
        "try_divide(1, 0)",
        "7 / 2 / 2",
        "(b + 1) * 1.5 - d",
    ),
    *(
        "concat('a', NULL)",
        "concat(s, '-', i)",
        "concat(1, s)",
        "s || '-' || w",
        "concat_ws('-', 'a', NULL, s)",
    ),
    *(
        "round(1.005, 2)",
        "round(2.5)",
        "round(-2.5)",
        "round(0.125, 2)",
        "round(d)",
        "round(d, 2)",
        "round(i, 1)",
    ),
    *("round(1e20, 2)", "round(d * 1000, 1)", "round(2.675, 2)", "round(1.15, 1)", "round(b / 7, 3)"),
    *(
        "substr(s, 0)",
        "substr(s, 0, 2)",
        "substr(s, -2)",
        "substr(s, -9, 8)",
        "substr(s, 2, -1)",
        "substr(s, 2, 1)",
    ),
    *("substr('\u00e4\u00f1\U0001f600b', 2, 2)", "length('\u00e4\u00f1\U0001f600')", "upper('\u00e4\u00f1')"),
    *(
        "i = 2",
        "i <> 2",
        "i <=> NULL",
        "s <=> w",
        "i IS NULL",
        "ok IS TRUE",
        "ok IS NOT TRUE",
        "NOT ok",
        "ok AND NULL",
    ),
    *(
        "ok OR i > 1",
        "i IN (1, 2, NULL)",
        "i NOT IN (1, 3)",
        "s IN ('b-1', '')",
        "i BETWEEN 1 AND 3",
        "d > 2.6",
    ),
    *(
        "i == 2",
        "i != 2",
        "i >= d",
        "s < 'b'",
        "s > w",
        "ok = true",
        "d BETWEEN -1 AND 2.5",
        "NULL = 1",
        "!ok",
    ),
    *(
        "s LIKE 'a%'",
        "s LIKE 'A_\\\\%c\\\\_d'",
        "s ILIKE 'AB%'",
        "s NOT LIKE '%2'",
        "s LIKE w",
        "s RLIKE '^[a-z].[0-9]$'",
    ),
    *("s RLIKE '\\\\d'", "s RLIKE r'\\w\\W\\w'", "regexp_extract(s, '([a-z]+)[-.]([0-9]+)', 2)"),
    *("'it''s'", "'it\\'s'", '"double"', "'a' 'b'", "r'\\d'", "'tab\\tnew'", "'\\\\'", "'a\\d'", "'%\\_'"),
    *(
        "i & 6",
        "i | 8",
        "i ^ 3",
        "~i",
        "b & 255",
        "-i",
        "- -i",
        "i + b",
        "i * 2L",
        "1.5D",
        "3L",
        "1e3",
        "1.",
        ".5",
    ),
    *("CASE WHEN i > 1 THEN 'more' WHEN i < 0 THEN 'less' END", "CASE i WHEN 1 THEN 1.5 ELSE 2 END"),
    *(
        "CASE WHEN ok THEN i ELSE b END",
        "nvl2(s, i, d) > 1",
        "if(ok, ok, i > 1) OR ok",
        "if(ok, d, 0)",
        "coalesce(i, b, 0)",
        "greatest(i, d, 2)",
        "nullif(s, '')",
    ),
    *("array_sort(split('c,a,b', ','))", "sort_array(a)", "size(a)", "array_join(a, '+')", "array_max(a)"),
    *("array_contains(a, 'x')", "size(split('', ','))", "split('a,b,,', ',')"),
    *("abs(-9007199254740993)", "sqrt(-1)", "ln(0)", "log2(8)", "exp(1)", "pow(0, -1)", "hex(-1)", "hex(s)"),
    *(
        "isnan(sqrt(-1))",
        "sqrt(-1) = sqrt(-1)",
        "greatest(sqrt(-1), 1.0)",
        "ceil(-0.5)",
        "floor(d)",
        "sign(d)",
    ),
    *(
        "trim('\t a ')",
        "lpad(s, 9, 'xy')",
        "rpad(s, 2, ' ')",
        "left(s, 0)",
        "right(s, 2)",
        "instr(s, '')",
        "NULL",
    ),
]
AGGREGATES = [
    *("count(*)", "count(1)", "count(i, s)", "count(DISTINCT i)", "count(DISTINCT i, s)", "sum(DISTINCT i)"),
    *(
        "sum(i) / count(*)",
        "100.0 * sum(i) / sum(b / 7)",
        "avg(DISTINCT i)",
        "max(s)",
        "min(ok)",
        "sum(i + 0.5)",
    ),
    *("array_sort(collect_list(i))", "sort_array(collect_set(s))", "size(collect_set(ok))", "avg(b % 7)"),
    *(
        "array_join(array_sort(collect_list(s)), ',')",
        "percentile(i, 0.25)",
        "median(d)",
        "sum(CAST(b AS DOUBLE))",
    ),
    *(
        "max(i) - 1",
        "sum(CASE WHEN ok THEN 1 ELSE 0 END)",
        "count_if(i > 1)",
        "round(avg(d), 3)",
        "max(NULL)",
    ),
]
WINDOWS = [
    "count(*) OVER ()",
    f"lag(i, 1, -1) OVER (ORDER BY {_KEY})",
    f"lead(s, 2) OVER (ORDER BY {_KEY})",
    f"lag(i) IGNORE NULLS OVER (ORDER BY d, {_KEY})",
    f"last_value(i) OVER (ORDER BY {_KEY} ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
    "sum(i) OVER (ORDER BY d)",
    "sum(d) OVER (ORDER BY b RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING)",
    f"i - lag(i) OVER (PARTITION BY ok ORDER BY {_KEY})",
]

QUESTIONS = [
    "SELECT i, s FROM t ORDER BY i, s LIMIT 1",
    "SELECT i FROM t ORDER BY i DESC, s LIMIT 2 OFFSET 1",
    "SELECT i FROM t ORDER BY i NULLS LAST",
    "SELECT DISTINCT s FROM t ORDER BY s",
    "SELECT i, d FROM t ORDER BY ALL",
    "SELECT * FROM t WHERE i IS NOT NULL ORDER BY i, d",
    "SELECT i, i + 1 AS j, j * 2 AS k FROM t WHERE i < 100 ORDER BY i",
    "SELECT s AS name, count(*) AS n FROM t GROUP BY name HAVING n > 1 ORDER BY n DESC",
    "SELECT ok, count(*), sum(i) FROM t GROUP BY ok ORDER BY ok",
    "SELECT ok, count(*) FROM t GROUP BY 1 ORDER BY 2, 1",
    "SELECT ok, count(*) FROM t GROUP BY ALL ORDER BY ALL",
    "SELECT ok, s, sum(i) FROM t GROUP BY ROLLUP(ok, s) ORDER BY ok, s, sum(i)",
    "SELECT ok, s, count(*) FROM t GROUP BY CUBE(ok, s)",
    "SELECT ok, grouping(ok) AS g, count(*) FROM t GROUP BY GROUPING SETS ((ok), ()) ORDER BY g, ok",
    "SELECT i, row_number() OVER (ORDER BY i, d) AS n FROM t QUALIFY n <= 2",
    "SELECT s FROM t QUALIFY row_number() OVER (PARTITION BY ok ORDER BY i, d) = 1",
    "SELECT rank() OVER w, dense_rank() OVER w FROM t WINDOW w AS (ORDER BY i)",
    "SELECT explode(a) AS e FROM t",
    "SELECT e, count(*) AS n FROM (SELECT explode(a) AS e FROM t) GROUP BY e",
    "SELECT i FROM t UNION SELECT b FROM t",
    "SELECT i FROM t UNION ALL SELECT 7.5",
    "SELECT s FROM t EXCEPT SELECT w FROM t",
    "SELECT i FROM t INTERSECT SELECT 2",
    "SELECT i FROM t EXCEPT ALL SELECT 2",
    "SELECT l.i, r.s FROM t l JOIN t r ON l.i = r.i AND l.d < r.d",
    "SELECT l.i, r.s FROM t l LEFT JOIN t r ON l.w = r.s",
    "SELECT l.i, r.i FROM t l FULL OUTER JOIN (SELECT * FROM t WHERE i > 2) r ON l.i = r.i",
    "SELECT count(*) FROM t l CROSS JOIN t r",
    "SELECT i, l.s, r.s FROM t l JOIN t r USING (i)",
    "SELECT * FROM (SELECT s, i FROM t) l JOIN (SELECT i, d FROM t) r USING (i)",
    "SELECT * FROM (SELECT s, i FROM t) l RIGHT JOIN (SELECT i, d FROM t) r USING (i)",
    "SELECT i FROM t l LEFT SEMI JOIN (SELECT 2 AS x) r ON l.i = r.x",
    "SELECT i FROM t l LEFT ANTI JOIN (SELECT 2 AS x) r ON l.i = r.x",
    "SELECT i FROM t WHERE i IN (SELECT i FROM t WHERE ok)",
    "SELECT i FROM t WHERE i NOT IN (SELECT i FROM t WHERE i > 2)",
    "SELECT i FROM t l WHERE EXISTS (SELECT 1 FROM t r WHERE r.i > l.i)",
    "SELECT i, (SELECT max(d) FROM t) AS m FROM t",
    "SELECT * EXCEPT (a, d) FROM t",
    "SELECT t.*, 1 AS one FROM t",
    "SELECT I, T.S FROM t",
    "SELECT `i` AS `two words` FROM t",
    "SELECT x.y FROM (SELECT i AS y FROM t) x WHERE x.y > 1",
    "SELECT 1, 1, i, i FROM t",
    "SELECT max(i) FROM t WHERE false",
    "SELECT sum(i), array_sort(collect_list(i)), count(*) FROM t WHERE false",
    "SELECT i FROM t -- a comment with 'quotes\nORDER BY i",
    "(SELECT i FROM t WHERE ok) UNION ALL (SELECT i FROM t ORDER BY i, d LIMIT 1)",
    "SELECT CASE WHEN i <> 0 THEN 10 / i END FROM t",
    "SELECT percentile(d, 0.5) FROM t GROUP BY ok",
    "SELECT ok, sum(count(*)) OVER () FROM t GROUP BY ok",
    "SELECT i FROM t WHERE s = 'it''s' OR s = \"a.2\"",
    "SELECT ok, s, count(*) FROM t WHERE false GROUP BY CUBE(ok, s)",
    "SELECT ok, sum(i) FROM t GROUP BY ROLLUP(ok) HAVING sum(i) > 3",
    "SELECT i FROM t WHERE i > 100 OR i IN (SELECT b FROM t)",
    "SELECT i FROM t WHERE NOT (i IN (SELECT i FROM t WHERE i > 2)) AND ok",
    "SELECT avg(DISTINCT b), sum(DISTINCT b), count(DISTINCT b) FROM t",
    "SELECT i, sum(b) AS b FROM t GROUP BY i HAVING sum(abs(b)) > 3 ORDER BY b",
    "SELECT ok, sum(i) AS n, rank() OVER (ORDER BY sum(i) DESC) AS r FROM t GROUP BY ok",
    "SELECT ok, sum(i) AS n FROM t GROUP BY ok QUALIFY rank() OVER (ORDER BY n DESC) = 1",
    "SELECT row_number() OVER (PARTITION BY a[0] ORDER BY i / nullif(b, 0), d) FROM t",
    "SELECT DISTINCT w FROM t ORDER BY lower(w), w",
    "SELECT CAST('NaN' AS DOUBLE), CAST('-Infinity' AS DOUBLE), CAST(' +inf ' AS DOUBLE)",
]

ABOUT_RUNS = [
    "SELECT key, hex(key) AS k, length(key) AS n, count(*) FROM messages GROUP BY ALL ORDER BY k",
    "SELECT hops, members, advertised FROM messages",
    "SELECT a.stream, a.cnt FROM (SELECT explode(advertised) AS a FROM messages)",
    "SELECT u.what, sum(u.count) FROM (SELECT explode(unused) AS u FROM captures) GROUP BY u.what",
    "SELECT advertised[0].stream FROM messages WHERE size(advertised) > 0",
    "SELECT sum(t_ns % 1000000), min(t_ns), max(t_ns) - min(t_ns) FROM packets",
    "SELECT capture, t_ns - lag(t_ns) OVER (PARTITION BY capture ORDER BY t_ns, src_lo, sport, wire_length)"
    " AS gap_ns FROM packets",
    "SELECT sender, ntile(4) OVER (ORDER BY t_ns, sender, receiver, type) AS part FROM transfers",
    "SELECT DISTINCT ip(src_hi, src_lo) AS src, since_start(t_ns) > 0 AS after FROM packets ORDER BY ALL",
    "SELECT count_if(during('cut', t_ns)), count_if(NOT during('cut', t_ns)) FROM packets",
    "SELECT CAST(seed AS BIGINT) + 1 AS next, split(run, '-')[0] AS first FROM runs",
    "SELECT name, publishers[0] AS owner FROM streams ORDER BY name LIMIT 1",
    "SELECT link, delay_ms / 2, round(delay_ms / 3, 1), rate_bits_per_s IS NULL FROM links"
    " ORDER BY link, direction",
    "SELECT p.capture, count(*) FROM packets p JOIN captures c ON p.capture = c.capture AND p.run = c.run"
    " GROUP BY p.capture",
    "TABLE streams",
    "DESCRIBE messages",
]
"""Questions about the tables of a run."""


_SHAPES = {
    "n": (
        *("i", "b", "d", "0", "-3", "2.5", "abs(N)", "round(N, 2)", "round(N)", "sign(N)", "length(S)"),
        *(
            "coalesce(N, N)",
            "nullif(N, N)",
            "greatest(N, N)",
            "least(N, N, N)",
            "try_divide(N, N)",
            "instr(S, S)",
        ),
        *("N * 0.5", "N - 1.5", "N + 0.25", "N % 7", "-N", "(N)", "N / 3", "CASE WHEN B THEN N ELSE N END"),
        *(
            "CASE WHEN B THEN N WHEN B THEN N END",
            "if(B, N, N)",
            "nvl2(S, N, N)",
            "CAST(B AS INT)",
            "sqrt(N)",
            "ln(N)",
        ),
    ),
    "s": (
        *(
            "s",
            "w",
            "'a'",
            "''",
            "upper(S)",
            "lower(S)",
            "trim(S)",
            "substr(S, 2)",
            "substr(S, -2, 1)",
            "left(S, 2)",
        ),
        *(
            "concat(S, S)",
            "S || S",
            "concat_ws('-', S, S)",
            "replace(S, S, 'y')",
            "lpad(S, 3, '*')",
            "coalesce(S, S)",
        ),
        *(
            "if(B, S, S)",
            "CASE WHEN B THEN S END",
            "CAST(i AS STRING)",
            "CAST(B AS STRING)",
            "get(split(S, '-'), 0)",
        ),
        *(
            "regexp_replace(S, '[a-y]', '_')",
            "nullif(S, S)",
            "greatest(S, S)",
            "array_join(a, '+')",
            "md5(S)",
        ),
    ),
    "b": (
        *(
            "ok",
            "true",
            "NULL = 1",
            "N = N",
            "N < N",
            "N >= N",
            "N <=> N",
            "S = S",
            "S < S",
            "S <=> S",
            "NOT B",
        ),
        *(
            "B AND B",
            "B OR B",
            "(B)",
            "N IS NULL",
            "S IS NOT NULL",
            "B IS TRUE",
            "N BETWEEN N AND N",
            "N IN (N, N)",
        ),
        *(
            "S IN (S, S)",
            "S LIKE 'a%'",
            "S NOT LIKE '%2'",
            "S RLIKE '[0-9]'",
            "contains(S, S)",
            "N NOT IN (N, 2)",
        ),
        *("startswith(S, S)", "isnan(N)", "coalesce(B, B)", "array_contains(a, S)", "isnull(N)", "B = B"),
    ),
}
"""Expressions by their kind: number, STRING, BOOLEAN. N, S and B are expressions of such kinds."""


def drawn(chance: random.Random, of: str, depth: int) -> str:
    """Return an expression of a kind over a row of `t`, drawn by chance."""
    shapes = _SHAPES[of] if depth else [each for each in _SHAPES[of] if not re.search(r"\b[NSB]\b", each)]
    shape = chance.choice([*shapes])

    def part(found: re.Match[str]) -> str:
        letter = found.group()
        return letter if letter.startswith("'") else f"({drawn(chance, letter.lower(), depth - 1)})"

    return re.sub(r"'[^']*'|\b[NSB]\b", part, shape)
