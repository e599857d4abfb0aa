"""How a message reads in one line: the phrases of its layout, taken apart.

`node.core.layout` says what phrases are. Here they are parsed once, for whatever fills them in: rows of a
table (`analysis.messages.label`), or the dissector in Wireshark (`analysis.messages.wireshark`).
"""

import re
from dataclasses import dataclass

from node.core.layout import Layout

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
