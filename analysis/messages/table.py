"""The documentation of messages as Markdown tables, generated from the layouts."""

import inspect
import struct
from collections.abc import Iterable

from node.core.epochs import NUMBER_BITS
from node.core.framing import HEADER_FIELDS
from node.core.message_layout import Codec, HeadField, MessageLayout, NamedValues

_TYPES = {"B": "u8", "H": "u16", "I": "u32", "Q": "u64", "K": "u128", "d": "f64"}
_COLUMNS = ("offset", "field", "type", "unit", "meaning")


def markdown(codec: Codec, system: str) -> str:
    """Return the documentation of a system: the common header, each message with its fields, and named
    values.
    """
    layouts = list(codec.by_type.values())
    rows = list({layout.row.message: layout.row for layout in layouts if layout.row}.values())
    parts = [
        f"# {system.capitalize()}'s messages",
        "<!-- Change the definitions, not this file; to generate it:\n"
        f"cutset dissector --system {system} --format markdown -o node/protocols/{system}/MESSAGES.md -->",
        "All numbers are big-endian. Offsets are in bytes; those of a message's fields count from the end of "
        "its header. The line below each table is the message's one-line label: `{a+n}` is the last of n "
        "numbers starting at a; a value marked with `?` is omitted if it is 0. A sequence number (unit seq) "
        f"has the epoch of its stream above its lower {NUMBER_BITS} bits. It is written as epoch:number, in "
        "epoch 0 as number.",
        _header(),
        _overview(layouts),
        *(_message(layout) for layout in layouts),
        "## Rows",
        *(_row(row) for row in rows),
        "## Values",
        *(_values(values) for values in _enumerations([*layouts, *rows])),
    ]
    return "\n\n".join(parts) + "\n"


def _header() -> str:
    offset, lines = 0, []
    for name, form, unit, meaning in HEADER_FIELDS:
        lines.append((str(offset), f"`{name}`", _TYPES[form], unit, meaning))
        offset += struct.calcsize(form)
    return "## Header of every message\n\n" + _table(_COLUMNS, lines)


def _overview(layouts: Iterable[MessageLayout]) -> str:
    lines = [
        (str(layout.type), f"[{layout.name}](#{layout.name.lower()})", _first_sentence(layout.message))
        for layout in layouts
    ]
    return "## Types\n\n" + _table(("type", "message", "content"), lines)


def _message(layout: MessageLayout) -> str:
    lines = [_line(field) for field in layout.fields]
    lines += _tail(layout)
    parts = [f"## {layout.name}", f"Type {layout.type}. {inspect.getdoc(layout.message)}"]
    parts += [_table(_COLUMNS, lines)] if lines else []
    parts += [f"`{' '.join([layout.name, *layout.reads])}`"]
    return "\n\n".join(parts)


def _tail(layout: MessageLayout) -> list[tuple[str, ...]]:
    if layout.tail is None:
        return []
    offset = str(layout.head.size)
    lines = []
    for each in layout.tail.numbers:
        when = f"; only if `{each.if_zero}` is 0" if each.if_zero else ""
        lines.append((offset, f"`{each.name}`", f"u32[`{each.count}`]", each.unit, f"{each.meaning}{when}"))
        offset = "then"
    kind = layout.tail.kind
    if layout.row is not None:
        name = layout.row.message.__name__
        kind_text = f"rows of [{name}](#{name.lower()}), to the end"
    else:
        kind_text = {
            "bytes": "bytes, to the end",
            "text": "UTF-8, to the end",
            "message": "a message: its type (u8) and its body, to the end",
        }[kind]
    return [*lines, (offset, f"`{layout.tail_name}`", kind_text, "", layout.tail.meaning)]


def _row(row: MessageLayout) -> str:
    text = f"### {row.message.__name__}\n\n{inspect.getdoc(row.message)}\n\n"
    return text + _table(_COLUMNS, [_line(field) for field in row.fields])


def _line(field: HeadField) -> tuple[str, ...]:
    name = field.values.__name__ if field.values else ""
    meaning = f"{field.meaning}: [{name}](#{name.lower()})" if name else field.meaning
    return str(field.offset), f"`{field.name}`", _TYPES[field.format], field.unit, meaning


def _enumerations(layouts: Iterable[MessageLayout]) -> list[type[NamedValues]]:
    found = [field.values for layout in layouts for field in layout.fields if field.values]
    return list(dict.fromkeys(found))


def _values(values: type[NamedValues]) -> str:
    text = f"### {values.__name__}\n\n{inspect.getdoc(values)}\n\n"
    lines = [(str(int(each)), f"`{each.name}`", each.meaning) for each in values]
    return text + _table(("value", "name", "meaning"), lines)


def _first_sentence(message: type) -> str:
    text = " ".join((inspect.getdoc(message) or "").split("\n\n")[0].split())
    return text.split(". ")[0].rstrip(".")


def _table(columns: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    rows = [tuple(columns), *(tuple(line) for line in lines)]
    rows.insert(1, ("---",) * len(rows[0]))
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)
