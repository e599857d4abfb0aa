"""Formats a message on one line, by the phrases that `analysis.messages.label` also fills with rows of
tables.
"""

import struct
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from analysis.messages.label import Placeholder, fill_phrases, number_text, phrases
from node.core.message_layout import MessageLayout, wire_name

U32 = struct.Struct(">I")


def in_words(message: Any, is_shown: Callable[[Any], bool]) -> tuple[str, str]:
    """Return the message's name and its phrases, with only the shown rows."""
    layout = MessageLayout(type(message))
    if layout.row is not None:
        rows = tuple(row for row in getattr(message, layout.tail_name) if is_shown(row))
        message = replace(message, **{layout.tail_name: rows})
    return wire_name(type(message)), " ".join(_parts(layout, message))


def _parts(layout: MessageLayout, message: Any) -> list[str]:
    return fill_phrases(phrases(layout), lambda value: _value(layout, value, message))


def _value(layout: MessageLayout, value: Placeholder, message: Any) -> str:
    found = getattr(message, value.field)
    if value.optional and not found:
        return ""
    if layout.row is not None and value.field == layout.tail_name:
        return ", ".join(" ".join(_parts(layout.row, row)) for row in found)
    if value.count:
        found += max(_count(layout, value.count, message), 1) - 1
    return number_text(layout, value.field, found)


def _count(layout: MessageLayout, name: str, message: Any) -> int:
    """Return the count in a phrase: a field of the head, or the sum of the numbers at the beginning of the
    tail.
    """
    numbers = next((each for each in layout.tail.numbers if each.name == name), None) if layout.tail else None
    if numbers is None:
        return int(getattr(message, name))
    size = 4 * getattr(message, numbers.count)
    listed = bytes(getattr(message, layout.tail_name)[:size])
    return sum(value for (value,) in U32.iter_unpack(listed))
