"""Wireshark's dissector, in Lua, generated from the layouts.

    cutset dissector --output ~/.local/lib/wireshark/plugins/sprinkler.lua
    tshark -X lua_script:sprinkler.lua -r capture.pcap

The layouts become a table of data; the rest (`dissector.lua`) is the same for every system. Fields with the
same name share a filter in all messages, so `sprinkler.stream == 2` finds everything of a stream. If size,
unit or values differ, the filter contains the message's name. A nested message is dissected like any other,
with its own `type`.

Source: Wireshark's developer's guide, chapter 11 (the Lua API).
"""

import inspect
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from analysis.messages.label import MORE, ROWS_SHOWN, phrases, value_names
from node.core.epochs import NUMBER_BITS
from node.core.framing import FRAME_LIMIT_BYTES, HEADER_BYTES, HEADER_FIELDS, VERSION
from node.core.message_layout import ADDRESS, DOUBLE, KEY_SHOWN, NESTED_MAX, SEQ, WIDTHS, Codec, MessageLayout

_RUNTIME = Path(__file__).with_name("dissector.lua")


def dissector(codec: Codec, system: str, port: int) -> str:
    """Return the complete script for the codec's messages, to and from this TCP port (also a preference)."""
    known = _Fields(system)
    header = list(_header(codec, known))
    known.add("dissector", "message", "the message in one line", kind="text")
    known.add("dissector", "body", "bytes that could not be decoded", kind="bytes")
    messages = {layout.type: _message(layout, known) for layout in codec.by_type.values()}
    definition = {
        "filter": system,
        "title": system.capitalize(),
        "port": port,
        "version": VERSION,
        "limit": FRAME_LIMIT_BYTES,
        "header_bytes": HEADER_BYTES,
        "number_bits": NUMBER_BITS,
        "rows_shown": ROWS_SHOWN,
        "key_shown": KEY_SHOWN,
        "nested_max": NESTED_MAX,
        "more": MORE,
        "fields": known.definition(),
        "header": header,
        "messages": messages,
    }
    return (
        f"-- Wireshark's dissector of {system.capitalize()}'s messages, written by `cutset dissector`.\n"
        "-- For Wireshark 4.0 and later. If segments arrived out of order, set the preference\n"
        "-- tcp.reassemble_out_of_order.\n\n"
        f"local SYSTEM = {_lua(definition)}\n\n{_RUNTIME.read_text()}"
    )


class _Fields:
    """The fields that Wireshark knows: one per name in its filters, with one size and set of values."""

    def __init__(self, system: str) -> None:
        self._system = system
        self._known: dict[str, dict[str, Any]] = {}
        self._meanings: dict[str, dict[str, str]] = {}  # filter -> owner -> meaning

    def add(self, owner: str, name: str, meaning: str, **kind: Any) -> str:
        """Return the filter of a field of the message or row `owner`; fields with one filter share `kind`."""
        kind = {"title": _title(name, kind.pop("unit", "")), **kind}
        found = f"{self._system}.{name}"
        if self._known.setdefault(found, kind) != kind:
            found = f"{self._system}.{owner.lower()}.{name}"
            self._known[found] = kind
        self._meanings.setdefault(found, {})[owner] = meaning
        return found

    def definition(self) -> dict[str, Any]:
        """Return all fields with their meanings, by message if these differ."""
        return {f'["{name}"]': {**kind, "meaning": self._meaning(name)} for name, kind in self._known.items()}

    def _meaning(self, name: str) -> str:
        owners: dict[str, list[str]] = {}
        for owner, meaning in self._meanings[name].items():
            owners.setdefault(meaning, []).append(owner)
        if len(owners) == 1:
            return next(iter(owners))
        return "; ".join(f"{meaning} ({', '.join(those)})" for meaning, those in owners.items())


def _title(name: str, unit: str) -> str:
    title = (name[:1].upper() + name[1:]).replace("_", " ")
    return title if not unit or title.endswith(unit) else f"{title} ({unit})"


def _header(codec: Codec, known: _Fields) -> Iterator[dict[str, Any]]:
    offset = 0
    names = {layout.type: layout.name for layout in codec.by_type.values()}
    for name, form, unit, meaning in HEADER_FIELDS:
        size = struct.calcsize(form)
        values = names if name == "type" else None
        found = known.add("header", name, meaning, size=size, unit=unit, values=values)
        yield {"name": name, "filter": found, "offset": offset, "size": size}
        offset += size


def _message(layout: MessageLayout, known: _Fields) -> dict[str, Any]:
    return {
        "name": layout.name,
        "size": layout.head.size,
        "fields": _fields(layout, known),
        "tail": _tail(layout, known),
        "reads": _reads(layout),
    }


def _fields(layout: MessageLayout, known: _Fields) -> list[dict[str, Any]]:
    return [
        {
            "name": field.name,
            "filter": known.add(
                layout.name,
                field.name,
                field.meaning,
                size=WIDTHS[field.format],
                unit=field.unit,
                values=value_names(layout, field.name) or None,
                **({"kind": "ipv4"} if field.unit == ADDRESS else {}),
                **({"kind": "double"} if field.format == DOUBLE else {}),
            ),
            "offset": field.offset,
            "size": WIDTHS[field.format],
            "seq": field.unit == SEQ or None,
            "ipv4": field.unit == ADDRESS or None,
            "double": field.format == DOUBLE or None,
        }
        for field in layout.fields
    ]


def _tail(layout: MessageLayout, known: _Fields) -> dict[str, Any] | None:
    tail = layout.tail
    if tail is None:
        return None
    if layout.row is not None:
        return {"name": layout.tail_name, "kind": tail.kind, "row": _row(layout.row, known)}
    numbers = [
        {
            "name": each.name,
            "filter": known.add(layout.name, each.name, each.meaning, size=4, unit=each.unit),
            "count": each.count,
            "if_zero": each.if_zero or None,
        }
        for each in tail.numbers
    ]
    found = known.add(layout.name, layout.tail_name, tail.meaning, kind=tail.kind)
    return {"name": layout.tail_name, "kind": tail.kind, "filter": found, "numbers": numbers}


def _row(row: MessageLayout, known: _Fields) -> dict[str, Any]:
    meaning = " ".join((inspect.getdoc(row.message) or "").split())
    return {
        "filter": known.add("row", row.name.lower(), meaning, kind="row"),
        "size": row.head.size,
        "fields": _fields(row, known),
        "reads": _reads(row),
    }


def _reads(layout: MessageLayout) -> list[dict[str, Any]]:
    return [
        {
            "texts": list(phrase.texts),
            "values": [
                {"field": value.field, "count": value.count or None, "optional": value.optional or None}
                for value in phrase.values
            ],
        }
        for phrase in phrases(layout)
    ]


def _lua(value: Any, depth: int = 0) -> str:
    """Return a value in Lua's syntax; None in a table is omitted."""
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        entries = [
            f"{_key(key)} = {_lua(each, depth + 1)}" for key, each in value.items() if each is not None
        ]
    elif isinstance(value, list):
        entries = [_lua(each, depth + 1) for each in value]
    else:
        return str(value)
    flat = "{ " + ", ".join(entries) + " }" if entries else "{}"
    if len(flat) + 4 * depth < 110 and "\n" not in flat:
        return flat
    indent = "    " * (depth + 1)
    return "{\n" + "".join(f"{indent}{entry},\n" for entry in entries) + "    " * depth + "}"


def _key(key: str | int) -> str:
    return f"[{key}]" if isinstance(key, int) else key
