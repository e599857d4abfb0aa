"""Messages of every type, as nodes would send them: valid fields and consistent payloads."""

import struct
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from node.core.message_layout import MessageLayout
from node.protocols.sprinkler.messages import CODEC, EventKind, Events, Predicate, SparseEvents

_BITS = {"B": 8, "H": 16, "I": 31, "Q": 50}
"""Bits of large numbers: columns have 31 bits for streams; events stay below 2^50."""
_TEXT = st.text("abcxyz/-0 ü", min_size=1, max_size=30)


def message() -> st.SearchStrategy[Any]:
    """Draw a valid message of any type."""
    return st.one_of([message_of(layout) for layout in CODEC.by_type.values()])


def message_of(layout: MessageLayout) -> st.SearchStrategy[Any]:
    """Draw a valid message of one type."""
    names = {field.name for field in layout.fields}
    if layout.tail is not None and layout.tail.numbers:
        return batch_of(layout)
    fields = _fixed(layout)
    if layout.tail is not None:
        fields[layout.tail_name] = _TEXT if layout.tail.kind == "text" else _rows(layout)
    made = st.builds(layout.message, **fields)
    if {"next", "cnt"} <= names and "last" not in names:  # a REQUEST, for an interval
        return made.map(lambda request: replace(request, cnt=request.next + request.cnt % 1000))
    return made


def _fixed(layout: MessageLayout) -> dict[str, st.SearchStrategy[Any]]:
    return {
        field.name: st.sampled_from([int(value) for value in field.values])
        if field.values
        else st.integers(1, 2 ** _BITS[field.format] - 1)
        for field in layout.fields
    }


def _rows(layout: MessageLayout) -> st.SearchStrategy[tuple[Any, ...]]:
    """Draw rows that differ in their first field; only the last replica may be joining."""
    assert layout.row is not None
    row = layout.row
    first = row.fields[0].name
    rows = st.lists(
        st.builds(row.message, **_fixed(row)), max_size=5, unique_by=lambda one: getattr(one, first)
    )
    if "standing" not in {field.name for field in row.fields}:
        return rows.map(tuple)
    return rows.map(lambda found: tuple(replace(one, standing=0) for one in found[:-1]) + tuple(found[-1:]))


@st.composite
def batch_of(draw: st.DrawFn, layout: MessageLayout) -> Any:
    """Draw a batch of events: of one or several sizes, of data, garbage collection or tombstone."""
    values = {
        field.name: draw(strategy)
        for field, strategy in zip(layout.fields, _fixed(layout).values(), strict=True)
    }
    is_tombstone = layout.message is Events and values["kind"] == EventKind.TOMBSTONE
    sizes = draw(st.lists(st.integers(0, 40), min_size=1, max_size=12))
    if draw(st.booleans()):
        sizes = [max(sizes[0], 1)] * len(sizes)
        values["event_bytes"] = sizes[0]
    else:
        values["event_bytes"] = 0
    values["kind"] = EventKind.TOMBSTONE if is_tombstone else values["kind"] % 2
    values["predicate"] = (
        draw(st.sampled_from(list(Predicate)[1:])) if values["kind"] == EventKind.GC else Predicate.NONE
    )
    payload = b""
    if not is_tombstone:
        values["count"] = len(sizes)
        if layout.message is SparseEvents:
            reaches = draw(st.lists(st.integers(1, 2**31), min_size=len(sizes), max_size=len(sizes)))
            payload += struct.pack(f">{len(sizes)}I", *reaches)
        if not values["event_bytes"]:
            payload += struct.pack(f">{len(sizes)}I", *sizes)
        payload += draw(st.binary(min_size=sum(sizes), max_size=sum(sizes)))
    return layout.message(**values, payload=payload)


def encoded(one: Any) -> bytes:
    """Return the complete frame."""
    return b"".join(bytes(part) for part in CODEC.encode(one))
