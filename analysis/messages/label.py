"""The one-line label of a message in the table of transfers, e.g. `EVENTS s2 [48210..48341]`.

The label of a nested message follows the names of the enclosing messages; the table knows only the end points
of those.

`node.core.message_layout` defines phrases. This module parses and fills them in, for rows of a table and for
messages themselves (golden scenarios). Wireshark's dissector fills them in itself (`wireshark`).
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from ipaddress import IPv4Address
from typing import Any

from analysis.messages.marked import MARKED
from analysis.schemas import ENDS_COLUMNS, ROWS_COLUMNS
from node.core.epochs import format_seq, parse_seq
from node.core.message_layout import ADDRESS, KEY, KEY_SHOWN, SEQ, WIDTHS, MessageLayout
from node.systems import codec_of

_VALUE = re.compile(r"\{(\w+)(?:\+(\w+))?(\?)?\}")
LABEL_COLUMNS = (
    "type", "within", "source", "target",
    "stream", "kind", "first_seq", "count", "request", "cnt", "next", "last", "configuration", "key",
    "covered", *ROWS_COLUMNS,
)  # fmt: skip
"""The columns of TRANSFERS that a label may show."""
ROWS_SHOWN = 8  # fits one line
MORE = "…"


@dataclass(frozen=True, slots=True)
class Placeholder:
    """A placeholder: a field's value or, with `count`, the last of that many numbers starting at it."""

    field: str
    count: str = ""
    optional: bool = False  # 0 is omitted


@dataclass(frozen=True, slots=True)
class Phrase:
    """Pieces of text with values between them: one text more than values."""

    texts: tuple[str, ...]
    values: tuple[Placeholder, ...]


@cache
def phrases(layout: MessageLayout) -> tuple[Phrase, ...]:
    """Return the phrases of a message or row."""
    return tuple(_phrase(text) for text in layout.reads)


def _phrase(text: str) -> Phrase:
    parts = _VALUE.split(text)
    values = zip(parts[1::4], parts[2::4], parts[3::4], strict=True)
    return Phrase(
        tuple(parts[0::4]),
        tuple(Placeholder(field, count or "", bool(mark)) for field, count, mark in values),
    )


def value_names(layout: MessageLayout, field: str) -> dict[int, str]:
    """Return the names of a field's values; empty for a field of plain numbers."""
    values = next((each.values for each in layout.fields if each.name == field), None)
    return {} if values is None else {int(each): each.name.lower().replace("_", " ") for each in values}


def fill_phrases(parts: Iterable[Phrase], show: Callable[[Placeholder], str]) -> list[str]:
    """Return the phrases with values filled in by `show`. A phrase with an empty value is omitted."""
    texts = []
    for phrase in parts:
        values = [show(value) for value in phrase.values]
        if "" not in values:
            following = zip(values, phrase.texts[1:], strict=True)
            texts.append(phrase.texts[0] + "".join(value + text for value, text in following))
    return texts


def number_text(layout: MessageLayout, field: str, number: int) -> str:
    """Return a field's value as text: its name, or a number."""
    names, write = _how_written(layout, field)
    return names.get(number) or write(number)


@cache
def _how_written(layout: MessageLayout, field: str) -> tuple[dict[int, str], Callable[[int], str]]:
    found = next((each for each in layout.fields if each.name == field), None)
    write: Callable[[int], str] = str
    if found is not None and found.unit == SEQ:
        write = format_seq
    elif found is not None and found.unit == ADDRESS:
        write = address_text
    elif found is not None and found.format == KEY:
        write = key_text
    return value_names(layout, field), write


def key_text(key: int) -> str:
    """Return the short form of a 128-bit key: its first digits."""
    return f"{key:0{2 * WIDTHS[KEY]}x}"[:KEY_SHOWN]


def parse_key(digits: str) -> bytes:
    """Parse a key from its digits, as logs have it. Return b"" for other text."""
    try:
        return bytes.fromhex(digits)
    except ValueError:
        return b""


def address_text(number: int) -> str:
    """Return the dotted form of a numeric address."""
    return str(IPv4Address(number))


def label(row: Mapping[str, Any], system: str, host_at: Mapping[str, str] | None = None) -> str:
    """Return the label of a row of TRANSFERS or MESSAGES: type, stream, range and further values.

    host_at: names of the end points of forwarded messages. Values without a column (names, reasons) and
    values that were not captured are omitted.
    """
    layout, parts = _reading(system, row["type"])
    around = [_outer(system, name, row, host_at or {}) for name in (row.get("within") or "").split()]
    return ": ".join([*around, " ".join([row["type"], *_filled(parts, row, layout)])])


def _outer(system: str, name: str, row: Mapping[str, Any], host_at: Mapping[str, str]) -> str:
    """Return the label of an enclosing message. The row has only its end points."""
    layout, parts = _reading(system, name)
    if layout is None:
        return name
    known = [
        phrase
        for phrase in parts
        if all(layout.column_of(each.field) in ENDS_COLUMNS for each in phrase.values)
    ]

    def shown(value: Placeholder) -> str:
        text = _value(value, row, layout)
        return host_at.get(text, text)

    return " ".join([name, *fill_phrases(known, shown)])


@cache
def _reading(system: str, name: str) -> tuple[MessageLayout | None, tuple[Phrase, ...]]:
    codec = codec_of(system) or MARKED
    layout = codec.by_name.get(name)
    return layout, phrases(layout) if layout else ()


def _filled(parts: tuple[Phrase, ...], row: Mapping[str, Any], layout: MessageLayout | None) -> list[str]:
    return fill_phrases(parts, lambda value: _value(value, row, layout)) if layout else []


def _value(value: Placeholder, row: Mapping[str, Any], layout: MessageLayout) -> str:
    if layout.row is not None and value.field == layout.tail_name:
        return _rows(row, layout.row)
    number = row.get(layout.column_of(value.field))
    number = int.from_bytes(number, "big") if isinstance(number, bytes) else number
    if number is None or (value.optional and number == 0):
        return ""
    if not value.count:
        return number_text(layout, value.field, number)
    count = row.get(layout.column_of(value.count))
    return "" if count is None else number_text(layout, value.field, number + count - 1)


def _rows(row: Mapping[str, Any], layout: MessageLayout) -> str:
    """Return the rows of a message from the column that has them: dictionaries, or single numbers."""
    rows: list[Any] = next((row[name] for name in ROWS_COLUMNS if row.get(name) is not None), [])
    shown = [
        " ".join(
            _filled(
                phrases(layout), each if isinstance(each, Mapping) else {layout.fields[0].name: each}, layout
            )
        )
        for each in rows[:ROWS_SHOWN]
    ]
    return " ".join(shown + [MORE] * (len(rows) > ROWS_SHOWN))


__all__ = ["format_seq", "parse_seq"]
