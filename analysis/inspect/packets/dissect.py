"""Dissects the bytes of one message: every field of its header, head and tail, with offset and value.

It uses the same tables as the nodes' codec (`node.core.message_layout`). Bytes that were not captured are
marked; a field that lacks bytes has no value.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from analysis.messages.label import address_text, value_names
from analysis.messages.marked import MARKED
from node.core.framing import HEADER_BYTES, HEADER_FIELDS
from node.core.marker import MAGIC
from node.core.message_layout import ADDRESS, KEY, NESTED_MAX, WIDTHS, Codec, MessageLayout

UNKNOWN = ".."  # shown for a byte that was not captured
_U32 = "I"


@dataclass(frozen=True, slots=True)
class CapturedBytes:
    """A message's bytes. `known` is 0 for each byte that was not captured."""

    data: bytes
    known: bytes

    def part(self, at: int, size: int) -> "CapturedBytes":
        """Return a range of the bytes."""
        return CapturedBytes(self.data[at : at + size], self.known[at : at + size])


@dataclass(frozen=True, slots=True)
class DissectedField:
    """A field of a message. value: None if bytes are missing; for plain bytes, their number.

    meaning: the meaning of the value, for a field with named values.
    """

    offset: int  # from the start of the frame
    content: CapturedBytes
    name: str
    value: int | str | None
    unit: str = ""
    meaning: str = ""

    def octets(self, first: int, last: int) -> list[str]:
        """Return some of the field's bytes, two digits each; UNKNOWN for those that were not captured."""
        pairs = zip(self.content.data[first:last], self.content.known[first:last], strict=True)
        return [f"{byte:02x}" if known else UNKNOWN for byte, known in pairs]


def dissect(content: CapturedBytes, codec: Codec) -> Iterator[DissectedField]:
    """Yield all fields of a message in order. Bytes that do not match the type come as `body` or `rest`."""
    if codec is MARKED:
        yield from _marked(content)
        return
    if len(content.data) < HEADER_BYTES:
        yield _part(content, 0, len(content.data), "header")
        return
    values = {}
    at = 0
    for name, form, unit, _ in HEADER_FIELDS:
        part = _number(content, at, form, name, unit)
        values[name] = part.value
        layout = codec.by_type.get(part.value) if name == "type" and isinstance(part.value, int) else None
        yield (
            part if layout is None else DissectedField(at, part.content, name, part.value, unit, layout.name)
        )
        at += struct.calcsize(form)
    kind = values["type"]
    layout = codec.by_type.get(kind) if isinstance(kind, int) else None
    if layout is None or len(content.data) < HEADER_BYTES + layout.head.size:
        yield _part(content, at, len(content.data) - at, "body")
    else:
        yield from _body(content, HEADER_BYTES, layout, codec, "")


def _marked(content: CapturedBytes) -> Iterator[DissectedField]:
    """Yield the fields of an event that is identified by its marker.

    Text and encrypted events are not dissected.
    """
    if content.data.startswith(MAGIC):
        yield from _body(content, 0, MARKED.by_type[1], MARKED, "")
    else:
        is_text = content.data.isascii()
        yield _part(content, 0, len(content.data), "event" if is_text else "encrypted", text=is_text)


def _body(
    content: CapturedBytes, begin: int, layout: MessageLayout, codec: Codec, prefix: str
) -> Iterator[DissectedField]:
    """Yield the fields of a body that starts at `begin` and extends to the end."""
    values: dict[str, int | str | None] = {}
    for part in _row(content, begin, layout, prefix):
        values[part.name.removeprefix(prefix)] = part.value
        yield part
    at, left = begin + layout.head.size, len(content.data) - begin - layout.head.size
    tail_name = prefix + layout.tail_name
    if layout.codec is not None and left and tail_name.count(".") < NESTED_MAX:
        yield from _nested(content, at, codec, f"{tail_name}.")
        left = 0
    elif layout.row is not None:
        size = layout.row.head.size
        for index in range(left // size):
            yield from _row(content, at + index * size, layout.row, f"{tail_name}[{index}].")
        at, left = len(content.data) - left % size, left % size
    elif layout.tail is not None and left:
        for numbers in layout.tail.numbers:
            count = values.get(numbers.count)
            if not isinstance(count, int) or (numbers.if_zero and values.get(numbers.if_zero) != 0):
                continue
            for index in range(min(count, left // 4)):
                yield _number(content, at, _U32, f"{prefix}{numbers.name}[{index}]", numbers.unit)
                at, left = at + 4, left - 4
        if left:
            yield _part(content, at, left, tail_name, text=layout.tail.kind == "text")
        left = 0
    if left:
        yield _part(content, at, left, f"{prefix}rest")


def _nested(content: CapturedBytes, at: int, codec: Codec, prefix: str) -> Iterator[DissectedField]:
    """Yield the fields of a message within another one: its type, and its body if it matches the type."""
    kind = _number(content, at, "B", f"{prefix}type", "")
    layout = codec.by_type.get(kind.value) if isinstance(kind.value, int) else None
    yield kind if layout is None else DissectedField(at, kind.content, kind.name, layout.name)
    left = len(content.data) - at - 1
    if layout is None or left < layout.head.size:
        yield _part(content, at + 1, left, f"{prefix}body")
    else:
        yield from _body(content, at + 1, layout, codec, prefix)


def _row(content: CapturedBytes, begin: int, layout: MessageLayout, prefix: str) -> Iterator[DissectedField]:
    for field in layout.fields:
        part = _number(content, begin + field.offset, field.format, prefix + field.name, field.unit)
        meaning = value_names(layout, field.name).get(part.value, "") if isinstance(part.value, int) else ""
        yield DissectedField(part.offset, part.content, part.name, part.value, field.unit, meaning)


def _number(content: CapturedBytes, at: int, form: str, name: str, unit: str) -> DissectedField:
    size = WIDTHS[form]
    own = content.part(at, size)
    if form == KEY:
        return DissectedField(at, own, name, own.data.hex() if all(own.known) else None, unit)
    value = struct.unpack(">" + form, own.data)[0] if len(own.data) == size and all(own.known) else None
    if unit == ADDRESS and value is not None:
        return DissectedField(at, own, name, address_text(value))
    return DissectedField(at, own, name, value, unit)


def _part(content: CapturedBytes, at: int, size: int, name: str, *, text: bool = False) -> DissectedField:
    """Return a field of plain bytes, whose value is their number, or of text if it is readable."""
    own = content.part(at, size)
    if text and all(own.known):
        return DissectedField(at, own, name, own.data.decode(errors="replace"))
    return DissectedField(at, own, name, size, "bytes")
