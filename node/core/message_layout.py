"""Message layouts: a message is a frozen dataclass whose annotations define each field on the wire.

  @dataclass(frozen=True, slots=True)
  class Subscribe:
      stream: Annotated[int, Field("I", "", "the stream")]
      cnt: Annotated[int, Field("Q", "events", "how far the subscriber got")]

`MessageLayout` derives from that one declaration the encoder, the decoder and a table (`fields`, with
offsets). The analysis extracts fields in bulk by this table; documentation and dissectors are generated
from it. Every message has a head of fixed size and at most one tail, which fills the rest of the body:
bytes, UTF-8 text, rows of one fixed layout, or another message of the same codec, its type (u8) before its
body. Framing is in `node.core.framing`.

A message may define its one-line summary, as phrases that follow its name. A phrase is omitted if one of its
values is unknown, or is 0 and marked by `?`; `{a+n}` is the last of n numbers from a on:

    reads: ClassVar = ("s{stream}", "[{first_seq}..{first_seq+count}]", "{kind?}")

A row may name the list column of the analysis' table of messages that holds such rows. The column holds those
fields of the row that its lists have, or the first field:

    column: ClassVar = "advertised"
"""

import re
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from enum import IntEnum
from operator import attrgetter
from typing import Any, Literal, Self, get_type_hints

from node.core.epochs import SEQ_MAX
from node.core.errors import RemoteProtocolError
from node.core.framing import FRAME_LIMIT_BYTES, HEADER_BYTES, Frame, encode_header

WIDTHS = {"B": 1, "H": 2, "I": 4, "Q": 8, "K": 16, "d": 8}
"""Bytes of a field by its format: struct's formats, and K for keys of 128 bits, which are numbers, too."""
NESTED_MAX = 4  # messages nested in each other
KEY = "K"
DOUBLE = "d"
KEY_SHOWN = 6  # hexadecimal digits of a key shown to users
SEQ = "seq"  # the unit of sequence numbers, which `node.core.epochs` formats and limits
ADDRESS = "IPv4"  # the unit of addresses that are numbers


class NamedValues(IntEnum):
    """Named values of a field; each may have a meaning: `LAST = 2, "only the last stay"`."""

    meaning: str

    def __new__(cls, value: int, meaning: str = "") -> Self:
        """Create a value of the enumeration."""
        member = int.__new__(cls, value)
        member._value_ = value
        member.meaning = meaning
        return member


@dataclass(frozen=True, slots=True)
class Field:
    """A fixed field: `format` is one of `WIDTHS`, big-endian on the wire.

    `values` names its possible values. `columns` are the columns of the analysis' table of messages that hold
    it: by default the one with its own name.
    """

    format: str
    unit: str
    meaning: str
    values: type[NamedValues] | None = None
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NumberList:
    """A list of u32 at the start of a bytes tail; the head field `count` gives its length.

    If `if_zero` names a head field, the list is present only if that field is 0. `column`, if given, is the
    column of the analysis' table of messages that holds the sum.
    """

    name: str
    count: str
    unit: str
    meaning: str
    if_zero: str = ""
    column: str = ""


@dataclass(frozen=True, slots=True)
class TailField:
    """The rest of a message's body. Rows are dataclasses of fixed fields.

    `numbers` are at the beginning of bytes. The codec leaves them in the bytes: nodes forward most batches
    unread. An empty tail has none, whatever the head contains.
    """

    kind: Literal["bytes", "text", "rows", "message"]
    meaning: str
    row: type | None = None
    numbers: tuple[NumberList, ...] = ()


@dataclass(frozen=True, slots=True)
class HeadField:
    """A line of a layout's table. `offset` counts from the start of the body (of the row, in rows)."""

    name: str
    format: str
    offset: int
    unit: str
    meaning: str
    values: type[NamedValues] | None = None
    columns: tuple[str, ...] = ()


class MessageLayout:
    """Layout of one message (or one row) on the wire; built once per class, at import."""

    def __init__(self, message: type, message_type: int = 0) -> None:
        hints = get_type_hints(message, include_extras=True)
        marks = [(field.name, hints[field.name].__metadata__[0]) for field in fields(message)]
        heads = [(name, mark) for name, mark in marks if isinstance(mark, Field)]
        tails = [(name, mark) for name, mark in marks if isinstance(mark, TailField)]
        if len(tails) > 1 or [name for name, _ in heads + tails] != [name for name, _ in marks]:
            raise TypeError(f"{message.__name__}: a message has at most one tail, and it stands last")
        self.message = message
        self.name = wire_name(message)
        self.type = message_type
        self.head = struct.Struct(">" + "".join("16s" if m.format == KEY else m.format for _, m in heads))
        self.fields = _table(heads)
        self.tail_name = tails[0][0] if tails else ""
        self.tail: TailField | None = tails[0][1] if tails else None
        self._keys = tuple(place for place, (_, mark) in enumerate(heads) if mark.format == KEY)
        self._seqs = tuple(place for place, (_, mark) in enumerate(heads) if mark.unit == SEQ)
        self._values = _with_keys(_values_of([name for name, _ in heads]), self._keys)
        self.row = MessageLayout(self.tail.row) if self.tail and self.tail.row else None
        self.reads: tuple[str, ...] = getattr(message, "reads", ())
        self.column: str = getattr(message, "column", "")
        self.codec: Codec | None = (
            None  # set if the message contains another one: the codec that finds its layout
        )
        self._check: Callable[[Any], None] | None = getattr(message, "check", None)
        self.size_bytes = self._size_bytes()
        """Return the length of a message's whole frame without encoding it."""

    def offset(self, name: str) -> int:
        """Return the offset of a head field from the start of the body."""
        return next(field.offset for field in self.fields if field.name == name)

    def column_of(self, name: str) -> str:
        """Return the column of the table of messages that holds a field, or the sum of numbers."""
        known = {field.name: field.columns[0] for field in self.fields}
        numbers = self.tail.numbers if self.tail else ()
        return (known | {each.name: each.column for each in numbers if each.column}).get(name, name)

    def summed(self, column: str) -> bool:
        """Return whether this column holds the sum of the first numbers of the tail."""
        return bool(self.tail and self.tail.numbers and self.tail.numbers[0].column == column)

    def encode(self, message: Any, limit_bytes: int = FRAME_LIMIT_BYTES) -> list[bytes | memoryview]:
        """Encode the frame as buffers to be written one after the other; a bytes tail is not copied."""
        head = self.head.pack(*self._values(message))
        if self.tail is None:
            return [encode_header(self.type, len(head), limit_bytes) + head]
        tail = self._encode_tail(getattr(message, self.tail_name))
        first = encode_header(self.type, len(head) + len(tail), limit_bytes) + head
        return [first, tail] if len(tail) else [first]

    def decode(self, body: memoryview, depth: int = 0) -> Any:
        """Decode the message in a frame's body, itself nested in `depth` others.

        Raises RemoteProtocolError. A bytes tail is a view of the body.
        """
        size = self.head.size
        if len(body) < size or (self.tail is None and len(body) != size):
            raise RemoteProtocolError(f"{self.name} with a body of {len(body)} bytes, its head has {size}")
        values = self._unpacked(self.head.unpack_from(body))
        message = (
            self.message(*values)
            if self.tail is None
            else self.message(*values, self._decode_tail(body[size:], depth))
        )
        if self._check is not None:
            self._check(message)
        return message

    def _size_bytes(self) -> Callable[[Any], int]:
        """Return the function `size_bytes`: the kind of tail is tested once, not for every message."""
        size = HEADER_BYTES + self.head.size
        if self.tail is None:
            return lambda message: size
        tail_of = attrgetter(self.tail_name)
        if self.row is not None:
            row_bytes = self.row.head.size
            return lambda message: size + len(tail_of(message)) * row_bytes
        if self.tail.kind == "message":
            return lambda message: size + 1 + self._held_bytes(tail_of(message)) - HEADER_BYTES
        if self.tail.kind == "text":
            return lambda message: size + len(tail_of(message).encode())
        return lambda message: size + len(tail_of(message))

    def _held_bytes(self, message: Any) -> int:
        assert self.codec is not None, "a message within another, and no codec"
        return self.codec.size_bytes(message)

    def _unpacked(self, values: tuple[Any, ...]) -> Iterable[Any]:
        """Return values as the message has them: keys as numbers. Raises RemoteProtocolError."""
        for place in self._seqs:
            if values[place] > SEQ_MAX:
                raise RemoteProtocolError(f"{self.name} with number {values[place]}")
        if not self._keys:
            return values
        found = list(values)
        for place in self._keys:
            found[place] = int.from_bytes(values[place], "big")
        return found

    def _encode_tail(self, tail: Any) -> bytes | memoryview:
        if self.row is not None:
            pack, values = self.row.head.pack, self.row._values
            return b"".join([pack(*values(row)) for row in tail])
        if self.codec is not None:
            return self.codec.encode_body(tail)
        return tail.encode() if isinstance(tail, str) else tail

    def _decode_tail(self, tail: memoryview, depth: int) -> Any:
        if self.row is not None:
            if len(tail) % self.row.head.size:
                raise RemoteProtocolError(
                    f"{self.name} with {len(tail)} bytes of {self.row.head.size}-byte rows"
                )
            message, unpacked = self.row.message, self.row._unpacked
            return tuple([message(*unpacked(values)) for values in self.row.head.iter_unpack(tail)])
        if self.codec is not None:
            if not len(tail):
                raise RemoteProtocolError(f"{self.name} without its nested message")
            return self.codec.decode(Frame(tail[0], tail[1:], tail), depth + 1)
        if self.tail is None or self.tail.kind == "bytes":
            return tail
        try:
            return str(tail, "utf-8")
        except UnicodeDecodeError as error:
            raise RemoteProtocolError(f"{self.name} with text that is not UTF-8") from error

    @property
    def row_fields(self) -> tuple[HeadField, ...]:
        """The table of a tail's rows; empty without rows."""
        return self.row.fields if self.row else ()


class Codec:
    """All messages of one protocol: from message to buffers, from frame to message."""

    def __init__(self, layouts: Iterable[MessageLayout]) -> None:
        self.by_type = {layout.type: layout for layout in layouts}
        self.by_name = {layout.name: layout for layout in self.by_type.values()}
        if len(self.by_name) < len(self.by_type):
            raise TypeError("two messages have the same name")
        self._by_class = {layout.message: layout for layout in self.by_type.values()}
        self.sizes_bytes = {layout.message: layout.size_bytes for layout in self.by_type.values()}
        """The functions that return the length of a whole frame, by the message's class."""
        self._last: tuple[Any, int, list[bytes | memoryview]] = (None, 0, [])
        for layout in self.by_type.values():
            if layout.tail is not None and layout.tail.kind == "message":
                layout.codec = self

    def encode(self, message: Any, limit_bytes: int = FRAME_LIMIT_BYTES) -> list[bytes | memoryview]:
        """See `MessageLayout.encode`. A message that is sent to several peers in a row is encoded once."""
        last, last_limit_bytes, buffers = self._last
        if message is last and limit_bytes == last_limit_bytes:
            return buffers
        layout = self._by_class[type(message)]
        buffers = layout.encode(message, limit_bytes)
        if layout.row is not None:  # other messages are rarely repeated, or would keep a payload in memory
            self._last = message, limit_bytes, buffers
        return buffers

    def encode_body(self, message: Any) -> bytes:
        """Encode a nested message: its type, then its body."""
        layout = self._by_class[type(message)]
        head, *tail = layout.encode(message)
        return b"".join((bytes((layout.type,)), head[HEADER_BYTES:], *tail))

    def size_bytes(self, message: Any) -> int:
        """Return the length of the message's whole frame without encoding it."""
        return self.sizes_bytes[type(message)](message)

    def holds(self, message: Any, name: str) -> bool:
        """Return whether a message or one nested in it has this name."""
        return any(layout.name == name for layout, _ in self.within(message))

    def within(self, message: Any) -> Iterator[tuple[MessageLayout, Any]]:
        """Yield a message with its layout, then each message nested in it, from the outside in."""
        layout = self._by_class.get(type(message))
        while layout is not None:
            yield layout, message
            if layout.codec is None:
                return
            message = getattr(message, layout.tail_name)
            layout = self._by_class.get(type(message))

    def decode(self, frame: Frame, depth: int = 0) -> Any:
        """Decode the frame's message, which is nested in `depth` others. Raises RemoteProtocolError."""
        layout = self.by_type.get(frame.type)
        if layout is None:
            raise RemoteProtocolError(f"unknown message type {frame.type}")
        if depth > NESTED_MAX:
            raise RemoteProtocolError(f"more than {NESTED_MAX} messages within each other")
        return layout.decode(frame.body, depth)


def numbered(messages: Iterable[type], first: int = 1) -> list[MessageLayout]:
    """Return the layouts of messages whose types are consecutive numbers."""
    return [MessageLayout(message, number) for number, message in enumerate(messages, first)]


def wire_name(message: type) -> str:
    """Return a message's name in tables and logs: SPARSE_EVENTS for SparseEvents."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", message.__name__).upper()


def _table(heads: list[tuple[str, Field]]) -> tuple[HeadField, ...]:
    offset, table = 0, []
    for name, mark in heads:
        columns = mark.columns or (name,)
        table.append(HeadField(name, mark.format, offset, mark.unit, mark.meaning, mark.values, columns))
        offset += WIDTHS[mark.format]
    return tuple(table)


def _values_of(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    if len(names) == 1:
        get = attrgetter(names[0])
        return lambda message: (get(message),)
    return attrgetter(*names) if names else lambda message: ()


_ValuesOf = Callable[[Any], Iterable[Any]]


def _with_keys(values: _ValuesOf, keys: tuple[int, ...]) -> _ValuesOf:
    """Convert keys among these values to bytes, because struct has no numbers of their size."""
    if not keys:
        return values

    def found(message: Any) -> list[Any]:
        listed = list(values(message))
        for place in keys:
            listed[place] = listed[place].to_bytes(WIDTHS[KEY], "big")
        return listed

    return found
