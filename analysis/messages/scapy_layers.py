"""Scapy layers derived from the layouts: build, dissect and replay messages from a Python prompt.

    >>> from scapy.all import IP, TCP, StreamSocket, TCPSession, sniff
    >>> from analysis.messages.scapy_layers import layers
    >>> s = layers("sprinkler")
    >>> s.bind(7000)
    >>> IP(dst="10.0.0.2") / TCP(dport=7000) / s.Subscribe(stream=2, cnt=48209)
    >>> [m.summary() for p in sniff(offline="r0-proxy-0-eth0.pcap", session=TCPSession)
    ...  if s.stream in p for m in p[s.stream].messages]
    >>> peer = StreamSocket(socket.create_connection(("10.0.0.2", 7000)), s.stream)
    >>> peer.send(s.stream(messages=[s.Hello(role="client", name_="r0/me"), s.Subscribe(stream=2)]))
    >>> peer.recv().messages

A message is a packet with the fields of header, head and tail; its length is computed when it is built. A
nested message is such a packet, too, but only its type and body are written. The content of a TCP segment is
a packet with a list of messages: stacking them as payloads, as Scapy does with layers, hits Python's
recursion limit. Field names that collide with attributes of a Scapy packet get an underscore: `payload_`,
`name_`.
"""

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any

from scapy.base_classes import BasePacket
from scapy.fields import (
    AnyField,
    ByteEnumField,
    ByteField,
    Field,
    FieldListField,
    IEEEDoubleField,
    IntEnumField,
    IntField,
    LongEnumField,
    LongField,
    PacketLenField,
    PacketListField,
    ShortEnumField,
    ShortField,
    StrLenField,
    XStrLenField,
)
from scapy.layers.inet import TCP
from scapy.packet import Packet, bind_bottom_up, bind_top_down

from analysis.messages.label import value_names
from analysis.messages.scapy_streams import complete_frames, tcp_reassemble
from node.core.framing import (
    FRAME_LIMIT_BYTES,
    HEADER_BYTES,
    HEADER_FIELDS,
    LENGTH_BYTES,
    VERSION,
    encode_header,
)
from node.core.message_layout import DOUBLE, KEY, NESTED_MAX, WIDTHS, Codec, MessageLayout, NumberList
from node.systems import codecs


class _KeyField(Field[int, bytes]):
    """A key of 128 bits, as a number."""

    def __init__(self, name: str, default: int) -> None:
        super().__init__(name, default, f"{WIDTHS[KEY]}s")

    def i2m(self, pkt: Packet | None, x: int | None) -> bytes:
        """Convert to bytes."""
        return (x or 0).to_bytes(WIDTHS[KEY], "big")

    def m2i(self, pkt: Packet | None, x: bytes) -> int:
        """Convert from bytes."""
        return int.from_bytes(x, "big")

    def i2repr(self, pkt: Packet | None, x: int) -> str:
        """Return all digits."""
        return f"{x:0{2 * WIDTHS[KEY]}x}"


_PLAIN: dict[str, Any] = {"B": ByteField, "H": ShortField, "I": IntField, "Q": LongField, KEY: _KeyField}
_PLAIN[DOUBLE] = IEEEDoubleField
_NAMED = {"B": ByteEnumField, "H": ShortEnumField, "I": IntEnumField, "Q": LongEnumField}
_LIST_MAX = FRAME_LIMIT_BYTES  # elements: more than a frame has bytes


@dataclass(frozen=True, slots=True)
class Layers:
    """A system's layers. Messages and rows are also attributes: `layers.Subscribe`, `layers.Counter`."""

    stream: type[Packet]  # content of a TCP segment: the list `messages`
    messages: Mapping[str, type[Packet]]  # by the names of their classes
    rows: Mapping[str, type[Packet]]

    def __getattr__(self, name: str) -> type[Packet]:
        found = self.messages.get(name) or self.rows.get(name)
        if found is None:
            raise AttributeError(f"no message {name}")
        return found

    def bind(self, port: int) -> None:
        """Make Scapy dissect traffic to and from this TCP port as these messages."""
        for end in ({"sport": port}, {"dport": port}):
            bind_bottom_up(TCP, self.stream, **end)
        bind_top_down(TCP, self.stream, dport=port)


def layers(system: str) -> Layers:
    """Return the layers of a system under test, by its name. Raises ValueError if there is no such system."""
    if system not in codecs():
        raise ValueError(f"there is no system {system!r}; there are {', '.join(codecs())}")
    return layers_of(codecs()[system], system)


def layers_of(codec: Codec, system: str) -> Layers:
    """Return the layers of any codec's messages."""
    names = {layout.type: layout.name for layout in codec.by_type.values()}
    rows = {row.message: _row(row) for row in map(attrgetter("row"), codec.by_type.values()) if row}
    unknown = type(
        "Unknown", (_Message,), {"name": "unknown", "fields_desc": [*_header(None, names), _rest()]}
    )
    messages: dict[int, type[Packet]] = {}
    nested = partial(_Nested, messages, unknown)
    messages |= {layout.type: _message(layout, names, rows, nested) for layout in codec.by_type.values()}
    content = {
        "name": system.capitalize(),
        "fields_desc": [_Messages("messages", [], messages, unknown)],
        "tcp_reassemble": classmethod(tcp_reassemble),
    }
    stream: type[Packet] = type(system.capitalize(), (Packet,), content)
    return Layers(
        stream,
        {codec.by_type[kind].message.__name__: made for kind, made in messages.items()},
        {row.__name__: made for row, made in rows.items()},
    )


class _Message(Packet):
    """A message. It ends where its header says, so the following bytes are not its payload."""

    def extract_padding(self, s: bytes) -> tuple[bytes, bytes]:
        return b"", s

    def post_build(self, pkt: bytes, pay: bytes) -> bytes:
        if self.length is None:
            pkt = struct.pack(">I", len(pkt) - LENGTH_BYTES) + pkt[LENGTH_BYTES:]
        return pkt + pay


class _Row(Packet):
    """A row of a message's list."""

    def extract_padding(self, s: bytes) -> tuple[bytes, bytes]:
        return b"", s


class _Messages(PacketListField):
    """Complete messages, one after the other. Bytes that cannot be a message go to the payload."""

    __slots__ = ("_by_type", "_unknown")

    def __init__(
        self, name: str, default: list[BasePacket], by_type: Mapping[int, type[Packet]], unknown: type[Packet]
    ) -> None:
        super().__init__(name, default, unknown)
        self._by_type, self._unknown = by_type, unknown

    def getfield(self, pkt: Packet, s: bytes) -> tuple[bytes, list[BasePacket]]:
        found: list[BasePacket] = []
        start = 0
        for length, kind in complete_frames(s):
            found.append(self._by_type.get(kind, self._unknown)(s[start : start + length], _parent=pkt))
            start += length
        return s[start:], found


class _Nested(PacketLenField):
    """A nested message: its type and its body. Unknown types, and messages nested too deeply, are
    `Unknown`.
    """

    __slots__ = ("_by_type", "_unknown")

    def __init__(
        self, by_type: Mapping[int, type[Packet]], unknown: type[Packet], name: str, length: Any
    ) -> None:
        nothing: Any = None
        super().__init__(name, nothing, unknown, length_from=length)
        self._by_type, self._unknown = by_type, unknown

    def i2m(self, pkt: Packet | None, i: Any) -> bytes:
        if not isinstance(i, _Message):
            return bytes(i or b"")
        return bytes((i.type,)) + bytes(i)[HEADER_BYTES:]

    def m2i(self, pkt: Packet | None, m: bytes) -> Packet:
        made = self._unknown if _depth(pkt) >= NESTED_MAX else self._by_type.get(m[0], self._unknown)
        return made(encode_header(m[0], len(m) - 1) + m[1:], _parent=pkt)


def _depth(packet: Packet | None) -> int:
    """Return how many messages enclose a message."""
    depth = 0
    while isinstance(packet, _Message) and isinstance(packet.parent, _Message):
        packet, depth = packet.parent, depth + 1
    return depth


class _Text(StrLenField):
    """UTF-8 text; invalid bytes are shown as escapes."""

    def any2i(self, pkt: Packet | None, x: Any) -> bytes:
        return x.encode() if isinstance(x, str) else bytes(x or b"")

    def i2h(self, pkt: Packet | None, x: bytes) -> str:
        return x.decode(errors="backslashreplace")

    i2repr = i2h


def _message(
    layout: MessageLayout,
    names: Mapping[int, str],
    rows: Mapping[type, type[Packet]],
    nested: Callable[..., AnyField],
) -> type[Packet]:
    fields = [*_header(layout.type, names), *_head(layout), *_tail(layout, rows, nested)]
    return type(layout.message.__name__, (_Message,), {"name": layout.name, "fields_desc": fields})


def _row(layout: MessageLayout) -> type[Packet]:
    content = {"name": layout.name, "fields_desc": _head(layout)}
    return type(layout.message.__name__, (_Row,), content)


def _header(kind: int | None, names: Mapping[int, str]) -> list[AnyField]:
    """Return the fields of the frame's header; the length is filled in when a message is built."""
    defaults: dict[str, Any] = {"length": None, "version": VERSION, "type": kind, "flags": 0}
    return [
        ByteEnumField(name, defaults[name], dict(names))
        if name == "type"
        else _PLAIN[form](name, defaults[name])
        for name, form, _, _ in HEADER_FIELDS
    ]


def _head(layout: MessageLayout) -> list[AnyField]:
    """Return the fields of fixed size, with the names of their values."""
    fields: list[AnyField] = []
    for field in layout.fields:
        values = value_names(layout, field.name)
        name = _free(field.name)
        fields.append(_NAMED[field.format](name, 0, values) if values else _PLAIN[field.format](name, 0))
    return fields


def _tail(
    layout: MessageLayout, rows: Mapping[type, type[Packet]], nested: Callable[..., AnyField]
) -> list[AnyField]:
    """Return the variable-length field at the end, preceded by its leading numbers."""
    if layout.tail is None:
        return []
    name, length = _free(layout.tail_name), partial(_left, layout)
    if layout.row is not None:
        row = rows[layout.row.message]
        return [PacketListField(name, [], row, length_from=length, max_count=_LIST_MAX)]
    if layout.codec is not None:
        return [nested(name, length)]
    if layout.tail.kind == "text":
        return [_Text(name, b"", length_from=length)]
    before = [
        FieldListField(
            each.name, [], IntField("", 0), count_from=partial(_count, layout, each), max_count=_LIST_MAX
        )
        for each in layout.tail.numbers
    ]
    return [*before, XStrLenField(name, b"", length_from=length)]


def _rest() -> AnyField:
    return XStrLenField("body", b"", length_from=lambda message: message.length + LENGTH_BYTES - HEADER_BYTES)


def _left(layout: MessageLayout, message: Packet) -> int:
    """Return the bytes of a dissected message after its head and the numbers."""
    numbers = layout.tail.numbers if layout.tail else ()
    read = sum(4 * len(message.fields.get(each.name, ())) for each in numbers)
    return max(0, int(message.length) + LENGTH_BYTES - HEADER_BYTES - layout.head.size - read)


def _count(layout: MessageLayout, numbers: NumberList, message: Packet) -> int:
    """Return how many numbers there are; 0 if they would not fit."""
    if numbers.if_zero and getattr(message, numbers.if_zero):
        return 0
    count = int(getattr(message, numbers.count))
    return count if 4 * count <= _left(layout, message) else 0


def _free(name: str) -> str:
    """Return a field name that does not collide with attributes of a packet."""
    taken = hasattr(Packet, name) or name in {each for each, *_ in HEADER_FIELDS}
    return f"{name}_" if taken else name
