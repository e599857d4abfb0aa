"""Wireshark's dissector, in Lua, made from the layouts.

    cutset dissector --output ~/.local/lib/wireshark/plugins/sprinkler.lua
    tshark -X lua_script:sprinkler.lua -r capture.pcap

The layouts become a table of data, the rest (`dissector.lua`) is the same for every system. Fields of the
same name and size share a filter, whichever message they are in, so that `sprinkler.stream == 2` finds all
of a stream; where size or values differ, the message's name stands in the filter.

Source: Wireshark's developer's guide, chapter 11 (the Lua API).
"""

import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from analysis.messages.phrases import MORE, ROWS_SHOWN, phrases, value_names
from node.core.framing import FRAME_LIMIT_BYTES, HEADER_BYTES, HEADER_FIELDS, VERSION
from node.core.layout import Codec, HeadField, Layout
from node.protocols.codecs import CODECS

_RUNTIME = Path(__file__).with_name("dissector.lua")


def dissector(system: str, port: int) -> str:
    """The whole script, for messages to and from this TCP port (which is a preference, too)."""
    return dissector_of(CODECS[system], system, port)


def dissector_of(codec: Codec, system: str, port: int) -> str:
    """The same for any codec's messages."""
    filters = _Filters(system, codec)
    definition = {
        "filter": system,
        "title": system.capitalize(),
        "port": port,
        "version": VERSION,
        "limit": FRAME_LIMIT_BYTES,
        "header_bytes": HEADER_BYTES,
        "rows_shown": ROWS_SHOWN,
        "more": MORE,
        "header": list(_header(system, codec)),
        "messages": {layout.type: _message(layout, filters) for layout in codec.by_type.values()},
    }
    return (
        f"-- Wireshark's dissector of {system.capitalize()}'s messages, written by `cutset dissector`.\n"
        "-- Where segments came out of order, set the preference tcp.reassemble_out_of_order.\n\n"
        f"local SYSTEM = {_lua(definition)}\n\n{_RUNTIME.read_text()}"
    )


class _Filters:
    """Names of fields in Wireshark's filters: one name stands for one size and one set of values."""

    def __init__(self, system: str, codec: Codec) -> None:
        self._system = system
        self._kinds: dict[str, object] = {name: "header" for name, *_ in HEADER_FIELDS}
        self._kinds |= dict.fromkeys(("message", "malformed", "body"), "of the dissector")
        for layout in codec.by_type.values():
            if layout.row is not None:
                self._kinds[layout.row.name.lower()] = layout.row.name

    def of(self, layout: Layout, name: str, kind: object) -> str:
        """The filter of a field of a message or row; `kind` is what fields with one filter have in common."""
        if self._kinds.setdefault(name, kind) == kind:
            return f"{self._system}.{name}"
        return f"{self._system}.{layout.name.lower()}.{name}"

    def of_row(self, row: Layout) -> str:
        """The filter of a row as a whole."""
        return f"{self._system}.{row.name.lower()}"


def _header(system: str, codec: Codec) -> Iterator[dict[str, Any]]:
    offset = 0
    names = {layout.type: layout.name for layout in codec.by_type.values()}
    for name, form, unit, meaning in HEADER_FIELDS:
        size = struct.calcsize(form)
        yield {
            "name": name,
            "filter": f"{system}.{name}",
            "offset": offset,
            "size": size,
            "unit": unit,
            "meaning": meaning,
            "values": names if name == "type" else None,
        }
        offset += size


def _message(layout: Layout, filters: _Filters) -> dict[str, Any]:
    return {
        "name": layout.name,
        "size": layout.head.size,
        "fields": [_field(layout, field, filters) for field in layout.fields],
        "reads": _reads(layout),
        "tail": _tail(layout, filters),
    }


def _field(layout: Layout, field: HeadField, filters: _Filters) -> dict[str, Any]:
    return {
        "name": field.name,
        "filter": filters.of(layout, field.name, (field.format, field.values)),
        "offset": field.offset,
        "size": struct.calcsize(field.format),
        "unit": field.unit,
        "meaning": field.meaning,
        "values": value_names(layout, field.name) or None,
    }


def _tail(layout: Layout, filters: _Filters) -> dict[str, Any] | None:
    tail = layout.tail
    if tail is None:
        return None
    row = layout.row
    return {
        "name": layout.tail_name,
        "filter": filters.of(layout, layout.tail_name, tail.kind),
        "kind": tail.kind,
        "unit": "",
        "meaning": tail.meaning,
        "numbers": [
            {
                "name": each.name,
                "filter": filters.of(layout, each.name, ("I", None)),
                "count": each.count,
                "if_zero": each.if_zero or None,
                "unit": each.unit,
                "meaning": each.meaning,
            }
            for each in tail.numbers
        ],
        "row": row
        and {
            "name": row.message.__name__,
            "filter": filters.of_row(row),
            "size": row.head.size,
            "fields": [_field(row, field, filters) for field in row.fields],
            "reads": _reads(row),
        },
    }


def _reads(layout: Layout) -> list[dict[str, Any]]:
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
    """A value as Lua writes it; None in a table is left out."""
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
