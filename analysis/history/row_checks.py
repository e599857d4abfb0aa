"""Checks of a history's rows. Files may come from other machines and other people.

Names are single, printable parts of a path, numbers are finite, JSON is an object, and verdicts are known
ones. A file that breaks a rule is left out with a one-line reason. Free text may hold anything, as
the output of programs; unprintable characters are replaced. The path of a run's directory is not
trusted: code that removes files checks it first (`analysis.history.pruning`).
"""

import json
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from analysis.history.history_schemas import BETTER, EXPECTATIONS, METRICS, RUNS, SCHEMAS, VERDICTS
from experiments.files.plain_name import plain_name
from experiments.files.sanitize import sanitize
from topologies.errors import InputError

PROSE: Final = frozenset(((RUNS, "reasons"), (RUNS, "problems"), (EXPECTATIONS, "text")))
OBJECTS: Final = ("settings", "machine")
"""Columns of the table `runs` that hold JSON."""
DECIMAL: Final = r"^(-?[0-9]{1,20})?$"
SHOWN_MAX: Final = 80


class UnusableError(Exception):
    """A file that cannot be used. The message gives the reason."""


def checked(table: str, rows: pa.Table) -> pa.Table:
    """Return the rows with printable free text. Raises UnusableError."""
    for field in SCHEMAS[table]:
        column = rows[field.name]
        if (table, field.name) in PROSE:
            place = rows.schema.get_field_index(field.name)
            rows = rows.set_column(place, field, _showable(column, field.type))
        elif pa.types.is_string(field.type):
            _check(field.name, column, pc.utf8_is_printable(column), "which cannot be shown")
        elif pa.types.is_floating(field.type):
            _check(field.name, column, pc.is_finite(column), "which is not a number")
    _check_names(rows)
    if table == RUNS:
        _check_one_of("verdict", rows, VERDICTS)
        _check("large_seed", rows["large_seed"], _is_decimal(rows["large_seed"]), "which is not an integer")
        for name in OBJECTS:
            _check_objects(name, rows)
    if table == METRICS:
        _check_one_of("better", rows, BETTER)
    return rows


def _check(name: str, column: pa.ChunkedArray, good: pa.ChunkedArray, otherwise: str) -> None:
    """Raise UnusableError with the first value for which `good` is false; null counts as good."""
    place = pc.index(good, value=False).as_py()
    if place >= 0:
        raise UnusableError(f"has the {name} {_shown(column[place].as_py())}, {otherwise}")


def _check_names(rows: pa.Table) -> None:
    for name in pc.unique(rows["run"]).to_pylist():
        try:
            plain_name(name, "")
        except InputError:
            raise UnusableError(f"has the run {_shown(name)}, which is not a directory name") from None


def _check_one_of(name: str, rows: pa.Table, known: tuple[str, ...]) -> None:
    good = pc.is_in(rows[name], pa.array(known, pa.string()))
    _check(name, rows[name], good, f"which is none of {', '.join(filter(None, known))}")


def _is_decimal(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.match_substring_regex(column, DECIMAL)


def _check_objects(name: str, rows: pa.Table) -> None:
    for text in pc.unique(rows[name]).to_pylist():
        try:
            good = isinstance(json.loads(text or "{}"), dict)
        except (ValueError, RecursionError):
            good = False
        if not good:
            raise UnusableError(f"has the {name} {_shown(text)}, which is not a JSON object")


def _showable(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Return texts, or lists of texts, without unprintable characters. Most are printable already."""
    texts = pc.list_flatten(column) if pa.types.is_list(kind) else column
    if not texts.null_count and pc.all(pc.utf8_is_printable(texts)).as_py() is not False:
        return column
    shown = [
        [_text(each) for each in value] if isinstance(value, list) else _text(value)
        for value in column.to_pylist()
    ]
    return pa.chunked_array([pa.array(shown, kind)])


def _text(text: str | None) -> str:
    text = text or ""
    return text if text.isprintable() else sanitize(text)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}…"
