"""Questions of the dialect: every function with every kind of argument, and every part of the grammar."""

import itertools
import random
import re
from pathlib import Path

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

LISTED = {
    part.partition("]\n")[0]: part.partition("]\n")[2].splitlines()
    for part in ("\n" + Path(__file__).with_name("dialect.txt").read_text("utf-8")).split("\n[")[1:]
}
"""The lines of each section of dialect.txt."""
SHAPES = {"n": "numbers", "s": "texts", "b": "booleans"}
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

NOT_ALONE = frozenset(LISTED["not alone"])
"""Functions that fail for some arguments or need something around them: they stand in dialect.txt."""


def scalars() -> list[str]:
    """Return expressions over a row of `t`."""
    names = [name for name, each in FUNCTIONS.items() if not each.over and name not in NOT_ALONE]
    return [call for name in names for call in calls(name)] + LISTED["expressions"]


def aggregates() -> list[str]:
    """Return expressions over all rows of `t`."""
    names = [name for name, each in FUNCTIONS.items() if each.over == "aggregate" and name not in NOT_ALONE]
    found = [call for name in names for call in calls(name)]
    return [*found, *(f"{each} FILTER (WHERE i > 1)" for each in found[::4]), *LISTED["aggregates"]]


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
    return found + LISTED["windows"]


_KEY = "i, b, d, s"
_OVER = (
    f"ORDER BY {_KEY}",
    "PARTITION BY ok ORDER BY i DESC, b DESC, d DESC, s DESC",
    f"ORDER BY d DESC NULLS LAST, {_KEY}",
    f"PARTITION BY ok ORDER BY {_KEY} ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
    f"ORDER BY {_KEY} ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
)


def drawn(chance: random.Random, of: str, depth: int) -> str:
    """Return an expression over a row of `t` drawn by chance. of: n, s or b, its kind; in dialect.txt N, S
    and B are expressions of these kinds.
    """
    shapes = LISTED[SHAPES[of]]
    shape = chance.choice(shapes if depth else [each for each in shapes if not re.search(r"\b[NSB]\b", each)])

    def part(found: re.Match[str]) -> str:
        letter = found.group()
        return letter if letter.startswith("'") else f"({drawn(chance, letter.lower(), depth - 1)})"

    return re.sub(r"'[^']*'|\b[NSB]\b", part, shape)
