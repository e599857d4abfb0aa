"""How a message of the table of transfers reads in one line, as `EVENTS s2 [48210..48341]`.

`node.core.layout` says what phrases are. They are parsed here, for rows of a table, and for the dissector in
Wireshark (`analysis.messages.wireshark`).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from analysis.schemas import COLUMN_OF, ROWS_COLUMNS
from node.core.epochs import written
from node.core.layout import SEQ, Layout
from node.systems import codec_of

_VALUE = re.compile(r"\{(\w+)(?:\+(\w+))?(\?)?\}")
ROWS_SHOWN = 8  # a line has room for
MORE = "…"


@dataclass(frozen=True, slots=True)
class Value:
    """What is filled in: a field's value; the last of as many numbers as `count` says, if there is one."""

    field: str
    count: str = ""
    optional: bool = False  # 0 is not worth saying


@dataclass(frozen=True, slots=True)
class Phrase:
    """Pieces of text with values between them: there is one text more than there are values."""

    texts: tuple[str, ...]
    values: tuple[Value, ...]


def phrases(layout: Layout) -> tuple[Phrase, ...]:
    """The phrases of a message or row."""
    return tuple(_phrase(text) for text in layout.reads)


def _phrase(text: str) -> Phrase:
    parts = _VALUE.split(text)
    values = zip(parts[1::4], parts[2::4], parts[3::4], strict=True)
    return Phrase(
        tuple(parts[0::4]), tuple(Value(field, count or "", bool(mark)) for field, count, mark in values)
    )


def value_names(layout: Layout, field: str) -> dict[int, str]:
    """What people call a field's values; empty for a field of plain numbers."""
    values = next((each.values for each in layout.fields if each.name == field), None)
    return {} if values is None else {int(each): each.name.lower().replace("_", " ") for each in values}


def label(row: Mapping[str, Any], system: str) -> str:
    """Type, stream, range and what else a row of TRANSFERS or MESSAGES says of a message of a system.

    What the tables have no column for (names, reasons) is left out, and so is what was not captured.
    """
    layout, said = _reading(system, row["type"])
    return " ".join([row["type"], *_filled(said, row, layout)])


@cache
def _reading(system: str, name: str) -> tuple[Layout | None, tuple[Phrase, ...]]:
    codec = codec_of(system)
    layout = codec.by_name.get(name) if codec else None
    return layout, phrases(layout) if layout else ()


def _filled(said: tuple[Phrase, ...], row: Mapping[str, Any], layout: Layout | None) -> list[str]:
    filled = []
    for phrase in said:
        values = [_value(value, row, layout) for value in phrase.values] if layout else []
        if "" not in values:
            filled.append(
                phrase.texts[0]
                + "".join(value + text for value, text in zip(values, phrase.texts[1:], strict=True))
            )
    return filled


def _value(value: Value, row: Mapping[str, Any], layout: Layout) -> str:
    if layout.row is not None and value.field == layout.tail_name:
        return _rows(row, layout.row)
    number = row.get(COLUMN_OF.get(value.field, value.field))
    if number is None or (value.optional and number == 0):
        return ""
    text = written if _is_seq(layout, value.field) else str
    if not value.count:
        return value_names(layout, value.field).get(number, text(number))
    count = row.get(COLUMN_OF.get(value.count, value.count))
    return "" if count is None else text(number + count - 1)


@cache
def _is_seq(layout: Layout, field: str) -> bool:
    return any(each.name == field and each.unit == SEQ for each in layout.fields)


def _rows(row: Mapping[str, Any], layout: Layout) -> str:
    """The rows of a message, from whichever column has them: dictionaries, or single numbers."""
    rows: list[Any] = next((row[name] for name in ROWS_COLUMNS if row.get(name) is not None), [])
    said = _reading_of_rows(layout)
    shown = [
        " ".join(_filled(said, each if isinstance(each, Mapping) else {layout.fields[0].name: each}, layout))
        for each in rows[:ROWS_SHOWN]
    ]
    return " ".join(shown + [MORE] * (len(rows) > ROWS_SHOWN))


@cache
def _reading_of_rows(layout: Layout) -> tuple[Phrase, ...]:
    return phrases(layout)
